#include <mpol_cpp/models/gridded_net.h>

#include <utility>

#include <ATen/core/grad_mode.h>

#include <mpol_cpp/ops/hann/hann.h>

namespace mpol {

GriddedNetImpl::GriddedNetImpl(GriddedNetOptions options, Smoothing smoothing)
    : ImageModel(options.coords()), options_(std::move(options)), smoothing_(smoothing) {
  reset();
}

void GriddedNetImpl::reset() {
  bcube = register_module("bcube", BaseCube(options_));
  if (smoothing_ == Smoothing::hann) conv_layer = register_module("conv_layer", HannConvCube());
  icube = register_module("icube", ImageCube(options_.coords()));
  fcube = register_module("fcube", FourierCube(options_.coords()));
}

Tensor GriddedNetImpl::make_sky() {
  auto cube = bcube->forward();
  return icube->forward(conv_layer.is_empty() ? cube : conv_layer->forward(cube));
}

Tensor GriddedNetImpl::signed_pixels() {
  return options_.pixel_mapping().sign == PixelSign::either ? bcube->forward() : Tensor();
}

Tensor GriddedNetImpl::smoothed(const Tensor& intensities) const {
  const at::NoGradGuard no_grad;
  return smoothing_ == Smoothing::hann ? ops::hann(intensities) : intensities.clone();
}

std::map<std::string, std::string> GriddedNetImpl::state_labels() const {
  auto labels = ImageModel::state_labels();
  labels["smoothing"] = smoothing_ == Smoothing::hann ? "hann" : "none";
  return labels;
}

Tensor GriddedNetImpl::forward() { return fcube->forward(make_sky()); }

}  // namespace mpol
