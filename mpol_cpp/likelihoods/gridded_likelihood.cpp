#include <mpol_cpp/likelihoods/gridded_likelihood.h>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/cell_form.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/losses/sums.h>
#include <mpol_cpp/ops/fft/real_fft.h>

namespace mpol {
namespace {

LikelihoodMemory gridded_memory(const LikelihoodSizes& sizes) { return {0, 0, detail::prediction_bytes(sizes)}; }

std::shared_ptr<Likelihood> make_gridded(const LikelihoodSource& source) {
  GriddedDataset own(std::dynamic_pointer_cast<GriddedDatasetImpl>(source.dataset->clone()));
  own->to(source.device, source.dtype);
  return GriddedLikelihood(own).ptr();
}

/// Where the half plane R of the unshifted sky image holds the packed cells V, and with which phase:
///   V[kv, ku] = phase * conj(R[-kv, ku]),  phase = (-1)^(kv + ku) e^{2 pi i ku / npix}   for ku <= npix/2,
///   V[kv, ku] = conj(V[-kv, -ku])                                                          for ku > npix/2.
struct FoldedCells {
  Tensor half_plane_index;  // (ncells) int64
  Tensor phase;             // (ncells) complex128
  Tensor mirrored;          // (ncells) bool: u < 0
};

FoldedCells fold(const Tensor& cells, std::int64_t npix) {
  const auto channel = at::floor_divide(cells, npix * npix);
  const auto row = at::floor_divide(cells, npix).remainder(npix);
  const auto column = cells.remainder(npix);
  const auto mirrored = column > npix / 2;
  const auto ku = at::where(mirrored, npix - column, column);
  const auto kv = at::where(mirrored, (npix - row).remainder(npix), row);
  const auto angle = ku.to(torch::kFloat64) * (2.0 * units::pi / static_cast<double>(npix));
  const auto sign = (1 - 2 * (kv + ku).remainder(2)).to(torch::kFloat64);
  return {(channel * npix + (npix - kv).remainder(npix)) * (npix / 2 + 1) + ku, at::polar(at::ones_like(angle), angle) * sign,
          mirrored};
}

}  // namespace

GriddedLikelihoodImpl::GriddedLikelihoodImpl(const GriddedDataset& dataset)
    : Likelihood(dataset->coords()), nchan_(dataset->nchan()), nvis_(dataset->nvis(), dataset->cells().device()) {
  const auto folded = fold(dataset->cells(), coords().npix());
  const auto& visibilities = dataset->visibilities();
  const auto positive_u = at::where(folded.mirrored, visibilities.conj(), visibilities);
  cells_ = folded.half_plane_index;
  data_ = (positive_u.conj() * folded.phase).to(visibilities.scalar_type()).resolve_conj();
  weights_ = dataset->weights().clone();
  reset();
}

void GriddedLikelihoodImpl::reset() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  data_ = register_buffer("data", data_.variable_data());
  weights_ = register_buffer("weights", weights_.variable_data());
  cells_ = register_buffer("cells", cells_.variable_data());
  nvis_.follow(register_buffer("nvis", nvis_.to_register()));
  form_ = std::make_shared<losses::detail::CellForm>();
}

void GriddedLikelihoodImpl::check(const Tensor& sky) const {
  losses::detail::check_sky_shape(sky, nchan_, coords().npix());
  if (sky.device() != data_.device()) {
    throw DeviceError(fmt::format("the image is on {} but the data are on {}: move one of them with .to(device)",
                                  sky.device().str(), data_.device().str()));
  }
  if (sky.scalar_type() != torch::kFloat32 && sky.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the image is {}; cast it to float32 or float64", c10::toString(sky.scalar_type())));
  }
}

Tensor GriddedLikelihoodImpl::residual(const Tensor& half_plane) const {
  return half_plane.flatten(-3).index_select(-1, cells_) * coords().cell_area() - data_.to(half_plane.scalar_type());
}

Tensor GriddedLikelihoodImpl::chi_squared(const Tensor& sky) {
  check(sky);
  const auto difference = residual(ops::half_plane_fft(sky));
  return losses::detail::sum_last(at::view_as_real(difference).square().sum({-1}) * weights_.to(sky.scalar_type()));
}

Tensor GriddedLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return GriddedLikelihoodImpl::channel_values_and_gradient(sky, gradient, accumulate).sum(-1);
}

Tensor GriddedLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  check(sky);
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  if (losses::detail::CellForm::has(sky)) {
    auto slope = accumulate == Accumulate::overwrite && gradient.is_contiguous()
                     ? gradient
                     : at::empty_like(sky, at::MemoryFormat::Contiguous);
    auto values = form_->values_and_gradient({cells_, data_, weights_, nchan_}, coords().cell_area(), sky, slope);
    if (accumulate == Accumulate::add) gradient.add_(slope);
    else if (!slope.is_same(gradient)) gradient.copy_(slope);
    return values;
  }
  const auto half_plane = ops::half_plane_fft(sky);
  const auto difference = residual(half_plane);
  const auto weighted = difference * weights_.to(sky.scalar_type());
  auto squares = at::zeros(half_plane.sizes(), sky.options().dtype(torch::kFloat64));
  const auto of_cells = (at::view_as_real(difference) * at::view_as_real(weighted)).sum({-1});
  squares.flatten(-3).index_add_(-1, cells_, of_cells.to(torch::kFloat64));  // at their places: sums in an order that is fixed
  auto values = squares.sum({-2, -1});

  auto spectrum = at::zeros_like(half_plane);
  spectrum.flatten(-3).index_add_(-1, cells_, weighted * (2.0 * coords().cell_area()));
  const auto image = ops::half_plane_adjoint(spectrum);
  if (accumulate == Accumulate::add) gradient.add_(image);
  else gradient.copy_(image);
  return values;
}

std::optional<CellData> GriddedLikelihoodImpl::cells() const {
  if (typeid(*this) != typeid(GriddedLikelihoodImpl)) return std::nullopt;
  return CellData{cells_, data_, weights_, nchan_};
}

std::int64_t GriddedLikelihoodImpl::memory_bytes() const {
  return static_cast<std::int64_t>(cells_.nbytes() + data_.nbytes() + weights_.nbytes());
}

LikelihoodKind GriddedLikelihoodImpl::kind() {
  return {.name = "gridded",
          .help = "of their cell averages (as MPoL)",
          .of_cells = true,
          .memory = gridded_memory,
          .make = make_gridded};
}

}  // namespace mpol
