#include <cmath>
#include <memory>
#include <optional>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/fourier_regularizers.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/objective/term.h>

namespace mpol::terms {
namespace {

void check_positive(const char* term, const char* setting, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw ValueError(fmt::format("{} of term {} is {}; it must be finite and greater than 0", setting, term, value));
  }
}

/// 1/P of the psd prior, made once for each grid, dtype and device it meets.
class InversePower {
 public:
  explicit InversePower(double length_scale) : length_scale_(length_scale) {}

  const Tensor& like(const Tensor& visibilities, const GridCoords& coords) {
    const auto dtype = c10::toRealValueType(visibilities.scalar_type());
    const bool fits =
        value_.defined() && coords_ == coords && value_.scalar_type() == dtype && value_.device() == visibilities.device();
    if (!fits) {
      value_ = losses::inverse_expected_power(coords, length_scale_, dtype).to(visibilities.device(), dtype);
      coords_ = coords;
    }
    return value_;
  }

 private:
  double length_scale_;
  std::optional<GridCoords> coords_;
  Tensor value_;
};

}  // namespace

Term sparsity(double weight) {
  return Term::known(TermKind::sparsity, "sparsity", weight, {},
                     [](const ModelOutput& out) { return losses::sparsity(out.sky); });
}

Term tv_image(double weight, double epsilon) {
  check_positive("tv_image", "epsilon", epsilon);
  return Term::known(TermKind::tv_image, "tv", weight, {epsilon},
                     [=](const ModelOutput& out) { return losses::tv_image(out.sky, epsilon); });
}

Term tv_channel(double weight, double epsilon) {
  check_positive("tv_channel", "epsilon", epsilon);
  return Term::known(TermKind::tv_channel, "tv_channel", weight, {epsilon},
                     [=](const ModelOutput& out) { return losses::tv_channel(out.sky, epsilon); });
}

Term tsv(double weight) {
  return Term::known(TermKind::tsv, "tsv", weight, {}, [](const ModelOutput& out) { return losses::tsv(out.sky); });
}

Term entropy(double weight, double prior_intensity, double total_flux) {
  check_positive("entropy", "prior_intensity", prior_intensity);
  check_positive("entropy", "total_flux", total_flux);
  return Term::known(TermKind::entropy, "entropy", weight, {prior_intensity, total_flux},
                     [=](const ModelOutput& out) { return losses::entropy(out.sky, prior_intensity, total_flux); });
}

Term edge_clamp(double weight) {
  return Term::known(TermKind::edge_clamp, "edge_clamp", weight, {},
                     [](const ModelOutput& out) { return losses::edge_clamp(out.sky); });
}

Term psd(double weight, double length_scale) {
  check_positive("psd", "length_scale", length_scale);
  const auto inverse_power = std::make_shared<InversePower>(length_scale);
  return Term::known(TermKind::psd, "psd", weight, {length_scale}, [=](const ModelOutput& out) {
    return losses::psd(out.visibilities(), inverse_power->like(out.visibilities(), out.coords()));
  });
}

Term uv_sparsity(double weight, double q_max) {
  if (!(q_max >= 0) || !std::isfinite(q_max)) {
    throw ValueError(fmt::format("q_max of term uv_sparsity is {}; it must be finite and >= 0", q_max));
  }
  return Term::known(TermKind::uv_sparsity, "uv_sparsity", weight, {q_max},
                     [=](const ModelOutput& out) { return losses::uv_sparsity(out.visibilities(), out.coords(), q_max); });
}

}  // namespace mpol::terms
