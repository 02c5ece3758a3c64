// Choosing lambda by cross-validation: folds of whole uv cells, a search, and the image with what it chose.
//
// usage: cross_validation [visibilities.npz] [image.fits] [points]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// A model whose pixels are intensities, for a convex fit; it begins with what its own data show.
mpol::GriddedNet model_of(const mpol::GriddedDataset& cells) {
  const auto start = mpol::auto_start(cells).to(torch::kFloat32);
  return mpol::GriddedNet(mpol::GriddedNetOptions(cells->coords()).base_cube(start).pixel_mapping(mpol::nonnegative_mapping()));
}

void run(const std::string& input, const std::string& output, int points) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto likelihood = mpol::ExactLikelihood(coords, visibilities, mpol::ChannelMap::cube(visibilities.nchan()));
  const double unit = mpol::noise_unit(coords, visibilities, visibilities.nchan(), likelihood->normalizer()).slope;

  const auto folds = mpol::Folds::random_cells(coords, visibilities, mpol::FoldOptions().folds(5));
  const std::vector<mpol::Term> terms = {mpol::terms::sparsity(unit), mpol::terms::tv_image(unit)};
  const auto options =
      mpol::CrossValidatorOptions()
          .search(mpol::Search::compass(/*decades=*/0.5, points))
          .train(mpol::TrainOptions().optimizer(mpol::OptimizerKind::pogm).tolerance(5e-3).epochs(2000))
          .on_point([](const mpol::Scan& scan) {
            const auto& point = scan.points.back();
            fmt::print("sparsity {:5.3g} U, tv {:5.3g} U: score {:.5f}\n", point.c[0], point.c[1], point.score());
          });
  mpol::CrossValidator validator(
      mpol::exact_fold_data(coords, visibilities, folds),
      [](const mpol::FoldData& fold) -> std::shared_ptr<mpol::ImageModel> { return model_of(fold.train_cells).ptr(); }, terms,
      {{"sparsity", unit}, {"tv", unit}}, options);
  const auto scan = validator.run();
  fmt::print("chosen after {} fits: sparsity {:.4g}, tv {:.4g}\n", scan.fits, scan.lambda(scan.chosen, 0),
             scan.lambda(scan.chosen, 1));

  const auto cells = mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off));
  auto model = model_of(cells.to_dataset());
  const mpol::Objective objective(
      likelihood, {mpol::terms::sparsity(scan.lambda(scan.chosen, 0)), mpol::terms::tv_image(scan.lambda(scan.chosen, 1))});
  const auto fit = mpol::TrainOptions().optimizer(mpol::OptimizerKind::pogm).epochs(20000);
  const auto result = mpol::Trainer(model, objective, fit).fit();
  fmt::print("loss {:.6g}, {} after {} epochs\n", result.loss.total(), mpol::to_string(result.stop_reason), result.epochs);
  mpol::io::write_fits(output, model->make_sky(), coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int points = argc > 3 ? std::stoi(argv[3]) : 16;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "cross_validation.fits", points);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cross_validation: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
