#include "bindings.h"

#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>

namespace mpol::python {
namespace {

/// A likelihood that is a function of Python's.
class FunctionLikelihoodImpl : public Module<FunctionLikelihoodImpl>, public Likelihood {
 public:
  FunctionLikelihoodImpl(const GridCoords& coords, std::function<Tensor(const Tensor&)> function, double normalizer)
      : Likelihood(coords), function_(std::move(function)), normalizer_(normalizer) {}
  void reset() override {}
  Tensor chi_squared(const Tensor& sky) override { return function_(sky); }
  double normalizer() const override { return normalizer_; }
  std::string name() const override { return "function"; }

 private:
  std::function<Tensor(const Tensor&)> function_;
  double normalizer_;
};

NoiseModel noise_named(const std::string& noise, const std::optional<double>& parameter) {
  if (noise == "gaussian") return NoiseModel::gaussian();
  if (noise == "amplitude") return NoiseModel::amplitude();
  if (noise == "student") return parameter ? NoiseModel::student(*parameter) : NoiseModel::student();
  if (noise == "huber") return parameter ? NoiseModel::huber(*parameter) : NoiseModel::huber();
  throw ValueError(fmt::format("noise: {}; it must be one of gaussian, student, huber, amplitude", noise));
}

template <typename Impl>
py::class_<Impl, Likelihood, std::shared_ptr<Impl>> likelihood_class(py::module_& module, const char* name, const char* words) {
  py::class_<Impl, Likelihood, std::shared_ptr<Impl>> type(module, name, py::multiple_inheritance(), words);
  add_module_methods(type);
  return type;
}

}  // namespace

void bind_likelihoods(py::module_& module) {
  py::class_<Likelihood, std::shared_ptr<Likelihood>>(module, "Likelihood", "How an image is compared with data.")
      .def("chi_squared", &Likelihood::chi_squared, py::arg("sky"), Unlocked(),
           "chi^2, or -2 ln L, of (…, nchan, npix, npix) in Jy/arcsec^2: (…), differentiable, not normalized.")
      .def_property_readonly("normalizer", &Likelihood::normalizer, "By twice which an Objective divides: the occupied uv cells.")
      .def_property_readonly("samples", &Likelihood::samples, "Terms of the sum in chi^2: samples or cells of all channels.")
      .def_property_readonly("coords", &Likelihood::coords, "The grid of the images that it takes.")
      .def_property_readonly("name", &Likelihood::name, "gridded, exact, loose, ...")
      .def_property_readonly("memory_bytes", &Likelihood::memory_bytes, "What it holds.");

  likelihood_class<GriddedLikelihoodImpl>(module, "GriddedLikelihood", "chi^2 of cell averages, as in MPoL.")
      .def(py::init([](const std::shared_ptr<GriddedDatasetImpl>& dataset) {
             return std::make_shared<GriddedLikelihoodImpl>(GriddedDataset(dataset));
           }),
           py::arg("dataset"));
  likelihood_class<ExactLikelihoodImpl>(module, "ExactLikelihood",
                                        "chi^2 of the visibilities themselves, at a cost that does not depend on their number.")
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, const std::string& mode) {
             return std::make_shared<ExactLikelihoodImpl>(coords, visibilities, channel_map(visibilities, mode));
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("mode") = "cube", Unlocked(),
           "mode: cube, one image channel for each of the data's, or continuum, one of all.");
  likelihood_class<LooseLikelihoodImpl>(module, "LooseLikelihood", "chi^2 of the visibilities by nonuniform transforms.")
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, const std::string& mode, double tolerance) {
             return std::make_shared<LooseLikelihoodImpl>(coords, visibilities, channel_map(visibilities, mode),
                                                          NufftOptions{.tolerance = tolerance});
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("mode") = "cube", py::arg("tolerance") = 1e-6, Unlocked())
      .def("model_visibilities", &LooseLikelihoodImpl::model_visibilities, py::arg("sky"), Unlocked(),
           "The image at the points of the data, (…, nchan, nvis) complex; differentiable.");
  likelihood_class<NoiseLikelihoodImpl>(module, "NoiseLikelihood", "-2 ln L of loose visibilities whose noise is not Gaussian.")
      .def(py::init([](const GridCoords& coords, const Visibilities& visibilities, const std::string& noise,
                       const std::optional<double>& parameter, const std::string& mode, double tolerance) {
             return std::make_shared<NoiseLikelihoodImpl>(coords, visibilities, channel_map(visibilities, mode),
                                                          noise_named(noise, parameter), NufftOptions{.tolerance = tolerance});
           }),
           py::arg("coords"), py::arg("visibilities"), py::arg("noise") = "student", py::arg("parameter") = py::none(),
           py::arg("mode") = "cube", py::arg("tolerance") = 1e-6, Unlocked(),
           "noise: student (parameter: degrees of freedom, 4), huber (threshold in sigma, 1.345), amplitude or gaussian.");
  likelihood_class<FunctionLikelihoodImpl>(module, "FunctionLikelihood", "A likelihood of one's own: a function of torch.")
      .def(py::init<const GridCoords&, std::function<Tensor(const Tensor&)>, double>(), py::arg("coords"), py::arg("chi_squared"),
           py::arg("normalizer"), "chi_squared: (…, nchan, npix, npix) in Jy/arcsec^2 -> (…), differentiable.");

  module.def(
      "predict",
      [](const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities, const std::string& mode) {
        return losses::predicted_visibilities(coords, sky.detach(), visibilities, channel_map(visibilities, mode));
      },
      py::arg("coords"), py::arg("sky"), py::arg("visibilities"), py::arg("mode") = "cube", Unlocked(),
      "Visibilities of an image at the points of data, (nchan, nvis) complex128, Jy.");
}

}  // namespace mpol::python
