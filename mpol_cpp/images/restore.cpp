#include <mpol_cpp/images/restore.h>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/gauss_conv_image.h>

namespace mpol {

Tensor restore(const Tensor& sky, const GridCoords& coords, const std::vector<Beam>& beams, const Tensor& residual) {
  auto convolution = GaussConvImage(coords, beams);
  convolution->to(sky.device());
  std::vector<double> areas;
  areas.reserve(beams.size());
  for (const auto& beam : beams) areas.push_back(beam_area(beam));
  const auto area = at::tensor(areas, torch::kFloat64).view({-1, 1, 1}).to(sky.options());
  const auto restored = convolution->forward(sky) * area;
  if (!residual.defined()) return restored;
  if (residual.sizes() != sky.sizes()) {
    throw ShapeError(
        fmt::format("the residual has shape {}, the image {}; they must be equal", residual.sizes().vec(), sky.sizes().vec()));
  }
  return restored + residual.to(sky.options());
}

}  // namespace mpol
