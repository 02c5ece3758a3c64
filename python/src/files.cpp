#include "bindings.h"

#include <filesystem>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/io/uvfits/uvfits.h>
#include <mpol_cpp/io/visibilities_npz.h>

namespace mpol::python {
namespace {

Visibilities read_visibilities(const std::filesystem::path& path, const std::vector<std::int64_t>& channels,
                               const std::optional<std::string>& uv_unit, bool conjugate, const std::string& select,
                               const std::string& column, const std::string& mode) {
  const bool is_set = io::is_measurement_set(path), is_uvfits = !is_set && io::is_uvfits(path);
  if (is_set || is_uvfits) {
    if (uv_unit)
      throw ValueError(fmt::format("read_visibilities: uv_unit={} for {}, which says its own", *uv_unit, path.string()));
    const auto phases = conjugate ? io::SetPhases::as_written : io::SetPhases::conjugated;
    std::unique_ptr<io::VisibilityReader> reader;
    if (is_set) {
      io::MeasurementSetOptions options;
      options.select = select;
      options.column = column;
      options.channels.numbers = channels;
      options.phases = phases;
      reader = io::open_measurement_set(path, options);
    } else {
      if (!select.empty() || !column.empty()) {
        throw ValueError(fmt::format("read_visibilities: select and column are for measurement sets; {} is none", path.string()));
      }
      io::UvfitsOptions options;
      options.channels.numbers = channels;
      options.phases = phases;
      reader = io::open_uvfits(path, options);
    }
    const bool cube = value_named<bool>("mode", mode, {{"continuum", false}, {"cube", true}});
    return (cube ? io::collect_cube(*reader) : io::collect_samples(*reader)).visibilities;
  }
  if (!select.empty() || !column.empty()) {
    throw ValueError(fmt::format("read_visibilities: select and column are for measurement sets; {} is none", path.string()));
  }
  io::ReadOptions options;
  options.channels = channels;
  options.conjugate = conjugate;
  if (uv_unit) options.uv_unit = io::uv_unit_from_name(*uv_unit);
  return io::read_npz(path, options);
}

void write_fits(const std::filesystem::path& path, const Tensor& sky, const GridCoords& coords, const std::string& unit,
                const std::optional<Visibilities>& visibilities, const std::vector<std::string>& history) {
  auto options = io::FitsOptions().history(history);
  options.unit(value_named<io::FitsUnit>("unit", unit,
                                         {{"Jy/pixel", io::FitsUnit::jy_per_pixel},
                                          {"Jy/arcsec2", io::FitsUnit::jy_per_arcsec2},
                                          {"Jy/beam", io::FitsUnit::jy_per_beam}}));
  if (visibilities) {
    options.observation(visibilities->observation());
    const auto& frequencies = visibilities->frequencies();
    if (frequencies.defined())
      options.frequencies(sky.dim() == 3 && sky.size(0) == frequencies.numel() ? frequencies : frequencies.mean().reshape({1}));
  }
  io::write_fits(path, sky.detach(), coords, options);
}

}  // namespace

void bind_files(py::module_& module) {
  module.def("read_visibilities", &read_visibilities, py::arg("path"), py::arg("channels") = std::vector<std::int64_t>{},
             py::arg("uv_unit") = py::none(), py::arg("conjugate") = false, py::arg("select") = "", py::arg("column") = "",
             py::arg("mode") = "continuum", Unlocked(),
             "Of an .npz file, a folder of .npy files, a UVFITS file, or a measurement set (select: TaQL; column; mode: "
             "continuum, all samples as one channel, or cube).");
  module.def(
      "write_npz", [](const std::filesystem::path& path, const Visibilities& visibilities) { io::write_npz(path, visibilities); },
      py::arg("path"), py::arg("visibilities"), Unlocked(), "What read_visibilities gives back.");
  module.def("write_fits", &write_fits, py::arg("path"), py::arg("sky"), py::arg("coords"), py::arg("unit") = "Jy/pixel",
             py::arg("visibilities") = py::none(), py::arg("history") = std::vector<std::string>{}, Unlocked(),
             "A sky cube in Jy/arcsec^2 as a FITS file in Jy/pixel or Jy/arcsec2, or one in Jy/beam as it is. visibilities: "
             "whose phase centre, object, "
             "date and frequencies go into the header.");
  py::class_<io::FitsImage>(module, "FitsImage", "An image read from a FITS file.")
      .def_readonly("cube", &io::FitsImage::cube, "(nchan, rows, columns) float64, sky orientation, in `unit`.")
      .def_readonly("cell_size", &io::FitsImage::cell_size, "arcsec.")
      .def_readonly("unit", &io::FitsImage::unit, "BUNIT as written.")
      .def_readonly("history", &io::FitsImage::history, "Lines of HISTORY.")
      .def_property_readonly(
          "frequencies",
          [](const io::FitsImage& self) { return self.frequencies.defined() ? std::optional(self.frequencies) : std::nullopt; },
          "(nchan) Hz, or None.");
  module.def("read_fits", &io::read_fits, py::arg("path"), Unlocked(), "The first image of a FITS file.");
}

}  // namespace mpol::python
