#include "bindings.h"

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/term.h>

namespace mpol::python {
namespace {

std::shared_ptr<GriddedNetImpl> make_net(const GridCoords& coords, std::int64_t nchan, double start,
                                         const std::optional<Tensor>& base_cube, const std::string& pixel_mapping,
                                         const std::optional<Tensor>& mask, const std::string& smoothing,
                                         const std::optional<at::ScalarType>& dtype) {
  auto options = GriddedNetOptions(coords).nchan(nchan).start(start).dtype(dtype);
  if (base_cube) options.base_cube(*base_cube);
  const auto make_mapping = value_named<PixelMapping (*)(const Tensor&)>(
      "pixel_mapping", pixel_mapping,
      {{"softplus", softplus_mapping}, {"nonnegative", nonnegative_mapping}, {"either_sign", either_sign_mapping}});
  options.pixel_mapping(make_mapping(mask.value_or(Tensor())));
  return std::make_shared<GriddedNetImpl>(
      options, value_named<Smoothing>("smoothing", smoothing, {{"hann", Smoothing::hann}, {"none", Smoothing::none}}));
}

}  // namespace

void bind_images(py::module_& module) {
  py::class_<ImageModel, std::shared_ptr<ImageModel>>(module, "ImageModel", "What makes a sky cube of parameters.")
      .def_property_readonly("coords", &ImageModel::coords, "The grid.")
      .def("make_sky", &ImageModel::make_sky, "(…, nchan, npix, npix), Jy/arcsec^2, sky orientation; differentiable.");

  auto net = py::class_<GriddedNetImpl, ImageModel, std::shared_ptr<GriddedNetImpl>>(
      module, "GriddedNet", py::multiple_inheritance(),
      "Base pixels, softplus, Hann convolution, image, Fourier transform: MPoL's GriddedNet (SimpleNet with start=0.05).");
  net.def(py::init(&make_net), py::arg("coords"), py::arg("nchan") = 1, py::arg("start") = -3.0,
          py::arg("base_cube") = py::none(), py::arg("pixel_mapping") = "softplus", py::arg("mask") = py::none(),
          py::arg("smoothing") = "hann", py::arg("dtype") = py::none(),
          "base_cube: start values (…, nchan, npix, npix); leading dimensions are problems of a batch. pixel_mapping: softplus, "
          "or nonnegative or either_sign for "
          "optimizer=\"pogm\", which needs pixels that are intensities; either_sign: they may be below 0.")
      .def("forward", &GriddedNetImpl::forward, "Packed visibilities on the uv cells, (…, nchan, npix, npix) complex, Jy.")
      .def("__call__", &GriddedNetImpl::forward)
      .def_property_readonly("sky_cube", &GriddedNetImpl::sky_cube, "The image of the last forward() or make_sky().")
      .def_property_readonly("flux", &GriddedNetImpl::flux, "(…, nchan), Jy, of that image.")
      .def_property_readonly("base_cube", &GriddedNetImpl::base, "The parameters.");
  add_module_methods(net);

  py::class_<ModelOutput>(module, "ModelOutput", "What a term sees of a model.")
      .def_readonly("sky", &ModelOutput::sky, "(…, nchan, npix, npix), Jy/arcsec^2, sky orientation.")
      .def_readonly("base", &ModelOutput::base, "The base pixels.")
      .def_property_readonly("visibilities", &ModelOutput::visibilities, "Packed model visibilities, Jy.")
      .def_property_readonly("coords", &ModelOutput::coords, "The grid.");

  auto nufft = py::class_<NufftImpl, std::shared_ptr<NufftImpl>>(module, "Nufft",
                                                                 "Visibilities of an image at any u, v, and the adjoint.");
  nufft
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, std::int64_t nchan, double tolerance) {
             return std::make_shared<NufftImpl>(coords, visibilities.baselines(), nchan, NufftOptions{.tolerance = tolerance});
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("nchan") = 1, py::arg("tolerance") = 1e-6)
      .def("forward", &NufftImpl::forward, py::arg("sky"), Unlocked(),
           "(…, nchan, npix, npix) -> (…, nchan, nvis) complex, Jy; differentiable.")
      .def("__call__", &NufftImpl::forward, py::arg("sky"), Unlocked())
      .def("adjoint", &NufftImpl::adjoint, py::arg("visibilities"), Unlocked(), "Re <forward(x), y> = <x, adjoint(y)>.");

  module.def(
      "auto_start", [](const std::shared_ptr<GriddedDatasetImpl>& dataset) { return auto_start(GriddedDataset(dataset)); },
      py::arg("dataset"), Unlocked(),
      "An image as bright as the data say, (nchan, npix, npix), Jy/arcsec^2, to begin a fit with.");
}

}  // namespace mpol::python
