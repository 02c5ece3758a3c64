#include <mpol_cpp/models/gridded_net.h>

namespace mpol {

GriddedNetImpl::GriddedNetImpl(GriddedNetOptions options) : ImageModel(options.coords()), options_(std::move(options)) {
  reset();
}

void GriddedNetImpl::reset() {
  bcube = register_module("bcube", BaseCube(options_));
  conv_layer = register_module("conv_layer", HannConvCube());
  icube = register_module("icube", ImageCube(options_.coords()));
  fcube = register_module("fcube", FourierCube(options_.coords()));
}

Tensor GriddedNetImpl::make_sky() { return icube->forward(conv_layer->forward(bcube->forward())); }

Tensor GriddedNetImpl::forward() { return fcube->forward(make_sky()); }

}  // namespace mpol
