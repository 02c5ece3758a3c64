#include "catch.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/models/simple_net.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/train/usual_image.h>

#include "compare.h"
#include "run_example.h"
#include "tutorial_runs.h"
#ifdef MPOL_TEST_SETS
#include "set_of_visibilities.h"
#endif

using namespace mpol;
using namespace mpol::testing;

namespace {

namespace fs = std::filesystem;

const std::string horseshoe = (fs::path(MPOL_DATA_DIR) / "hd142527_band9.npz").string();
const GridCoords horseshoe_grid(0.08, 128);

GriddedDataset cells_of(const Visibilities& visibilities) {
  return DataAverager(horseshoe_grid, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
}

/// The line of a text that begins with some words.
std::string line_of(const std::string& words, const std::string& text) {
  INFO(words << " in " << text);
  const auto at = ("\n" + text).find("\n" + words);
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("the GPU tutorial has the loss of the trainer on each device", "[examples]") {
  const auto& text = run_of_tutorial("gpu").printed.at(0);
  auto model = SimpleNet(SimpleNetOptions(horseshoe_grid));
  const auto objective =
      Objective(GriddedLikelihood(cells_of(io::read_npz(horseshoe))), {terms::sparsity(1e-4), terms::tv_image(1e-4)});
  const auto fit = TrainOptions().learning_rate(0.5).epochs(300).dtype(torch::kFloat64).step(StepKind::eager);
  const auto result = Trainer(model, objective, fit).fit();
  CHECK(number_after("loss ", line_of("cpu: ", text)) == Approx(result.loss.total()).epsilon(1e-3));
  if (text.find("no GPU: ") == std::string::npos) {
    CHECK(number_after("loss ", line_of("cuda:", text)) == Approx(result.loss.total()).epsilon(1e-3));
    CHECK(number_after("the images differ by ", text) < 1e-2);
  }
}

TEST_CASE("from the dirty image the way to the optimum is shorter than from an empty one", "[examples]") {
  const auto& text = run_of_tutorial("dirty_start").printed.at(0);
  const auto visibilities = io::read_npz(horseshoe);
  const Objective objective(ExactLikelihood(horseshoe_grid, visibilities, ChannelMap::cube(1)),
                            {terms::sparsity(1e-3), terms::tv_image(2e-3)});

  // The optimum, by another method from another start.
  auto net = GriddedNet(GriddedNetOptions(horseshoe_grid)
                            .base_cube(auto_start(horseshoe_grid, visibilities, ChannelMap::cube(1)))
                            .pixel_mapping(nonnegative_mapping()));
  const auto fista = TrainOptions().optimizer(OptimizerKind::fista).epochs(20000);
  CHECK(number_after("optimum ", text) == Approx(Trainer(net, objective, fista).fit().loss.total()).epsilon(1e-3));

  // What the start from the dirty image is.
  const auto dirty = DirtyImager(horseshoe_grid, visibilities, DirtyImagerOptions().unit(ImageUnit::jy_per_arcsec2)).image();
  const auto base = softplus_mapping().inverse(dirty.clamp_min(1e-3 * dirty.max()));
  auto start = GriddedNet(GriddedNetOptions(horseshoe_grid).base_cube(base));
  const auto loss = objective.evaluate(start).total.item<double>();
  CHECK(number_after("loss ", line_of("dirty  ", text)) == Approx(loss).epsilon(1e-4));
  CHECK(number_after("dirty image: ", text) == Approx(dirty.norm().item<double>()).epsilon(1e-3));
  CHECK(number_after("from zero, ", text) < 0.7 * dirty.norm().item<double>());

  const auto way = [&](const std::string& name) { return number_after("from epoch ", line_of(name, text)); };
  for (const auto* name : {"dirty  ", "descent", "auto  "}) {
    INFO(text);
    CHECK(way(name) < 0.7 * way("empty  "));
    CHECK(number_after("loss ", line_of(name, text)) < number_after("loss ", line_of("empty  ", text)));
  }
}

TEST_CASE("loose and exact likelihood agree, and Student's noise lets outliers go", "[examples]") {
  const auto& text = run_of_tutorial("loose_and_exact").printed.at(0);
  const auto visibilities = io::read_npz(horseshoe);
  const auto sky = usual_image(horseshoe_grid, visibilities, ChannelMap::cube(1));
  const double expected = losses::loose_chi_squared(horseshoe_grid, sky, visibilities, ChannelMap::cube(1));
  CHECK(number_after("chi^2 ", line_of("exact ", text)) == Approx(expected).epsilon(1e-5));
  CHECK(number_after("chi^2 ", line_of("loose ", text)) == Approx(number_after("chi^2 ", line_of("exact ", text))).epsilon(1e-8));
  CHECK(number_after("the gradients differ by ", text) < 1e-8);
  const auto median = [&](const char* noise) { return number_after("lie below ", line_of(noise, text)); };
  CHECK(median("student  noise") < 0.9 * median("gaussian noise"));
}

TEST_CASE("total variation between channels brings both nearer to the truth", "[examples]") {
  const auto& run = run_of_tutorial("cube");
  const auto& text = run.printed.at(0);
  const auto alone = line_of("tv_channel 0 U", text), together = line_of("tv_channel 1 U", text);
  CHECK(number_after("U: ", alone) < 0.06);
  CHECK(number_after("U: ", together) < 0.95 * number_after("U: ", alone));
  const double truth = number_after("the truth's channels are ", text);
  CHECK(number_after("channels ", together) < 0.6 * number_after("channels ", alone));
  CHECK(number_after("channels ", together) > truth);
  const auto written = io::read_fits(run.folder / "cube.fits");
  CHECK(same(written.frequencies, at::tensor({230e9, 232e9}, torch::kFloat64)));
  for (std::int64_t c = 0; c < 2; ++c) CHECK(written.cube[c].sum().item<double>() == Approx(0.15).epsilon(0.05));
}

TEST_CASE("the batches of a pass hold everything once, and lead near the optimum", "[examples]") {
  const auto& run = run_of_tutorial("mini_batches");
  const auto& text = run.printed.at(0);
  const auto visibilities = io::read_npz(horseshoe);
  auto start =
      GriddedNet(GriddedNetOptions(horseshoe_grid)
                     .base_cube(softplus_mapping().inverse(auto_start(horseshoe_grid, visibilities, ChannelMap::cube(1))))
                     .dtype(torch::kFloat32));
  const auto sky = start->make_sky().detach();
  const double expected = losses::loose_chi_squared(horseshoe_grid, sky, visibilities, ChannelMap::cube(1));
  CHECK(number_after("chi^2 at first: ", text) == Approx(expected).epsilon(1e-4));
  CHECK(number_after("of all batches of a pass: ", text) == Approx(expected).epsilon(1e-4));
  const double optimum = number_after("optimum: ", text);
  for (const double loss : {number_after("trainer: 30 passes of 9 batches; loss of all visibilities ", text),
                            number_after("by hand: loss of all visibilities ", text)}) {
    CHECK(loss > optimum);
    CHECK(loss < 1.02 * optimum);
  }
  const Objective objective(ExactLikelihood(horseshoe_grid, visibilities, ChannelMap::cube(1)),
                            {terms::sparsity(1e-3), terms::tv_image(2e-3)});
  const auto image = io::read_fits(run.folder / "mini_batches.fits").cube / horseshoe_grid.cell_area();
  const auto loss = objective.evaluate(ModelOutput(horseshoe_grid, {}, image)).total.item<double>();
  CHECK(number_after("by hand: loss of all visibilities ", text) == Approx(loss).epsilon(1e-3));
}

TEST_CASE("problems side by side end as each does alone", "[examples]") {
  const auto& text = run_of_tutorial("many_problems").printed.at(0);
  const auto cells = cells_of(io::read_npz(horseshoe));
  const auto start = softplus_mapping().inverse(auto_start(cells)).to(torch::kFloat32);
  double before = 0;
  for (const std::string lambda : {"0", "0.0002", "0.002", "0.02"}) {
    auto alone = GriddedNet(GriddedNetOptions(horseshoe_grid).base_cube(start));
    const Objective objective(GriddedLikelihood(cells), {terms::tv_image(std::stod(lambda))});
    const auto fit = TrainOptions().learning_rate(0.05).epochs(1500).stop_relative(2e-3).stop_window(50);
    const auto result = Trainer(alone, objective, fit).fit();
    const auto line = line_of(fmt::format("tv {:>6}: ", lambda), text);
    INFO(text);
    CHECK(number_after(": ", line) == Approx(static_cast<double>(result.epochs)).epsilon(0.05));
    CHECK(number_after("nll ", line) == Approx(result.loss.nll()).epsilon(0.01));
    CHECK(number_after("nll ", line) > before);  // the more a prior weighs, the worse the data are fitted
    before = number_after("nll ", line);
  }
}

namespace {

/// What the workflow says of the simulated disc, whose truth is in examples/simulate_observation.cpp.
void check_workflow(const std::string& text) {
  INFO(text);
  CHECK(number_after("to be multiplied by ", text) == Approx(1).margin(0.08));
  CHECK(number_after("image: ", text) == Approx(0.1).epsilon(0.03));
  CHECK(number_after("chi^2 ", text) == Approx(1).margin(0.08));
  CHECK(number_after("inclination ", text) == Approx(35).margin(1));
  CHECK(number_after("position angle ", text) == Approx(60).margin(2));
  CHECK(number_after("centre ", text) == Approx(0.1).margin(0.01));
  CHECK(number_after("East, ", text) == Approx(0).margin(0.01));
  CHECK(number_after("Jy/arcsec^2 at ", text) == Approx(0.3).margin(0.05));
}

}  // namespace

TEST_CASE("a simulated observation has the noise that its weights say, and its disc is found again", "[examples]") {
  const auto& simulated = run_of_tutorial("simulate");
  const auto& text = simulated.printed.at(0);
  const auto visibilities = io::read_npz(simulated.folder / "observed.npz");
  const auto truth = io::read_fits(simulated.folder / "observed_truth.fits");
  const GridCoords coords(truth.cell_size, truth.cube.size(-1));
  CHECK(number_after("2 channels of ", text) == static_cast<double>(visibilities.nvis()));
  CHECK(number_after("at most ", text) == Approx(90 - std::abs(-24 + 23.0227)).margin(0.06));  // degrees, at ALMA's latitude
  CHECK(number_after("flux ", text) == Approx(0.1));
  CHECK(truth.cube[0].sum().item<double>() == Approx(0.1).epsilon(1e-4));
  const double chi_squared =
      losses::loose_chi_squared(coords, truth.cube / coords.cell_area(), visibilities, ChannelMap::cube(2));
  const double normal = std::sqrt(chi_squared / (4 * static_cast<double>(visibilities.nvis())));
  CHECK(normal == Approx(1).margin(0.03));
  CHECK(number_after("noise of ", text) == Approx(normal).margin(2e-3));

  check_workflow(run_of_tutorial("workflow").printed.at(0));
#ifdef MPOL_TEST_SETS
  const TemporaryFolder folder;
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  TestSet set;
  add_window(set, visibilities);
  write_set(folder / "observed.ms", set);
  const auto of_set = run_example("workflow", {in_folder("observed.ms"), in_folder("image.fits"), in_folder("profile.png")});
  check_workflow(of_set);
  CHECK(of_set.find("0 samples left out") != std::string::npos);
#endif
}
