// What users of PURIFY and PRIISM do: SARA's bases, a bound of chi^2, a grid of L1 and TSV.
#include "catch.h"

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

std::vector<std::string> line_of_verb(const std::string& verb, const std::string& data, const std::filesystem::path& out,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> line = {verb, data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--json"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

json printed_summary(const std::vector<std::string>& line) {
  const auto run = run_mpol_here(line);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.out);
}

}  // namespace

TEST_CASE("wavelets weigh an image: to the optimum, or by Adam's eager steps, said and recorded", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto image = [&](const std::string& out, const std::vector<std::string>& more) {
    return printed_summary(line_of_verb("image", data, scratch / out, more));
  };
  const auto converged = image("optimum", {"--wavelets", "1U"});
  CHECK(converged["optimizer"] == "pogm");
  CHECK(converged["converged"] == true);
  CHECK(converged["gap"].get<double>() >= 0);
  CHECK(converged["lambda"]["wavelets"]["unit_value"].get<double>() == Approx(1));
  CHECK(converged["lambda"].size() == 1);
  CHECK(read_text(scratch / "optimum" / "run.toml").find("wavelets = \"1U\"") != std::string::npos);
  const auto other = image("flat", {"--wavelets", "auto", "--start", "base:-3", "--optimizer", "fista"});
  CHECK(other["lambda"]["wavelets"]["how"] == "auto");
  CHECK(other["loss"]["total"].get<double>() == Approx(converged["loss"]["total"].get<double>()).epsilon(1e-3));
  const auto adam = image("adam", {"--wavelets", "1U", "--optimizer", "adam", "--epochs", "300"});
  CHECK(adam["step"] == "eager");
  CHECK(adam["step_reason"].get<std::string>().find("wavelets") != std::string::npos);
  // To the tolerance of the other, Adam gets no lower.
  CHECK(adam["loss"]["total"].get<double>() > (1 - 1e-3) * converged["loss"]["total"].get<double>());
  const auto fused = run_mpol_here(line_of_verb("image", data, scratch / "fused", {"--wavelets", "1U", "--step", "fused"}));
  CHECK(fused.exit_code != 0);
  CHECK(fused.err.find("wavelets") != std::string::npos);
  image("without", {"--sparsity", "1U"});
  CHECK(read_text(scratch / "without" / "run.toml").find("wavelets") == std::string::npos);
}

TEST_CASE("an image within a bound of chi^2 meets it, and its settings make it again", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto image = [&](const std::string& out, const std::vector<std::string>& more) {
    return printed_summary(line_of_verb("image", data, scratch / out, more));
  };
  const auto check_met = [](const json& summary, double bound) {
    CHECK(summary["chi_squared_bound"]["bound"].get<double>() == Approx(bound).epsilon(1e-12));
    CHECK(summary["chi_squared"].get<double>() == Approx(bound).epsilon(1e-3));
    CHECK(summary["chi_squared_bound"]["part"].get<double>() == Approx(1).epsilon(1e-3));
  };
  const auto within = image("within", {"--wavelets", "1U", "--tv", "0.3U", "--chi2-bound", "auto"});
  const double n = 2 * within["n_visibilities"].get<double>();
  check_met(within, n + 2 * std::sqrt(2 * n));
  CHECK(within["converged"] == true);
  const double factor = within["chi_squared_bound"]["lambda_factor"].get<double>();
  const auto& lambda = within["lambda"];
  CHECK(lambda["wavelets"]["unit_value"].get<double>() == Approx(factor).epsilon(1e-9));
  CHECK(lambda["tv"]["unit_value"].get<double>() == Approx(0.3 * factor).epsilon(1e-9));  // the one factor
  CHECK(lambda["tv"]["how"].get<std::string>().find("bounded") == 0);
  CHECK(within["chi_squared_bound"]["fits"].get<int>() >= 2);

  const auto looser = image("looser", {"--wavelets", "1U", "--tv", "0.3U", "--chi2-bound", "1.3"});
  check_met(looser, 1.3 * n);
  CHECK(looser["chi_squared_bound"]["lambda_factor"].get<double>() > factor);
  const auto again = run_mpol_here(
      {"image", "--config", (scratch / "looser" / "run.toml").string(), "-o", (scratch / "again").string(), "--quiet"});
  CHECK(again.exit_code == 0);
  CHECK(
      torch::equal(io::read_fits(scratch / "again" / "image.fits").cube, io::read_fits(scratch / "looser" / "image.fits").cube));

  const auto refused = [&](const std::vector<std::string>& more) {
    return run_mpol_here(line_of_verb("image", data, scratch / "refused", more));
  };
  const auto tight = refused({"--sparsity", "1U", "--chi2-bound", "0.1"});
  CHECK(tight.exit_code == 1);
  CHECK(tight.err.find("no image comes to the bound") != std::string::npos);
  const auto empty = refused({"--sparsity", "1U", "--chi2-bound", "1e9"});
  CHECK(empty.exit_code == 1);
  CHECK(empty.err.find("without any light") != std::string::npos);
  const auto nothing = refused({"--sparsity", "0", "--chi2-bound", "auto"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.err.find("no regulariser") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch / "refused" / "image.fits"));
}

TEST_CASE("a grid of L1 and TSV on pixels that are not negative is PRIISM's cross-validation", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  // 1/2 chi^2 + L1 sum x + Ltsv sum dx^2 of Jy per pixel is half of chi^2 + 2 L1 a sum I + 2 Ltsv a^2 sum dI^2 for cells of a.
  const auto summary = printed_summary(line_of_verb(
      "crossval", data, scratch / "scan",
      {"--normalize", "none", "--no-hann", "--folds", "4", "--sparsity", "2:200:3", "--tsv", "0.02:20:4", "--tv", "0"}));
  CHECK(summary["crossval"]["points"] == 12);
  CHECK(summary["fits"] == 48);
  CHECK(summary["chosen"].size() == 2);
  CHECK(summary["converged"] == true);
  CHECK(io::read_fits(scratch / "scan" / "image.fits").cube.min().item<double>() >= 0);
  CHECK(summary["normalizer"] == 0.5);
}
