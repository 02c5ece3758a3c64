#include <mpol_cpp/regularizers/uv_sparsity.h>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::uv_sparsity(const at::Tensor& packed_visibilities, const GridCoords& coords, double q_max) {
  detail::check_visibility_cube(packed_visibilities);
  if (!(q_max >= 0)) throw ValueError(fmt::format("q_max is {} lambda; it must be at least 0", q_max));
  const auto beyond = (coords.packed_q() > q_max).to(packed_visibilities.device());
  return detail::sum_cube(at::view_as_real(packed_visibilities).abs().sum({-1}) * beyond);
}

const Regularizer& regularizers::UvSparsity::descriptor() {
  static const Regularizer own{
      .name = "uv_sparsity",
      .help = "Visibilities beyond --uv-sparsity-q-max",
      .settings = {{.name = "q_max",
                    .may_be_zero = true,
                    .option = "uv-sparsity-q-max",
                    .unit = "LAMBDA",
                    .help = "Visibilities beyond this baseline are made sparse",
                    .missing = "needs to know where it begins"}},
      .waits_for_device = true,  // makes its mask on the host
      .recorded_when_off = true,
      .function =
          [](const std::vector<double>& with) {
            return [q_max = with[0]](const RegularizerInput& input) {
              return losses::uv_sparsity(input.visibilities(), input.coords, q_max);
            };
          },
  };
  return own;
}

}  // namespace mpol
