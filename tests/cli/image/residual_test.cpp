// The residual belongs to the likelihood: of the samples themselves, or of cells as in MPoL.
#include "catch.h"

#include <cmath>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/dirty_products.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/visibilities/join_samples.h>

#include "binned_amplitudes.h"
#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords residual_grid(0.1, 96);

/// The small observation with its source 3.6" East of the phase centre.
std::map<std::string, Tensor> off_center_observation(std::int64_t nchan) {
  auto arrays = small_observation(nchan);
  const auto phase = -2 * units::pi * 3.1 * units::arcsec * arrays.at("uu");
  arrays["data"] = arrays.at("data") * at::polar(torch::ones_like(phase), phase);
  return arrays;
}

/// The same with the samples in metres at frequencies of the channels.
std::map<std::string, Tensor> in_metres(std::map<std::string, Tensor> arrays, const Tensor& frequencies) {
  const double metre = units::speed_of_light / frequencies.max().item<double>();
  arrays["uu"] = arrays.at("uu") * metre;
  arrays["vv"] = arrays.at("vv") * metre;
  arrays["frequency"] = frequencies;
  return arrays;
}

void run_verb(const std::vector<std::string>& arguments) {
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
}

std::vector<std::string> with_more(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void fit(const std::string& data, const std::filesystem::path& out, const std::vector<std::string>& more) {
  run_verb(with_more(short_run(data, out, {"--npix", "96", "--epochs", "60"}), more));
}

/// Data minus the image of a run at the samples, from `mpol predict`.
Visibilities predicted_residual(const Scratch& scratch, const std::string& data, const std::filesystem::path& out,
                                const std::vector<std::string>& of_data) {
  const auto file = (scratch / "predicted.npz").string();
  run_verb(with_more({"predict", data, (out / "image.fits").string(), "-o", file, "--dtype", "float64", "--overwrite"}, of_data));
  const auto samples = io::read_npz(file);
  auto residual = io::read_npz_array(file, "residual");
  return {samples.baselines(), residual.view(samples.data().sizes()), samples.weights()};
}

/// What `mpol dirty` makes of visibilities, a cube with a channel for each of theirs.
Tensor dirty_image(const Scratch& scratch, const Visibilities& visibilities) {
  io::write_npz(scratch / "residual.npz", visibilities);
  run_verb({"dirty", (scratch / "residual.npz").string(), "-o", (scratch / "dirty").string(), "--cell-size", "0.1", "--npix",
            "96", "--overwrite", "--quiet"});
  return io::read_fits(scratch / "dirty" / "dirty.fits").cube;
}

Tensor residual_of(const std::filesystem::path& out) { return io::read_fits(out / "residual.fits").cube; }

bool history_says(const std::filesystem::path& file, const std::string& words) {
  std::string all;
  for (const auto& line : io::read_fits(file).history) all += line;
  return all.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the residual of a fit to samples is data minus model at the samples", "[cli]") {
  const Scratch scratch;
  const std::vector<std::string> likelihood =
      GENERATE(std::vector<std::string>{"exact"}, std::vector<std::string>{"loose"},
               std::vector<std::string>{"loose", "--noise", "student"}, std::vector<std::string>{"loose", "--batch-size", "200"});
  const auto data = write_observation(scratch / "vis.npz", off_center_observation(2));
  fit(data, scratch / "out", with_more({"--likelihood"}, likelihood));
  const auto expected = dirty_image(scratch, predicted_residual(scratch, data, scratch / "out", {}));
  CHECK(relative_error(residual_of(scratch / "out"), expected) < 1e-5);
  const auto said = nlohmann::json::parse(read_text(scratch / "out" / "summary.json"))["residual"];
  const auto residual = residual_of(scratch / "out");
  const auto noise = DirtyImager(residual_grid, io::read_npz(data)).noise();
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    const auto place = static_cast<std::size_t>(channel);
    const double rms = std::sqrt(residual[channel].square().mean().item<double>());
    CHECK_THAT(said["noise_jy_per_beam"][place].get<double>(), WithinRel(noise[channel].item<double>(), 1e-10));
    CHECK_THAT(said["rms_jy_per_beam"][place].get<double>(), WithinRel(rms, 1e-5));
    CHECK_THAT(said["peak_jy_per_beam"][place].get<double>(), WithinRel(residual[channel].abs().max().item<double>(), 1e-5));
  }
  CHECK(history_says(scratch / "out" / "residual.fits", "data minus model at the samples themselves"));
  CHECK_FALSE(history_says(scratch / "out" / "dirty.fits", "data minus model"));
}

TEST_CASE("the residual is right for baselines in metres, a continuum of channels and several files", "[cli]") {
  const Scratch scratch;
  const auto frequencies = torch::tensor({2.2e11, 2.5e11}, torch::kFloat64);
  const auto data = write_observation(scratch / "vis.npz", in_metres(off_center_observation(2), frequencies));
  const std::vector<std::string> unit = {"--uv-unit", "m"}, exact = {"--likelihood", "exact"};
  const auto continuum_of = [](const Visibilities& residual) {
    return DirtyImager(residual_grid, residual, DirtyImagerOptions().channel_map(ChannelMap::continuum(2))).image();
  };
  SECTION("cube") {
    fit(data, scratch / "out", with_more(unit, exact));
    const auto residual = predicted_residual(scratch, data, scratch / "out", unit);
    CHECK(residual.baselines().frequencies().defined());
    CHECK(relative_error(residual_of(scratch / "out"), dirty_image(scratch, residual)) < 1e-5);
  }
  SECTION("continuum") {
    fit(data, scratch / "out", with_more(with_more(unit, exact), {"--mode", "continuum"}));
    const auto residual = predicted_residual(scratch, data, scratch / "out", unit);
    CHECK(relative_error(residual_of(scratch / "out"), continuum_of(residual)) < 1e-5);
  }
  SECTION("several files") {
    const std::vector<std::string> more = {"--uv-unit", "m", "--more-data", data};
    fit(data, scratch / "out", with_more(more, exact));
    const auto residual = predicted_residual(scratch, data, scratch / "out", more);
    CHECK(residual.nvis() == 4 * 600);
    CHECK(relative_error(residual_of(scratch / "out"), dirty_image(scratch, residual)) < 1e-5);
  }
}

TEST_CASE("the gridded likelihood keeps MPoL's residual, and says so", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", off_center_observation(1));
  fit(data, scratch / "out", {"--likelihood", "gridded"});
  const auto dataset =
      DataAverager(residual_grid, io::read_npz(data), DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const DirtyImager imager(dataset);
  const auto image = io::read_fits(scratch / "out" / "image.fits").cube;  // Jy/pixel
  const auto expected = imager.image() - imager.image_of(dataset->at_cells(at::fft_fft2(sky_to_packed(image))));
  CHECK(relative_error(residual_of(scratch / "out"), expected) < 1e-5);
  CHECK(history_says(scratch / "out" / "residual.fits", "at the centres of the cells"));
  CHECK(relative_error(io::read_fits(scratch / "out" / "dirty.fits").cube, imager.image()) < 1e-6);
}

TEST_CASE("a fit to samples shows and starts from their exact dirty image", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", off_center_observation(1));
  fit(data, scratch / "out", {"--likelihood", "exact", "--epochs", "1", "--learning-rate", "1e-9", "--start", "dirty"});
  const DirtyImager imager(residual_grid, io::read_npz(data), DirtyImagerOptions().unit(ImageUnit::jy_per_arcsec2));
  const auto shown = io::read_fits(scratch / "out" / "dirty.fits").cube;
  CHECK(relative_error(shown, imager.image() * imager.beam_area()) < 1e-6);
  const auto start = DirtyImager(residual_grid, io::read_npz(data), DirtyImagerOptions().imaging(Imaging::cells)).image();
  CHECK(relative_error(shown, start) > 0.05);
}

TEST_CASE("amplitudes are those of the samples, not of cell averages", "[cli]") {
  const auto arrays = off_center_observation(2);
  const Visibilities samples(Baselines::in_lambda(arrays.at("uu"), arrays.at("vv")), arrays.at("data"), arrays.at("weight"));
  const auto channels = ChannelMap::continuum(2);
  const auto options = DataAveragerOptions().scatter_check(ScatterCheck::off).channel_map(channels);
  const auto dataset = DataAverager(residual_grid, samples, options).to_dataset();
  const auto sky = random_image(residual_grid, 1, torch::kFloat64, 8);
  const auto products = dirty_products({samples, channels, dataset, Imaging::exact}, sky);
  const auto q = at::hypot(arrays.at("uu"), arrays.at("vv")).expand({2, 600});
  const auto data = binned_amplitudes(q, samples.data(), samples.weights(), NoiseBias::subtract);
  const auto at_samples = direct_visibilities(sky.expand({2, 96, 96}).contiguous(), residual_grid, samples.baselines(), 2);
  const auto model = binned_amplitudes(q, at_samples, samples.weights(), NoiseBias::keep);
  REQUIRE(products.data.amplitude.size() == data.amplitude.size());
  REQUIRE(products.model.amplitude.size() == model.amplitude.size());
  for (std::size_t i = 0; i < data.q.size(); ++i) {
    CHECK_THAT(products.data.q[i], WithinRel(data.q[i], 1e-9));
    CHECK_THAT(products.data.amplitude[i], WithinAbs(data.amplitude[i], 1e-9));
    CHECK_THAT(products.model.amplitude[i], WithinRel(model.amplitude[i], 1e-6));
  }
}

TEST_CASE("products tell how brightness goes with the frequency of channels, or of parts of the samples", "[cli]") {
  const auto arrays = off_center_observation(3);
  const auto scales = at::pow(at::tensor({0.9, 1.0, 1.1}, torch::kFloat64), 2.5).unsqueeze(1);
  const auto sky = random_image(residual_grid, 1, torch::kFloat64, 8);
  const auto baselines = Baselines::in_lambda(arrays.at("uu"), arrays.at("vv"));
  const auto model = direct_visibilities(sky.expand({3, 96, 96}).contiguous(), residual_grid, baselines, 3);
  const auto slope_of = [&](const Visibilities& samples, const ChannelMap& channels, std::vector<SampleRange> parts) {
    const auto options = DataAveragerOptions().scatter_check(ScatterCheck::off).channel_map(channels);
    const auto dataset = DataAverager(residual_grid, samples, options).to_dataset();
    const auto cube = sky.expand({channels.nchan(), 96, 96}).contiguous();
    return dirty_products({samples, channels, dataset, Imaging::exact, std::move(parts)}, cube).remainder.slope;
  };
  Visibilities samples(baselines, model * scales, arrays.at("weight"));
  CHECK_FALSE(slope_of(samples, ChannelMap::continuum(3), {}));  // of no known frequencies
  samples.set_frequencies(at::tensor({207e9, 230e9, 253e9}, torch::kFloat64));
  const auto of_channels = slope_of(samples, ChannelMap::continuum(3), {});
  REQUIRE(of_channels);
  CHECK_THAT(of_channels->index, WithinAbs(2.5, 1e-6));
  CHECK_THAT(of_channels->highest, WithinRel(253e9, 1e-12));
  CHECK_FALSE(slope_of(samples, ChannelMap::cube(3), {}));  // each makes its own image
  const auto joined = join_samples({samples});
  const auto n = samples.nvis();
  const std::vector<SampleRange> parts = {
      {"spw 0", 0, n, 207e9}, {"spw 1", n, 2 * n - 7, 230e9}, {"spw 1", 2 * n - 7, 2 * n, 230e9}, {"spw 2", 2 * n, 3 * n, 253e9}};
  const auto of_parts = slope_of(joined, ChannelMap::continuum(1), parts);
  REQUIRE(of_parts);
  CHECK_THAT(of_parts->index, WithinAbs(2.5, 1e-6));
  CHECK_THAT(of_parts->error, WithinRel(of_channels->error, 1e-6));
}

TEST_CASE("a fit restored with its residual has the flux of the source and the dirty beam", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", off_center_observation(1));
  const auto out = scratch / "out";
  fit(data, out, {"--likelihood", "exact", "--epochs", "200"});
  run_verb({"convolve", (out / "image.fits").string(), "-o", (scratch / "restored").string(), "--beam-of",
            (out / "dirty.fits").string(), "--residual", (out / "residual.fits").string(), "--quiet"});
  const auto restored = io::read_fits(scratch / "restored" / "convolved.fits"), dirty = io::read_fits(out / "dirty.fits");
  REQUIRE(restored.beams.size() == 1);
  CHECK_THAT(restored.beams[0].major, WithinRel(dirty.beams[0].major, 1e-6));
  CHECK_THAT(restored.beams[0].minor, WithinRel(dirty.beams[0].minor, 1e-6));
  CHECK_THAT(restored.beams[0].position_angle, WithinAbs(dirty.beams[0].position_angle, 1e-6));
  // The source is 36 pixels East and 3 South of the centre, a Gaussian of 1 Jy and sigma 0.25" blurred by the beam.
  const auto variance = [](double fwhm) { return std::pow(fwhm / units::fwhm_per_sigma, 2) + 0.25 * 0.25; };
  const auto& beam = restored.beams[0];
  const double blurred = std::sqrt(variance(beam.major) * variance(beam.minor));
  const double peak = beam.major * beam.minor / (units::fwhm_per_sigma * units::fwhm_per_sigma) / blurred;
  CHECK_THAT(restored.cube[0][48 - 3][47 - 36].item<double>(), WithinRel(peak, 0.03));
}

TEST_CASE("only images that have a beam are drawn with one", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", off_center_observation(1));
  fit(data, scratch / "out", {"--likelihood", "exact", "--epochs", "2"});
  const auto beams_in = [](const std::filesystem::path& script) {
    const auto text = read_text(script);
    int count = 0;
    for (auto at = text.find("polygon"); at != std::string::npos; at = text.find("polygon", at + 1)) ++count;
    return count;
  };
  const auto plotted = [&](const std::string& name) {
    run_verb({"plot", (scratch / "out" / (name + ".fits")).string(), "-o", (scratch / (name + ".png")).string(), "--quiet"});
    return scratch / "figures" / (name + ".gp");
  };
  const auto of_model = plotted("image"), of_residual = plotted("residual");
  CHECK(beams_in(of_model) == 0);
  CHECK(beams_in(of_residual) == 1);
  CHECK(beams_in(scratch / "out" / "figures" / "image.gp") == 0);
  CHECK(beams_in(scratch / "out" / "figures" / "summary.gp") == 2);  // dirty image and residual
}
