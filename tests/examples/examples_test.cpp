#include "catch.h"

#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/real.h>
#include <torch/optim/adam.h>

#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/models/simple_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "python.h"
#include "run_example.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

namespace fs = std::filesystem;

const fs::path observation = fs::path(MPOL_DATA_DIR) / "hd142527_band9.npz";

/// MPoL's fit of the bundled observation: its settings are those of the examples.
class ReferenceFit {
 public:
  double number(const std::string& name) const { return arrays_.at(name).item<double>(); }
  GridCoords coords() const { return {number("in_cell_size"), arrays_.at("in_npix").item<std::int64_t>()}; }
  double loss_at(std::int64_t epoch) const { return arrays_.at("out_loss_nll_sparsity_tv")[epoch][0].item<double>(); }
  Tensor image() const { return arrays_.at("out_image_sky"); }

 private:
  std::map<std::string, Tensor> arrays_ = io::read_npz_arrays(fs::path(MPOL_TEST_DATA_DIR) / "hd142527_band9_mpol.npz");
};

/// The image in a file, Jy/arcsec^2.
Tensor sky_of(const fs::path& file, const GridCoords& coords) { return io::read_fits(file).cube / coords.cell_area(); }

}  // namespace

TEST_CASE("the program of README.md makes MPoL's image", "[examples]") {
  const TemporaryFolder folder;
  fs::create_directory_symlink(MPOL_DATA_DIR, folder / "data");
  run_command("cd '" + folder.path().string() + "' && '" + (fs::path(MPOL_EXAMPLES) / "readme_program").string() + "'");
  const ReferenceFit reference;
  const auto coords = reference.coords();
  const auto sky = sky_of(folder / "disc.fits", coords);
  // In float32 rounding grows at the kinks of the total variation; tests/train has the same fit in float64, to 1e-6.
  CHECK(relative_error(sky[0], reference.image()) < 5e-3);
  CHECK(sky.sum().item<double>() * coords.cell_area() == Approx(reference.number("out_flux")).epsilon(3e-4));
}

TEST_CASE("the trainer's example has MPoL's loss", "[examples]") {
  const TemporaryFolder folder;
  const auto out = (folder / "image.fits").string();
  const auto text = run_example("train_with_trainer", {observation.string(), out, "30"});
  const ReferenceFit reference;
  CHECK(number_after("\nloss ", "\n" + text) == Approx(reference.loss_at(30)).epsilon(1e-5));
  CHECK(text.find("after 30 epochs") != std::string::npos);
  CHECK(sky_of(out, reference.coords()).min().item<double>() > 0);
}

TEST_CASE("the loop by hand gives the numbers of the trainer", "[examples]") {
  const TemporaryFolder folder;
  const auto out = (folder / "image.fits").string();
  const auto text = run_example("simple_net", {observation.string(), out, "30"});

  const GridCoords coords(0.08, 128);
  const auto options = DataAveragerOptions().scatter_check(ScatterCheck::off);
  const auto dataset = DataAverager(coords, io::read_npz(observation), options).to_dataset();
  auto model = SimpleNet(SimpleNetOptions(coords));
  const auto objective = Objective(GriddedLikelihood(dataset), {terms::sparsity(1e-4), terms::tv_image(1e-4)});
  const auto fit = TrainOptions().learning_rate(0.5).epochs(30).dtype(torch::kFloat64).step(StepKind::eager);
  const auto result = Trainer(model, objective, fit).fit();
  const auto sky = model->make_sky().detach();
  CHECK(number_after("epoch    0  loss ", text) == Approx(result.history.front().total()).epsilon(1e-5));
  CHECK(number_after("flux ", text) == Approx(sky.sum().item<double>() * coords.cell_area()).epsilon(1e-3));
  CHECK(relative_error(sky_of(out, coords), sky) < 1e-4);
}

TEST_CASE("the example of cross-validation takes the point of least score, as mpol crossval does", "[examples]") {
  const TemporaryFolder folder;
  const auto text = run_example("cross_validation", {observation.string(), (folder / "image.fits").string(), "6"});
  const std::regex line("sparsity +([0-9.]+) U, tv +([0-9.]+) U: score ([0-9.]+)");
  double least = 1e300, sparsity = 0, first = 0;
  int points = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), line), end; match != end; ++match, ++points) {
    const double c = std::stod((*match)[1]), score = std::stod((*match)[3]);
    if (points == 0) first = c;
    if (score < least) least = score, sparsity = c;
  }
  INFO(text);
  CHECK(points == 5);  // the best one and its neighbours; it may try 6
  CHECK(first == 1);
  CHECK(number_after("chosen after ", text) == 25);
  const auto visibilities = io::read_npz(observation);
  const GridCoords coords(0.08, 128);
  const auto likelihood = ExactLikelihood(coords, visibilities, ChannelMap::cube(1));
  const double unit = noise_unit(coords, visibilities, 1, likelihood->normalizer()).slope;
  CHECK(number_after("fits: sparsity ", text) == Approx(sparsity * unit).epsilon(0.01));
  CHECK(text.find("converged after") != std::string::npos);
  CHECK(sky_of(folder / "image.fits", coords).min().item<double>() >= 0);
}

TEST_CASE("the examples of exact likelihood and operators agree on chi squared, and operators with their adjoint", "[examples]") {
  const TemporaryFolder folder;
  const auto image = (folder / "image.fits").string(), residual = (folder / "residual.fits").string();
  const auto fitted = run_example("exact_likelihood", {observation.string(), image, "100"});
  const auto visibilities = io::read_npz(observation);
  const GridCoords coords(0.08, 128);
  const auto sky = sky_of(image, coords);
  const double chi_squared = losses::loose_chi_squared(coords, sky, visibilities, ChannelMap::cube(1));
  const auto count = static_cast<double>(visibilities.nvis());
  CHECK(number_after("\n", fitted) == count);
  CHECK(number_after("per visibility ", fitted) == Approx(chi_squared / (2 * count)).epsilon(1e-6));  // FITS has float32
  CHECK(chi_squared / (2 * count) < 5);

  const auto text = run_example("operators", {observation.string(), image, residual});
  CHECK(number_after("chi^2 ", text) == Approx(chi_squared).epsilon(1e-8));
  CHECK(number_after("<A* r, I> ", text) == Approx(number_after("<r, A I> ", text)).epsilon(1e-8));
  // Of the residual's natural image the middle pixel is the weighted mean of its real parts.
  const auto left = io::read_fits(residual).cube[0];
  const auto& weights = visibilities.weights();
  const auto model = losses::predicted_visibilities(coords, sky, visibilities, ChannelMap::cube(1));
  const auto mean = (weights * at::real(visibilities.data() - model)).sum() / weights.sum();
  CHECK(left[64][63].item<double>() == Approx(mean.item<double>()).epsilon(1e-5));
}

TEST_CASE("the example of devices sums all data once", "[examples]") {
  const auto visibilities = io::read_npz(observation);
  const auto text = run_example("devices", {observation.string()});
  const auto weights = visibilities.weights().to(torch::kFloat64);
  const auto mean = (visibilities.data() * weights).sum() / weights.sum();
  CHECK(text.find("using ") != std::string::npos);
  CHECK(number_after("mean visibility ", text) == Approx(at::real(mean).item<double>()).epsilon(1e-6));
  CHECK(number_after("sigma ", text) == Approx(1 / weights.sum().sqrt().item<double>()).epsilon(1e-6));
  CHECK(number_after("\nloss ", text) < 0.7 * number_after("at first ", text));
  CHECK(text.find("its copy on cpu") != std::string::npos);
}

TEST_CASE("the example of several devices makes the cube of one", "[examples]") {
  const TemporaryFolder folder;
  const auto disc = (fs::path(MPOL_DATA_DIR) / "simulated_disc.npz").string();
  const auto run_on = [&](const std::string& devices) {
    return run_example("device_group", {disc, (folder / (devices + ".fits")).string(), devices});
  };
  const auto one = run_on("cpu"), two = run_on("cpu,cpu");
  CHECK(two.find("cpu,cpu: 2 channels") != std::string::npos);
  CHECK(number_after("loss ", two) == Approx(number_after("loss ", one)).epsilon(1e-5));
  CHECK(relative_error(io::read_fits(folder / "cpu,cpu.fits").cube, io::read_fits(folder / "cpu.fits").cube) < 1e-4);
}

TEST_CASE("the example of slabs fits as an objective of the whole image does", "[examples]") {
  const auto text = run_example("row_slabs", {observation.string()});
  const GridCoords coords(0.08, 128);
  const auto visibilities = io::read_npz(observation);
  const ExactLikelihood likelihood(coords, visibilities, ChannelMap::continuum(visibilities.nchan()));
  const Objective objective(likelihood, {terms::sparsity(1e-3), terms::tv_slope(1e-3)});
  const auto start = at::full({1, 128, 128}, -5.0, torch::kFloat64);
  GriddedNet model(GriddedNetOptions(coords).base_cube(start).dtype(torch::kFloat64));
  const auto loss = [&] { return objective.evaluate(model).total.sum(); };
  CHECK(number_after("loss ", text) == Approx(loss().item<double>()).epsilon(1e-8));
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.2));
  for (int epoch = 0; epoch < 100; ++epoch) {
    adam.zero_grad();
    loss().backward();
    if (epoch == 99) CHECK(number_after("128 rows\nloss ", text) == Approx(loss().item<double>()).epsilon(1e-7));
    adam.step();
  }
}

TEST_CASE("the examples of sparse coding bring images nearer to the truth and draw them", "[examples]") {
  const TemporaryFolder folder;
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  const auto truth = (fs::path(MPOL_DATA_DIR) / "simulated_disc_truth.fits").string();
  const auto is_drawn = [](const std::string& figure) {  // without gnuplot there is its script
    return fs::exists(figure) || fs::exists(plot::script_of(figure));
  };

  const auto denoised = run_example("denoise_tv", {truth, in_folder("tv.png")});
  const auto gain = [](const std::string& words, const std::string& text) {
    const auto line = text.substr(text.find(words));
    return number_after(" dB before, ", line) - number_after(words, line);
  };
  CHECK(gain("noise: ", denoised) > 8);
  CHECK(gain("outliers: ", denoised) > 8);
  CHECK(number_after("denoiser of one's own: ", denoised) > number_after("noise: ", denoised) + 8);
  CHECK(is_drawn(in_folder("tv.png")));

  const auto learned = run_example("learn_dictionary", {truth, in_folder("learned.png"), in_folder("filters.safetensors"), "10"});
  CHECK(number_after(" before, ", learned) < 0.8 * number_after("functional of the image: ", learned));
  CHECK(is_drawn(in_folder("learned.png")));

  const auto coded = run_example("denoise_csc", {in_folder("filters.safetensors"), truth, in_folder("csc.png")});
  CHECK(gain("noise: ", coded) > 8);
  CHECK(is_drawn(in_folder("csc.png")));
}

TEST_CASE("the example of a disc's profile finds its geometry too", "[examples]") {
  const auto text = run_example("disc_profile", {});
  CHECK(number_after("inclination: ", text) == Approx(40).margin(0.5));
  CHECK(number_after("position angle: ", text) == Approx(60).margin(0.5));
  CHECK(number_after("fell by ", text) > 0);
}

TEST_CASE("the example of a star before a disc tells them apart", "[examples]") {
  const TemporaryFolder folder;
  const auto text = run_example("star_and_disc", {(folder / "image.fits").string()});
  CHECK(number_after("star: ", text) == Approx(20).margin(1));
  CHECK(number_after("mJy at ", text) == Approx(0.03).margin(5e-3));
  CHECK(number_after("image: ", text) == Approx(100).margin(8));  // softplus pixels go to 0 slowly
  CHECK(std::filesystem::exists(folder / "image.fits"));
}

TEST_CASE("the example of joint blocks finds what is off of an execution, in one piece and in chunks", "[examples]") {
  const TemporaryFolder folder;
  const auto image = (folder / "image.fits").string();
  for (const std::string mebibytes : {"1", "100"}) {
    const auto text = run_example("joint_blocks", {image, mebibytes});
    CHECK(number_after("second execution: ", text) == Approx(0.03).margin(2e-3));
    CHECK(number_after("East, ", text) == Approx(-0.02).margin(2e-3));
    CHECK(number_after("North, ", text) == Approx(1.1).margin(0.01));
    CHECK(number_after("too small by ", text) == Approx(2).margin(0.1));
    CHECK(number_after("image: ", text) == Approx(100).margin(8));  // softplus pixels go to 0 slowly
    const auto chunk = number_after("chunks of ", text);
    CHECK((mebibytes == "1" ? chunk < 4370 : chunk == 4370));
  }
  CHECK(std::filesystem::exists(image));
}
