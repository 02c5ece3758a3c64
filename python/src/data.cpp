#include "bindings.h"

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/uv_unit.h>

namespace mpol::python {
namespace {

Visibilities make_visibilities(const py::object& uu, const py::object& vv, const py::object& weight, const py::object& data,
                               const py::object& frequency, const std::string& uv_unit) {
  auto u = tensor_of(uu), v = tensor_of(vv);
  const auto samples = tensor_of(data);
  Tensor frequencies;
  if (!frequency.is_none()) frequencies = tensor_of(frequency).to(torch::kFloat64).reshape({-1});
  const auto unit = io::uv_unit_from_name(uv_unit);
  if (unit == io::UvUnit::metres && !frequencies.defined()) {
    throw ValueError("Visibilities: uv_unit=\"m\" needs frequency, in Hz: one for each channel");
  }
  if (unit == io::UvUnit::klambda) u = u * 1e3, v = v * 1e3;
  auto baselines = unit == io::UvUnit::metres ? Baselines::in_metres(u, v, frequencies) : Baselines::in_lambda(u, v);
  auto weights = tensor_of(weight);
  if (weights.dim() < samples.dim()) weights = weights.expand(samples.sizes());
  Visibilities visibilities(std::move(baselines), samples, weights);
  if (frequencies.defined()) visibilities.set_frequencies(frequencies);
  return visibilities;
}

ScatterCheck scatter_check_named(const std::string& name) {
  return value_named<ScatterCheck>("scatter_check", name,
                                   {{"warn", ScatterCheck::warn}, {"error", ScatterCheck::error}, {"off", ScatterCheck::off}});
}

}  // namespace

void bind_data(py::module_& module) {
  py::class_<GridCoords>(module, "GridCoords", "The image grid and the uv grid that is its Fourier dual.")
      .def(py::init<double, std::int64_t>(), py::arg("cell_size"), py::arg("npix"),
           "Pixels of cell_size arcsec, npix (even) along each axis.")
      .def_property_readonly("cell_size", &GridCoords::cell_size, "Width of a pixel, arcsec.")
      .def_property_readonly("npix", &GridCoords::npix, "Pixels along each axis.")
      .def_property_readonly("cell_area", &GridCoords::cell_area, "arcsec^2.")
      .def_property_readonly("dl", &GridCoords::dl, "Width of a pixel, radian.")
      .def_property_readonly("du", &GridCoords::du, "Width of a uv cell, wavelengths.")
      .def_property_readonly("max_uv", &GridCoords::max_uv, "The largest |u| or |v| on the grid, wavelengths.")
      .def_property_readonly("img_ext", &GridCoords::img_ext, "Extent for imshow(…, origin=\"lower\"), arcsec.")
      .def_property_readonly("sky_x", &GridCoords::sky_x, "(npix, npix), offset of each pixel to the East, arcsec.")
      .def_property_readonly("sky_y", &GridCoords::sky_y, "(npix, npix), to the North, arcsec.")
      .def("check_data_fit", &GridCoords::check_data_fit, py::arg("max_abs_u"), py::arg("max_abs_v"),
           "Raises DataError unless such baselines fit.")
      .def("__eq__", [](const GridCoords& a, const GridCoords& b) { return a == b; })
      .def("__repr__", [](const GridCoords& coords) {
        return fmt::format("GridCoords(cell_size={:g}, npix={})", coords.cell_size(), coords.npix());
      });

  py::class_<Visibilities>(module, "Visibilities",
                           "Loose complex visibilities with weights, V = ∫ I exp(-2πi(ul + vm)), l to the East.")
      .def(py::init(&make_visibilities), py::arg("uu"), py::arg("vv"), py::arg("weight"), py::arg("data"),
           py::arg("frequency") = py::none(), py::arg("uv_unit") = "lambda",
           "Of arrays (nvis) or (nchan, nvis): u and v in wavelengths (or `klambda`, or `m` with the channels' frequency in Hz), "
           "weights in "
           "Jy^-2, data complex in Jy. Arrays of NumPy and tensors are not copied.")
      .def_property_readonly("nchan", &Visibilities::nchan, "Channels.")
      .def_property_readonly("nvis", &Visibilities::nvis, "Samples of each channel.")
      .def_property_readonly("data", &Visibilities::data, "(nchan, nvis) complex, Jy.")
      .def_property_readonly("weights", &Visibilities::weights, "(nchan, nvis), Jy^-2.")
      .def_property_readonly(
          "frequencies",
          [](const Visibilities& self) {
            return self.frequencies().defined() ? std::optional(self.frequencies()) : std::nullopt;
          },
          "(nchan) Hz, or None.")
      .def(
          "uv", [](const Visibilities& self, std::int64_t channel) { return self.baselines().channel(channel); },
          py::arg("channel") = 0, "u and v of a channel, wavelengths.")
      .def("select", &Visibilities::select, py::arg("samples"), "Some of the samples, by their indices (int64).")
      .def("select_channels", &Visibilities::select_channels, py::arg("channels"), "Some of the channels, from 0, in that order.")
      .def("__repr__",
           [](const Visibilities& self) { return fmt::format("Visibilities(nchan={}, nvis={})", self.nchan(), self.nvis()); });

  auto dataset = py::class_<GriddedDatasetImpl, std::shared_ptr<GriddedDatasetImpl>>(
      module, "GriddedDataset", "Averages of the visibilities in the occupied uv cells.");
  dataset.def_property_readonly("nchan", &GriddedDatasetImpl::nchan, "Channels.")
      .def_property_readonly("ncells", &GriddedDatasetImpl::ncells, "Occupied cells of all channels.")
      .def_property_readonly("coords", &GriddedDatasetImpl::coords, "The grid.")
      .def_property_readonly("visibilities", &GriddedDatasetImpl::visibilities, "(ncells) complex, Jy.")
      .def_property_readonly("weights", &GriddedDatasetImpl::weights, "(ncells), Jy^-2.")
      .def_property_readonly("cells", &GriddedDatasetImpl::cells, "(ncells) int64, flat indices into the packed cube.")
      .def("at_cells", &GriddedDatasetImpl::at_cells, py::arg("packed_cube"), "A packed cube at the occupied cells.");
  add_module_methods(dataset);

  py::class_<DataAverager>(module, "DataAverager", "Averages loose visibilities in uv cells.")
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, bool hermitian_pairs,
                       const std::string& scatter_check, const std::string& mode) {
             return DataAverager(coords, visibilities,
                                 DataAveragerOptions()
                                     .hermitian_pairs(hermitian_pairs)
                                     .scatter_check(scatter_check_named(scatter_check))
                                     .channel_map(channel_map(visibilities, mode)));
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("hermitian_pairs") = false, py::arg("scatter_check") = "warn",
           py::arg("mode") = "cube", Unlocked())
      .def(
          "to_dataset", [](const DataAverager& self) { return self.to_dataset().ptr(); }, "The averages, in float64.");

  py::class_<DirtyImager>(module, "DirtyImager", "Dirty images and beams of the samples at their own u, v.")
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, const std::string& weighting, double robust,
                       double taper, const std::string& unit, const std::string& imaging, const std::string& mode) {
             auto options = DirtyImagerOptions().robust(robust).channel_map(channel_map(visibilities, mode));
             options.weighting(value_named<Weighting>(
                 "weighting", weighting,
                 {{"natural", Weighting::natural}, {"uniform", Weighting::uniform}, {"briggs", Weighting::briggs}}));
             options.unit(value_named<ImageUnit>(
                 "unit", unit, {{"Jy/beam", ImageUnit::jy_per_beam}, {"Jy/arcsec2", ImageUnit::jy_per_arcsec2}}));
             options.imaging(value_named<Imaging>("imaging", imaging, {{"exact", Imaging::exact}, {"cells", Imaging::cells}}));
             if (taper > 0) options.taper(gaussian_taper(taper));
             return DirtyImager(coords, visibilities, options);
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("weighting") = "briggs", py::arg("robust") = 0.5,
           py::arg("taper") = 0.0, py::arg("unit") = "Jy/beam", py::arg("imaging") = "exact", py::arg("mode") = "cube",
           Unlocked(),
           "weighting: natural, uniform or briggs with robust; taper: FWHM in arcsec; imaging: exact, or cells as MPoL.")
      .def("image", &DirtyImager::image, Unlocked(), "(nchan, npix, npix), sky orientation, in the unit asked for.")
      .def("image_of", py::overload_cast<const Tensor&>(&DirtyImager::image_of, py::const_), py::arg("visibilities"), Unlocked(),
           "The same of other visibilities (nchan, nvis) with the weights of these: of data minus model the residual image.")
      .def("beam", &DirtyImager::beam, Unlocked(), "(nchan, npix, npix), peak 1.")
      .def("noise", &DirtyImager::noise, "(nchan): what the weights promise, in the image's unit.")
      .def("beam_area", &DirtyImager::beam_area, Unlocked(), "(nchan), arcsec^2.")
      .def(
          "fitted_beam",
          [](const DirtyImager& self) {
            std::vector<std::optional<std::tuple<double, double, double>>> beams;
            for (const auto& beam : self.fitted_beam()) {
              beams.push_back(beam ? std::optional(std::tuple(beam->major, beam->minor, beam->position_angle)) : std::nullopt);
            }
            return beams;
          },
          Unlocked(), "Of each channel (major, minor, position angle): arcsec, arcsec, radian from North through East; or None.");
}

}  // namespace mpol::python
