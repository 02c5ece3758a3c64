#include <mpol_cpp/regularizers/psd.h>

#include <memory>
#include <optional>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/expected_power.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {
namespace {

/// 1/P, made once for each grid, dtype and device it meets.
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

at::Tensor losses::psd(const at::Tensor& packed_visibilities, const at::Tensor& inverse_power) {
  detail::check_visibility_cube(packed_visibilities);
  return detail::sum_cube(at::view_as_real(packed_visibilities).square().sum({-1}) * inverse_power);
}

at::Tensor losses::psd(const at::Tensor& packed_visibilities, const GridCoords& coords, double length_scale) {
  const auto options = packed_visibilities.options().dtype(c10::toRealValueType(packed_visibilities.scalar_type()));
  const auto inverse_power = inverse_expected_power(coords, length_scale, c10::typeMetaToScalarType(options.dtype()));
  return psd(packed_visibilities, inverse_power.to(options));
}

at::Tensor regularizers::Psd::cell_weights(const GridCoords& coords, const double* own, bool precise) {
  return losses::inverse_expected_power(coords, own[0], precise ? torch::kFloat64 : torch::kFloat32);
}

const Regularizer& regularizers::Psd::descriptor() {
  static const Regularizer own{
      .name = "psd",
      .help = "Power spectrum of a Gaussian process; needs --psd-length",
      .settings = {{.name = "length_scale",
                    .option = "psd-length",
                    .unit = "ARCSEC",
                    .help = "Length scale of the power spectrum",
                    .missing = "needs the length scale of its power spectrum"}},
      .noise_scale = NoiseScale::curvature,
      .convexity = Convexity::quadratic,
      .recorded_when_off = true,
      .function =
          [](const std::vector<double>& with) {
            const auto power = std::make_shared<InversePower>(with[0]);
            return [power](const RegularizerInput& input) {
              return losses::psd(input.visibilities(), power->like(input.visibilities(), input.coords));
            };
          },
  };
  return own;
}

}  // namespace mpol
