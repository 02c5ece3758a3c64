// Many problems at once: a leading dimension of the base cube holds images that are fitted side by side, each with a lambda of
// its own, and each until it has converged.
//
// usage: many_problems [visibilities.npz] [figure.png]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& figure) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto dataset =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off)).to_dataset();
  const std::vector<double> lambdas = {0, 2e-4, 2e-3, 2e-2};
  const auto problems = static_cast<std::int64_t>(lambdas.size());

  // (problems, nchan, npix, npix): nothing else changes. Likelihood and terms give one value for each problem.
  const auto start = mpol::softplus_mapping().inverse(mpol::auto_start(dataset)).to(torch::kFloat32);
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(start.expand({problems, -1, -1, -1})));
  const auto objective = mpol::Objective(mpol::GriddedLikelihood(dataset), {mpol::terms::tv_image(1).with_weights(lambdas)});

  // A problem that has converged stands still while others go on; rate_factors would give each a learning rate of its own.
  const auto options =
      mpol::TrainOptions().learning_rate(0.05).epochs(1500).stop_relative(2e-3).stop_window(50).stop_scope(mpol::StopScope::each);
  const auto result = mpol::Trainer(model, objective, options).fit();

  const auto sky = model->make_sky().detach();        // (problems, nchan, npix, npix)
  const auto value = objective.evaluate(model);       // (problems) each
  const auto flux = mpol::flux(sky, coords).sum(-1);  // (problems)
  for (std::int64_t i = 0; i < problems; ++i) {
    const auto k = static_cast<std::size_t>(i);
    fmt::print("tv {:6}: {:4d} epochs; nll {:.5g}, tv {:.5g}; flux {:.4g} Jy\n", lambdas[k], result.problem_epochs.at(k),
               value.nll[i].item<double>(), mpol::losses::tv_image(sky[i]).item<double>(), flux[i].item<double>());
  }

  mpol::plot::Page page;
  page.columns = 2;
  page.panel_width = 500, page.panel_height = 450;
  for (std::int64_t i = 0; i < problems; ++i) {
    mpol::plot::ImagePanel panel;
    panel.title = fmt::format("λ = {}", lambdas[static_cast<std::size_t>(i)]);
    panel.values = sky[i][0];
    panel.extent = coords.img_ext();
    panel.upper = sky[1].max().item<double>();
    panel.unit = "Jy/arcsec²";
    page.panels.emplace_back(panel);
  }
  if (mpol::plot::write_figure(figure, page)) fmt::print("figure written to {}\n", figure);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "many_problems.png");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_problems: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
