#include "bindings.h"

#include <mpol_cpp/losses/visibility_losses.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::python {

void bind_losses(py::module_& parent) {
  auto module = parent.def_submodule(
      "losses",
      "The losses of MPoL, for loops written by hand: differentiable, one value for each problem in leading dimensions.");
  const auto gridded = [](Tensor (*loss)(const Tensor&, const GriddedDataset&)) {
    return [loss](const Tensor& visibilities, const std::shared_ptr<GriddedDatasetImpl>& dataset) {
      return loss(visibilities, GriddedDataset(dataset));
    };
  };
  module.def("chi_squared", &losses::chi_squared, py::arg("model"), py::arg("data"), py::arg("weights"), "sum w |V - M|^2.");
  module.def("nll", &losses::nll, py::arg("model"), py::arg("data"), py::arg("weights"), "chi^2 / (2 N).");
  module.def("log_likelihood", &losses::log_likelihood, py::arg("model"), py::arg("data"), py::arg("weights"),
             "-N ln(2 pi) + sum ln w - chi^2 / 2.");
  module.def("neg_log_likelihood_avg", &losses::neg_log_likelihood_avg, py::arg("model"), py::arg("data"), py::arg("weights"),
             "-ln L / (2 N).");
  module.def("chi_squared_gridded", gridded(&losses::chi_squared_gridded), py::arg("visibilities"), py::arg("dataset"),
             "Of a packed cube at the cells.");
  module.def("nll_gridded", gridded(&losses::nll_gridded), py::arg("visibilities"), py::arg("dataset"),
             "Of a packed cube at the cells.");
  module.def("log_likelihood_gridded", gridded(&losses::log_likelihood_gridded), py::arg("visibilities"), py::arg("dataset"),
             "Of a packed cube at the cells.");
  module.def(
      "sparsity",
      [](const Tensor& sky, const std::optional<Tensor>& mask) {
        return mask ? losses::sparsity(sky, *mask) : losses::sparsity(sky);
      },
      py::arg("sky_cube"), py::arg("mask") = py::none(), "sum |I|.");
  module.def("tv_image", &losses::tv_image, py::arg("sky_cube"), py::arg("epsilon") = 1e-10,
             "Total variation of each channel's image.");
  module.def("tv_slope", &losses::tv_slope, py::arg("sky_cube"), py::arg("epsilon") = 1e-10,
             "Total variation of second order of each channel's image.");
  module.def("tv_channel", &losses::tv_channel, py::arg("sky_cube"), py::arg("epsilon") = 1e-10,
             "Total variation between neighbouring channels.");
  module.def("tsv", &losses::tsv, py::arg("sky_cube"), "Total squared variation.");
  module.def("entropy", py::overload_cast<const Tensor&, double, double>(&losses::entropy), py::arg("sky_cube"),
             py::arg("prior_intensity"), py::arg("total_flux") = 10.0, "(1/zeta) sum I ln(I/p).");
  module.def("group_sparsity", &losses::group_sparsity, py::arg("sky_cube"), py::arg("epsilon") = 1e-10,
             "sum over pixels of the norm of their spectrum.");
  module.def("spectral_smoothness", &losses::spectral_smoothness, py::arg("sky_cube"),
             "Squared second differences along channels.");
  module.def("wavelets", &losses::wavelets, py::arg("sky_cube"), "sum of |I| in the bases of Dirac and Daubechies 1 to 8.");
  module.def("edge_clamp", &losses::edge_clamp, py::arg("sky_cube"), "Sum of squares of the pixels at the edges.");
}

}  // namespace mpol::python
