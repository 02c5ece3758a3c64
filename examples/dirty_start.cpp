// Where a fit starts: an empty image, the dirty image, or one chosen from the data. The way is shorter or longer, the end the
// same.
//
// usage: dirty_start [visibilities.npz] [figure.png] [epochs]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// A model that begins with an image, (nchan, npix, npix), Jy/arcsec^2, > 0.
mpol::GriddedNet model_from(const mpol::GridCoords& coords, const torch::Tensor& image) {
  const auto base = mpol::softplus_mapping().inverse(image);
  return mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(base));
}

void run(const std::string& input, const std::string& output, int epochs) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto channels = mpol::ChannelMap::cube(visibilities.nchan());

  // The dirty image in the unit of models. Its negative sidelobes cannot be intensities: they begin near zero.
  const auto imager =
      mpol::DirtyImager(coords, visibilities, mpol::DirtyImagerOptions().robust(0.5).unit(mpol::ImageUnit::jy_per_arcsec2));
  const auto dirty = imager.image();
  const auto positive = dirty.clamp_min(1e-3 * dirty.max());

  // MPoL's way to it: steps of gradient descent on the distance to the dirty image.
  auto descended = mpol::GriddedNet(mpol::GriddedNetOptions(coords).dtype(torch::kFloat64));
  const double distance = mpol::train_to_dirty_image(descended, dirty, mpol::TrainToDirtyOptions().learning_rate(20).steps(200));
  fmt::print("dirty image: {:.4g} from zero, {:.4g} from what descent makes of it, {:.4g} from its positive part\n",
             dirty.norm().item<double>(), distance, (dirty - positive).norm().item<double>());

  struct Start {
    std::string name;
    mpol::GriddedNet model;
  };
  const std::vector<Start> starts = {{"empty", mpol::GriddedNet(coords)},
                                     {"dirty", model_from(coords, positive)},
                                     {"descent", descended},
                                     {"auto", model_from(coords, mpol::auto_start(coords, visibilities, channels))}};

  // The end of all ways, from any start: the optimum, which a convex solver finds.
  const auto objective = mpol::Objective(mpol::ExactLikelihood(coords, visibilities, channels),
                                         {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(2e-3)});
  auto intensities =
      mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(positive).pixel_mapping(mpol::nonnegative_mapping()));
  const auto to_the_end = mpol::TrainOptions().optimizer(mpol::OptimizerKind::pogm).epochs(20000);
  const double optimum = mpol::Trainer(intensities, objective, to_the_end).fit().loss.total();
  fmt::print("optimum {:.5g}\n", optimum);

  mpol::plot::CurvePanel panel;
  panel.x_label = "epoch", panel.y_label = "loss / optimum - 1", panel.y_scale = mpol::plot::AxisScale::logarithmic;
  for (const auto& [name, model] : starts) {
    const auto fit = mpol::Trainer(model, objective, mpol::TrainOptions().epochs(epochs).dtype(torch::kFloat64)).fit();
    mpol::plot::Curve curve{name, mpol::plot::CurveStyle::line, {}, {}};
    std::int64_t near = epochs;  // from when on it stays within a hundredth
    for (const auto& row : fit.history) {
      const double above = row.total() / optimum - 1;
      if (above < 0.01) near = std::min(near, row.epoch);
      else near = epochs;
      curve.x.push_back(static_cast<double>(row.epoch));
      curve.y.push_back(above);
    }
    fmt::print("{:8} loss {:8.5g} at first, within 1 % of the optimum from epoch {}, {:.5g} in the end\n", name,
               fit.history.front().total(), near, fit.loss.total());
    panel.curves.push_back(curve);
  }
  mpol::plot::Page page;
  page.panels = {panel};
  if (mpol::plot::write_figure(output, page)) fmt::print("figure written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 300;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "dirty_start.png", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dirty_start: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
