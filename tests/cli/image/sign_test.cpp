// mpol image --sign: pixels that may be negative.
#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../compare.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

/// The small observation with the sign of its source turned, of a Stokes parameter.
std::string write_negative(const std::filesystem::path& path, Stokes stokes) {
  write_observation(path, small_observation());
  const auto read = io::read_npz(path);
  Visibilities visibilities(read.baselines(), -read.data(), read.weights());
  auto observation = read.observation();
  observation.stokes = stokes;
  visibilities.set_observation(observation);
  io::write_npz(path, visibilities);
  return path.string();
}

std::vector<std::string> image_of(const std::string& data, const std::filesystem::path& out,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"image", data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--overwrite"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json sign_summary(const std::filesystem::path& out) { return json::parse(read_text(out / "summary.json")); }
Tensor sky_in(const std::filesystem::path& out) { return io::read_fits(out / "image.fits").cube; }

bool chose_sign(const json& summary) {
  const auto& choices = summary["choices"];
  return std::any_of(choices.begin(), choices.end(), [](const json& choice) { return choice["option"] == "sign"; });
}

}  // namespace

TEST_CASE("what may be negative is imaged so, by itself where the data are of Stokes Q", "[cli]") {
  const Scratch scratch;
  const auto of_q = write_negative(scratch / "q.npz", Stokes::q), of_i = write_negative(scratch / "i.npz", Stokes::i);
  write_observation(scratch / "positive.npz", small_observation());
  const auto run = [&](const std::string& data, const std::string& name, const std::vector<std::string>& more = {}) {
    const auto outcome = run_mpol_here(image_of(data, scratch / name, more));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  };
  const auto by_itself = run(of_q, "q");
  CHECK(by_itself.out.find("--sign either: Stokes Q may be negative") != std::string::npos);
  run(of_i, "either", {"--sign", "either"});
  CHECK(chose_sign(sign_summary(scratch / "q")));
  CHECK_FALSE(chose_sign(sign_summary(scratch / "either")));
  const auto sky = sky_in(scratch / "q");
  CHECK(same(sky_in(scratch / "either"), sky));
  CHECK(sign_summary(scratch / "q")["optimizer"] == "pogm");
  CHECK(sign_summary(scratch / "q")["converged"] == true);
  CHECK(sign_summary(scratch / "q")["gap"].is_number());

  // The same data, turned back, are the same source, turned back.
  run((scratch / "positive.npz").string(), "turned", {"--sign", "either"});
  CHECK(relative_error(sky_in(scratch / "turned"), -sky) < 1e-5);
  const auto number = [&](const char* name, const char* key) {
    const auto value = sign_summary(scratch / name)[key];
    return (value.is_array() ? value[0] : value).get<double>();
  };
  CHECK(number("turned", "flux_jy") == Approx(-number("q", "flux_jy")).epsilon(1e-5));
  CHECK(number("turned", "peak_signal_to_noise") == Approx(number("q", "peak_signal_to_noise")).epsilon(1e-9));
  run((scratch / "positive.npz").string(), "positive");
  CHECK(number("turned", "flux_jy") == Approx(number("positive", "flux_jy")).epsilon(0.1));

  // Where they may not, the image is empty, and it is said what would help.
  const auto dark = run(of_q, "dark", {"--sign", "positive"});
  CHECK(sky_in(scratch / "dark").min().item<double>() >= 0);
  CHECK(dark.err.find("--sign either") != std::string::npos);
  CHECK(by_itself.err.find("go below zero") == std::string::npos);
}

TEST_CASE("pixels of either sign go with other optimizers, masks, errors and cross-validation, and are resumed", "[cli]") {
  const Scratch scratch;
  const auto data = write_negative(scratch / "q.npz", Stokes::q);
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    const auto outcome = run_mpol_here(image_of(data, scratch / name, more));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return sky_in(scratch / name);
  };
  const std::vector<std::string> weights = {"--sparsity", "1U", "--tv", "0.3U"};
  const auto with = [&weights](std::vector<std::string> more) {
    more.insert(more.end(), weights.begin(), weights.end());
    return more;
  };
  const auto sky = run("pogm", with({"--tolerance", "1e-4"}));
  const double peak = sky.abs().max().item<double>();
  for (const auto* optimizer : {"fista", "admm"}) {
    CAPTURE(optimizer);
    CHECK((run(optimizer, with({"--optimizer", optimizer, "--tolerance", "1e-4"})) - sky).abs().max().item<double>() <
          0.04 * peak);
  }
  CHECK(run("adam", with({"--optimizer", "adam", "--epochs", "200"})).min().item<double>() < -0.3 * peak);
  CHECK(run("start", with({"--start", "dirty", "--tolerance", "1e-4"})).min().item<double>() ==
        Approx(sky.min().item<double>()).epsilon(0.02));
  CHECK(run("cv", {"--sparsity", "cv", "--search-points", "4"}).min().item<double>() < -0.3 * peak);
  CHECK(run("samples", with({"--samples", "4"})).min().item<double>() < -0.3 * peak);
  CHECK(io::read_fits(scratch / "samples/std.fits").cube.max().item<double>() > 0);

  const auto wavelets = run_mpol_here(image_of(data, scratch / "wavelets", {"--wavelets", "1U", "--epochs", "50"}));
  REQUIRE(wavelets.exit_code == 0);
  CHECK(sign_summary(scratch / "wavelets")["optimizer"] == "adam");
  CHECK(sign_summary(scratch / "wavelets")["optimizer_reason"].get<std::string>().find("either sign") != std::string::npos);

  run("short", with({"--epochs", "20", "--tolerance", "1e-4"}));
  const auto resumed =
      run_mpol_here({"image", data, "-o", (scratch / "short").string(), "--cell-size", "0.1", "--npix", "32", "--resume",
                     "--tolerance", "1e-4", "--sparsity", "1U", "--tv", "0.3U", "--epochs", "20000"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK((sky_in(scratch / "short") - sky).abs().max().item<double>() < 0.01 * peak);
}

TEST_CASE("a regularizer without a value below 0 is refused with pixels of either sign", "[cli]") {
  const Scratch scratch;
  const auto data = write_negative(scratch / "q.npz", Stokes::q);
  const std::vector<std::string> entropy = {"--entropy", "1e-3", "--entropy-prior", "1e-3"};
  const auto by_data = run_mpol_here(image_of(data, scratch / "a", entropy));
  CHECK(by_data.exit_code == 2);
  CHECK(by_data.err.find("--sign positive") != std::string::npos);
  auto asked = entropy;
  asked.insert(asked.end(), {"--sign", "either"});
  CHECK(run_mpol_here(image_of(data, scratch / "b", asked)).exit_code == 2);
  const auto unknown = run_mpol_here(image_of(data, scratch / "c", {"--sign", "negative"}));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("positive") != std::string::npos);
}
