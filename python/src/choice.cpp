#include "bindings.h"

#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/crossval/folds.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/train/usual_image.h>

namespace mpol::python {
namespace {

Folds folds_named(const std::string& split, const GridCoords& coords, const Visibilities& visibilities,
                  const FoldOptions& options) {
  const bool dartboard = value_named<bool>("split", split, {{"random", false}, {"dartboard", true}});
  return dartboard ? Folds::dartboard(coords, visibilities, options) : Folds::random_cells(coords, visibilities, options);
}

Search search_named(const std::string& search, std::int64_t points, std::uint64_t seed) {
  if (search == "compass") return Search::compass(0.5, points);
  if (search == "grid") return Search::grid();
  if (search == "random") return Search::random(points, seed);
  throw ValueError(fmt::format("search: {}; it must be one of compass, grid, random", search));
}

/// One unit of the noise of a term that is searched.
double unit_of(const Term& term, const NoiseUnit& noise, const GridCoords& coords) {
  const auto unit = lambda_unit(term, noise, coords);
  if (!unit) throw ValueError(fmt::format("cross_validate: {} has no unit of noise in which it could be searched", term.name()));
  return *unit;
}

Scan cross_validate(const GridCoords& coords, const Visibilities& visibilities, const std::vector<Term>& terms,
                    std::int64_t folds, const std::string& split, const std::string& search, std::int64_t points,
                    std::uint64_t seed, double tolerance, const std::optional<std::function<void(const Scan&)>>& on_point) {
  auto data =
      exact_fold_data(coords, visibilities, folds_named(split, coords, visibilities, FoldOptions().folds(folds).seed(seed)));
  const double cells = data.front().train->normalizer() + data.front().test->normalizer();
  const auto noise = noise_unit(coords, visibilities, visibilities.nchan(), cells);
  std::vector<SearchAxis> axes;
  for (const auto& term : terms) axes.push_back({.term = term.name(), .unit = unit_of(term, noise, coords)});
  auto options = CrossValidatorOptions()
                     .search(search_named(search, points, seed))
                     .train(TrainOptions().optimizer(OptimizerKind::pogm).tolerance(tolerance).epochs(2000));
  if (on_point) options.on_point(*on_point);
  const auto model_of = [](const FoldData& fold) -> std::shared_ptr<ImageModel> {
    const auto start = auto_start(fold.train_cells).to(torch::kFloat32);
    return std::make_shared<GriddedNetImpl>(
        GriddedNetOptions(fold.train_cells->coords()).base_cube(start).pixel_mapping(nonnegative_mapping()));
  };
  return CrossValidator(std::move(data), model_of, terms, std::move(axes), std::move(options)).run();
}

std::map<std::string, double> weights_at(const Scan& scan, std::size_t point) {
  std::map<std::string, double> weights;
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis) weights.emplace(scan.axes[axis].term, scan.lambda(point, axis));
  return weights;
}

}  // namespace

void bind_choice(py::module_& module) {
  module.def(
      "image",
      [](const GridCoords& coords, const Visibilities& visibilities, std::optional<double> sparsity, std::optional<double> tv,
         std::optional<double> tv_slope, double tolerance, const std::string& mode, const std::optional<at::ScalarType>& dtype,
         const std::optional<std::string>& sign) {
        auto options = UsualImageOptions().sparsity(sparsity).tv(tv).tv_slope(tv_slope).tolerance(tolerance).dtype(
            dtype.value_or(torch::kFloat32));
        if (sign) {
          options.sign(value_named<PixelSign>("sign", *sign, {{"positive", PixelSign::positive}, {"either", PixelSign::either}}));
        }
        return usual_image(coords, visibilities, channel_map(visibilities, mode), options);
      },
      py::arg("coords"), py::arg("visibilities"), py::arg("sparsity") = py::none(), py::arg("tv") = py::none(),
      py::arg("tv_slope") = py::none(), py::arg("tolerance") = 1e-3, py::arg("mode") = "cube", py::arg("dtype") = py::none(),
      py::arg("sign") = py::none(), Unlocked(),
      "The image of `mpol image` where nothing is said: exact likelihood, sparsity and total variation of image and slopes in "
      "units of the "
      "noise, "
      "converged. (nchan, npix, "
      "npix) float64, Jy/arcsec^2, sky orientation. sign: positive or either, whether pixels may be below 0; "
      "by default those of Stokes Q, U and V.");

  module.def(
      "lambda_unit",
      [](const GridCoords& coords, const Visibilities& visibilities, const Term& term, const Likelihood& likelihood,
         std::int64_t nchan) {
        return lambda_unit(term, noise_unit(coords, visibilities, nchan, likelihood.normalizer()), coords);
      },
      py::arg("coords"), py::arg("visibilities"), py::arg("term"), py::arg("likelihood"), py::arg("nchan") = 1, Unlocked(),
      "The natural unit of a term's lambda, from the noise of the data, or None.");

  py::class_<Scan>(module, "Scan", "What a cross-validation found.")
      .def_property_readonly(
          "chosen", [](const Scan& self) { return weights_at(self, self.chosen); }, "lambda of each term at the least score.")
      .def_property_readonly(
          "score", [](const Scan& self) { return self.best().score(); }, "The least: chi^2 / (2 N) of what was held out.")
      .def_property_readonly(
          "points",
          [](const Scan& self) {
            std::vector<std::pair<std::map<std::string, double>, double>> points;
            for (std::size_t i = 0; i < self.points.size(); ++i) points.emplace_back(weights_at(self, i), self.points[i].score());
            return points;
          },
          "(lambda of each term, score), in the order in which they were tried.")
      .def_property_readonly("at_bound", &Scan::at_bound, "Terms whose lambda lies at the end of what the search could reach.")
      .def_property_readonly("is_flat", &Scan::is_flat, "Whether the data do not tell the points apart.")
      .def_readonly("fits", &Scan::fits, "Fits that were taken.")
      .def_readonly("seconds", &Scan::seconds, "Of all fits.");
  module.def("cross_validate", &cross_validate, py::arg("coords"), py::arg("visibilities"), py::arg("terms"), py::kw_only(),
             py::arg("folds") = 5, py::arg("split") = "random", py::arg("search") = "compass", py::arg("points") = 16,
             py::arg("seed") = 0, py::arg("tolerance") = 5e-3, py::arg("on_point") = py::none(), Unlocked(),
             "Chooses the weights of terms by the visibilities of held-out uv cells, as mpol crossval. on_point: called with the "
             "Scan after each.");
}

}  // namespace mpol::python
