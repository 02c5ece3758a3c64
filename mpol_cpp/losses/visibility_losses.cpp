#include <mpol_cpp/losses/visibility_losses.h>

#include <cmath>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/losses/sums.h>

namespace mpol::losses {
namespace {

void check(const Tensor& model, const Tensor& data, const Tensor& weights) {
  if (!model.is_complex() || !data.is_complex() || weights.is_complex()) {
    throw ShapeError("model and data visibilities must be complex and weights real");
  }
  const auto trailing = model.sizes().size() >= data.sizes().size()
                            ? model.sizes().slice(model.sizes().size() - data.sizes().size())
                            : model.sizes();
  if (data.sizes() != weights.sizes() || trailing != data.sizes() || data.dim() == 0) {
    throw ShapeError(fmt::format("model {}, data {} and weights {} must have one shape (the model may have leading dimensions)",
                                 model.sizes().vec(), data.sizes().vec(), weights.sizes().vec()));
  }
  if (model.device() != data.device() || data.device() != weights.device()) {
    throw DeviceError(fmt::format("model is on {}, data on {} and weights on {}: move them to one device", model.device().str(),
                                  data.device().str(), weights.device().str()));
  }
}

}  // namespace

Tensor chi_squared(const Tensor& model, const Tensor& data, const Tensor& weights) {
  check(model, data, weights);
  const auto residual = at::view_as_real(model - data).square().sum({-1});
  return detail::sum_last((weights * residual).flatten(-data.dim()));
}

Tensor nll(const Tensor& model, const Tensor& data, const Tensor& weights) {
  return chi_squared(model, data, weights) / (2.0 * static_cast<double>(data.numel()));
}

Tensor log_likelihood(const Tensor& model, const Tensor& data, const Tensor& weights) {
  const double n = static_cast<double>(data.numel());
  return detail::sum_last(weights.log().flatten()) - n * std::log(2.0 * units::pi) - 0.5 * chi_squared(model, data, weights);
}

Tensor neg_log_likelihood_avg(const Tensor& model, const Tensor& data, const Tensor& weights) {
  return -log_likelihood(model, data, weights) / (2.0 * static_cast<double>(data.numel()));
}

Tensor chi_squared_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset) {
  return chi_squared(dataset->at_cells(packed_visibilities), dataset->visibilities(), dataset->weights());
}

Tensor nll_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset) {
  return nll(dataset->at_cells(packed_visibilities), dataset->visibilities(), dataset->weights());
}

Tensor log_likelihood_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset) {
  return log_likelihood(dataset->at_cells(packed_visibilities), dataset->visibilities(), dataset->weights());
}

}  // namespace mpol::losses
