// What a slow fit shows before it has converged, and what fits of bright sharp sources show that is no noise.
#include "catch.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/train/checkpoint.h>

#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

/// A small ring on the baselines of seven antennas, which leave so much open that a fit takes long; the same in each channel.
/// @param promised  by how much the weights say more noise than there is
std::string ring_of_few_antennas(const fs::path& path, double radius = 0.25, double sigma = 0.05, std::int64_t nchan = 1,
                                 double promised = 1) {
  const auto turn = at::linspace(-0.8, 0.8, 40, torch::kFloat64);
  const auto places =
      at::tensor({306.1, -383.3, 62.7, -85.2, -67.9, -32.3, -303.0, -34.8, -129.8, 498.4, 33.9, -52.9, -42.2, -100.2},
                 torch::kFloat64)
          .view({-1, 2}) *
      1e3;  // wavelengths
  std::vector<Tensor> us, vs;
  for (std::int64_t i = 0; i < places.size(0); ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const auto apart = places[i] - places[j];
      us.push_back(apart[0] * turn.cos() + apart[1] * turn.sin());
      vs.push_back(0.7 * (apart[1] * turn.cos() - apart[0] * turn.sin()));
    }
  }
  const auto u = at::cat(us), v = at::cat(vs);
  const double weight = 1 / (sigma * sigma * promised * promised);
  const auto angle = at::linspace(0, 2 * units::pi, 61, torch::kFloat64).slice(0, 0, 60).unsqueeze(1);
  const auto phase = (u * angle.cos() + v * angle.sin()) * (-2 * units::pi * radius * units::arcsec);
  const auto ring = at::polar(((1 + 0.5 * angle.cos()) / 60).expand_as(phase).contiguous(), phase).sum(0);
  if (nchan == 1) {
    const auto noise = at::complex(normal(u.sizes(), torch::kFloat64, 34), normal(u.sizes(), torch::kFloat64, 35));
    return write_observation(path,
                             {{"uu", u}, {"vv", v}, {"data", ring + sigma * noise}, {"weight", torch::full_like(u, weight)}});
  }
  const std::vector<std::int64_t> shape = {nchan, u.numel()};
  const auto noise = at::complex(normal(shape, torch::kFloat64, 34), normal(shape, torch::kFloat64, 35));
  return write_observation(path, {{"uu", u.repeat({nchan, 1})},
                                  {"vv", v.repeat({nchan, 1})},
                                  {"data", ring + sigma * noise},
                                  {"weight", at::full(shape, weight, torch::kFloat64)},
                                  {"frequency", 2.3e11 + 1e6 * at::arange(nchan, torch::kFloat64)}});
}

Words fit_of(const std::string& data, const fs::path& out, const Words& more = {}) {
  Words words = {"image", data, "-o", out.string(), "--threads", "1", "--json", "--npix", "216", "--cell-size", "0.06"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json summary_of(const Words& words) {
  const auto run = run_mpol(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.out);
}

/// Whether the newest checkpoint is of a fit after an early look.
bool looked_early(const fs::path& out) {
  const auto header = read_checkpoint_header(out / "checkpoint.safetensors");
  return header && header->notes.contains("slow");
}

void check_same_run(const fs::path& some, const fs::path& other) {
  CHECK(read_text(some / "history.csv") == read_text(other / "history.csv"));
  CHECK(torch::equal(io::read_fits(some / "image.fits").cube, io::read_fits(other / "image.fits").cube));
}

}  // namespace

TEST_CASE("a slow first fit sets the weights before it has converged, and the image is that of these weights", "[cli]") {
  const Scratch scratch;
  const auto data = ring_of_few_antennas(scratch / "ring.npz");
  const auto whole = summary_of(fit_of(data, scratch / "whole"));
  CHECK(looked_early(scratch / "whole"));
  CHECK(whole["converged"] == true);
  CHECK(whole["filled_share"].get<double>() < 0.02);
  CHECK(whole["epochs"].get<int>() >= 256);
  Words weights;
  for (const auto& [term, option] : {std::pair("sparsity", "--sparsity"), {"tv", "--tv"}, {"tv_slope", "--tv-slope"}})
    weights.insert(weights.end(), {option, fmt::format("{:.17g}", whole["lambda"][term]["value"].get<double>())});
  weights.insert(weights.end(), {"--tolerance", "2e-4"});
  const auto given = summary_of(fit_of(data, scratch / "given", weights));
  CHECK_FALSE(looked_early(scratch / "given"));
  const auto image = [&](const char* out) { return io::read_fits(scratch / out / "image.fits").cube; };
  CHECK(relative_error(image("whole"), image("given")) < 0.02);
  CHECK(whole["flux_jy"][0].get<double>() == Approx(given["flux_jy"][0].get<double>()).epsilon(0.003));

  // A run that ended at the look itself goes on from there, and one that was interrupted after it as well.
  summary_of(fit_of(data, scratch / "at_look", {"--epochs", "256"}));
  CHECK_FALSE(looked_early(scratch / "at_look"));
  summary_of(fit_of(data, scratch / "at_look", {"--epochs", "20000", "--resume"}));
  check_same_run(scratch / "at_look", scratch / "whole");

  Program program(fit_of(data, scratch / "ended", {"--checkpoint-interval", "20"}));
  while (program.running() && !looked_early(scratch / "ended")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGTERM);
  REQUIRE(program.wait().exit_code == 143);
  summary_of({"image", "-o", (scratch / "ended").string(), "--resume", "--json"});
  check_same_run(scratch / "ended", scratch / "whole");
}

TEST_CASE("a cube that was killed at the look of its channels goes on from there", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(3));
  const auto how = [&](const char* out, const Words& more) {
    Words words = {"image", data,          "-o", (scratch / out).string(), "--threads", "1", "--json", "--mode", "cube", "--npix",
                   "32",    "--cell-size", "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  summary_of(how("whole", {}));
  summary_of(how("at_look", {"--epochs", "32"}));
  summary_of(how("at_look", {"--epochs", "20000", "--resume"}));
  check_same_run(scratch / "at_look", scratch / "whole");
}

TEST_CASE("what pixels and priors leave of a thin bright ring is not taken for noise", "[cli]") {
  const Scratch scratch;
  const auto fit = [&](const std::string& name, double radius, double sigma, const Words& more, std::int64_t nchan = 1,
                       double promised = 1) {
    const auto data = ring_of_few_antennas(scratch / (name + ".npz"), radius, sigma, nchan, promised);
    Words words = {"image", data, "-o", (scratch / name).string(), "--threads", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return summary_of(words);
  };
  const auto warns_of = [](const Json& summary, const std::string& words) {
    const auto& warnings = summary["warnings"];
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const Json& warning) { return warning.get<std::string>().find(words) != std::string::npos; });
  };
  const auto chosen = [](const Json& summary, const std::string& option) {
    for (const auto& choice : summary["choices"])
      if (choice["option"] == option) return std::stod(choice["value"].get<std::string>());
    return 0.0;
  };
  const auto coarse = fit("coarse", 0.35, 0.005, {});
  CHECK(coarse["noise"].is_null());
  CHECK(warns_of(coarse, "is sharper than pixels of"));
  CHECK_FALSE(warns_of(coarse, "the weights say"));
  const auto cell_size = fmt::format("{}", chosen(coarse, "cell-size") / 2);
  const auto npix = fmt::format("{}", static_cast<int>(2 * chosen(coarse, "npix")));
  const auto fine = fit("fine", 0.35, 0.005, {"--cell-size", cell_size, "--npix", npix});
  CHECK(fine["chi_squared_per_visibility"].get<double>() < 0.6 * coarse["chi_squared_per_visibility"].get<double>());
  // A ring of a third of the finest fringe, which the priors blur: weights for the noise that this looks like are given up.
  const auto blurred = fit("blurred", 0.1, 0.005, {});
  CHECK(blurred["noise"].is_null());
  CHECK_FALSE(warns_of(blurred, "share errors"));
  // Nor where the weights say twice the noise, of which chi^2 tells a part.
  const auto promised = fit("promised", 0.1, 0.02, {}, 1, 2);
  CHECK(promised["noise"]["shared"] == 1);
  CHECK(promised["noise"]["of_visibilities"].get<double>() < 0.87);
  CHECK(promised["chi_squared_per_visibility"].get<double>() < 0.75);
  CHECK(warns_of(promised, "is sharper than pixels of"));
  CHECK(warns_of(promised, "too small by a factor"));
  // Nor of a cube, whose first looks fall short of it anyway.
  const auto cube = fit("cube", 0.35, 0.005, {"--mode", "cube"}, 2);
  CHECK(cube["noise"].is_null());
  CHECK(cube["chi_squared_per_visibility"].get<double>() < 1.1 * coarse["chi_squared_per_visibility"].get<double>());
}
