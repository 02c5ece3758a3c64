// `mpol image` goes on until its image depends on the data and the priors alone.
#include "catch.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "../compare.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

using Arguments = std::vector<std::string>;

Arguments converging(const std::string& data, const std::filesystem::path& out, const Arguments& more) {
  Arguments arguments = {"image", data,   "-o",   out.string(), "--cell-size", "0.1",    "--npix",          "32", "--sparsity",
                         "5e-2",  "--tv", "2e-2", "--device",   "cpu",         "--json", "--scatter-check", "off"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

struct Converged {
  json summary;
  Tensor image;
};

Converged converged(const std::string& data, const std::filesystem::path& out, const Arguments& more = {}) {
  const auto run = run_mpol_here(converging(data, out, more));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return {json::parse(run.out), io::read_fits(out / "image.fits").cube};
}

double length_of(const Tensor& image) { return std::sqrt(inner_product(image, image)); }

bool warns_of(const json& summary, const std::string& words) {
  for (const auto& warning : summary["warnings"]) {
    if (warning.get<std::string>().find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a converged image does not depend on its start, dtype or threads", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto reference = converged(data, scratch / "reference", {"--dtype", "float64", "--tolerance", "1e-4"});
  CHECK(reference.summary["converged"] == true);
  CHECK(reference.summary["optimizer"] == "pogm");
  CHECK(reference.summary["optimizer_reason"] == "every term is convex and known");
  const double flux = reference.summary["flux_jy"][0].get<double>();
  const auto start_file = (scratch / "reference" / "image.fits").string();
  int run = 0;
  std::vector<Tensor> images;
  for (const auto& more : std::vector<Arguments>{{},
                                                 {"--optimizer", "fista"},
                                                 {"--optimizer", "admm"},
                                                 {"--optimizer", "admm", "--start", "flat:0.5", "--dtype", "float64"},
                                                 {"--start", "base:-3"},
                                                 {"--start", "flat:0.5"},
                                                 {"--start", "dirty"},
                                                 {"--start", start_file},
                                                 {"--dtype", "float64"},
                                                 {"--threads", "1"},
                                                 {"--likelihood", "loose"}}) {
    const auto end = converged(data, scratch / std::to_string(run++), more);
    CAPTURE(more);
    CHECK(end.summary["converged"] == true);
    CHECK(end.summary["stop_reason"] == "converged");
    CHECK(end.summary["gap"].get<double>() >= 0);
    images.push_back(end.image);
    CHECK(length_of(end.image - images.front()) < 1e-2 * length_of(reference.image));
    CHECK(length_of(end.image - reference.image) < 3e-2 * length_of(reference.image));
    CHECK(end.summary["flux_jy"][0].get<double>() == Approx(flux).epsilon(3e-3));
  }
}

TEST_CASE("free pixels converge to an optimum of their own, which the run records", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto hann = converged(data, scratch / "hann");
  const auto end = converged(data, scratch / "free", {"--no-hann"});
  CHECK(end.summary["converged"] == true);
  // Every image of a Hann convolution is one of free pixels, too.
  CHECK(end.summary["loss"]["total"].get<double>() < hann.summary["loss"]["total"].get<double>());
  CHECK(end.summary["epochs"].get<int>() < hann.summary["epochs"].get<int>());
  CHECK(length_of(end.image - hann.image) > 1e-2 * length_of(hann.image));
  const auto other = converged(data, scratch / "other", {"--no-hann", "--start", "flat:0.5", "--dtype", "float64"});
  CHECK(length_of(end.image - other.image) < 3e-2 * length_of(other.image));
  CHECK(end.summary["flux_jy"][0].get<double>() == Approx(other.summary["flux_jy"][0].get<double>()).epsilon(3e-3));

  const auto toml = (scratch / "free" / "run.toml").string();
  CHECK_THAT(read_text(toml), ContainsSubstring("no-hann = true"));
  const auto again = run_mpol_here({"image", "--config", toml, "-o", (scratch / "again").string()});
  CHECK(again.exit_code == 0);
  CHECK(same(io::read_fits(scratch / "again" / "image.fits").cube, end.image));

  const auto adam = converged(data, scratch / "adam", {"--no-hann", "--optimizer", "adam", "--epochs", "20"});
  CHECK(adam.summary["step"] == "eager");
  CHECK_THAT(adam.summary["step_reason"].get<std::string>(), ContainsSubstring("no Hann convolution"));
  const auto fused = run_mpol_here(converging(data, scratch / "fused", {"--no-hann", "--optimizer", "adam", "--step", "fused"}));
  CHECK(fused.exit_code != 0);
  CHECK_THAT(fused.err, ContainsSubstring("no Hann convolution"));

  const auto errors = converged(data, scratch / "errors", {"--no-hann", "--samples", "4"});
  CHECK(errors.summary["converged"] == true);
  CHECK(io::read_fits(scratch / "errors" / "error.fits").cube.max().item<double>() > 0);
  const auto scan = converged(data, scratch / "scan", {"--no-hann", "--tv", "1e-2:4e-2:2", "--folds", "2"});
  CHECK(scan.summary["lambda"]["tv"]["how"] == "cross-validated");
}

TEST_CASE("ADMM ends where POGM does, whatever the likelihood, and goes on bit for bit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  int run = 0;
  for (const auto& more : std::vector<Arguments>{
           {"--likelihood", "gridded"}, {"--likelihood", "gridded", "--no-hann"}, {"--likelihood", "exact", "--no-hann"}}) {
    CAPTURE(more);
    const auto with = [&](Arguments arguments) {
      arguments.insert(arguments.end(), more.begin(), more.end());
      return arguments;
    };
    const auto folder = scratch / std::to_string(run++);
    const auto pogm = converged(data, folder / "pogm", with({"--tolerance", "3e-4"}));
    const auto admm = converged(data, folder / "admm", with({"--optimizer", "admm"}));
    CHECK(admm.summary["optimizer"] == "admm");
    CHECK(admm.summary["optimizer_reason"] == "asked for");
    CHECK(admm.summary["converged"] == true);
    CHECK(admm.summary["stop_reason"] == "converged");
    CHECK(admm.summary["gap"].get<double>() >= 0);
    CHECK(length_of(admm.image - pogm.image) < 3e-2 * length_of(pogm.image));
    for (int channel = 0; channel < 2; ++channel) {
      CHECK(admm.summary["flux_jy"][channel].get<double>() ==
            Approx(pogm.summary["flux_jy"][channel].get<double>()).epsilon(3e-3));
    }
    converged(data, folder / "cut", with({"--optimizer", "admm", "--epochs", "20"}));
    const auto resumed = converged(data, folder / "cut", with({"--optimizer", "admm", "--resume"}));
    CHECK(resumed.summary["epochs"] == admm.summary["epochs"]);
    CHECK(same(resumed.image, admm.image));
  }
}

TEST_CASE("what is not convex is fitted by Adam until its loss falls no more, and says why", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto end = converged(data, scratch / "entropy", {"--entropy", "1e-3"});
  CHECK(end.summary["optimizer"] == "adam");
  CHECK(end.summary["optimizer_reason"] == "no proximal map is known of entropy");
  CHECK(end.summary["converged"] == true);
  CHECK(end.summary["epochs"].get<int>() >= 200);
  CHECK(end.summary["gap"].is_null());
  const auto more = converged(data, scratch / "more", {"--entropy", "1e-3", "--optimizer", "adam", "--epochs", "6000"});
  const double regularizers = end.summary["loss"]["total"].get<double>() - end.summary["loss"]["nll"].get<double>();
  CHECK(end.summary["loss"]["total"].get<double>() - more.summary["loss"]["total"].get<double>() < 0.02 * regularizers);

  const auto rate = converged(data, scratch / "rate", {"--learning-rate", "0.1"});
  CHECK(rate.summary["optimizer"] == "adam");
  CHECK(rate.summary["optimizer_reason"] == "--learning-rate is given");
  const auto exact = converged(data, scratch / "exact", {"--optimizer", "adam"});
  CHECK(exact.summary["epochs"] == 500);
}

TEST_CASE("a fit whose epochs end first says that it has not converged, and goes on from there", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  const auto cut = converged(data, out, {"--epochs", "30"});
  CHECK(cut.summary["converged"] == false);
  CHECK(cut.summary["epochs"] == 30);
  CHECK(warns_of(cut.summary, "had not converged to a tolerance of 0.001 when its 30 epochs ended"));
  const auto whole = converged(data, scratch / "whole");
  CHECK_FALSE(warns_of(whole.summary, "converged"));
  const auto resumed = converged(data, out, {"--resume", "--epochs", "20000"});
  CHECK(resumed.summary["epochs"] == whole.summary["epochs"]);
  CHECK(same(resumed.image, whole.image));
}

TEST_CASE("weights of regularisers in units of noise, or none at all, become numbers that the run records", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto run_with = [&](const std::string& name, const Arguments& more) {
    Arguments arguments = {"image",  data,       "-o", (scratch / name).string(), "--cell-size", "0.1", "--npix", "32",
                           "--json", "--epochs", "30", "--scatter-check",         "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(run.out);
  };
  const auto plain = run_with("plain", {});
  const auto& lambda = plain["lambda"];
  const auto cells = plain["n_cells"].get<std::int64_t>();
  CHECK(lambda.size() == 3);
  const auto check_units = [&](const json& summary) {
    const double signal = summary["peak_signal_to_noise"].get<double>();
    for (const auto kind : {TermKind::sparsity, TermKind::tv_image, TermKind::tv_slope}) {
      const auto& own = summary["lambda"][regularizer_of(kind).name];
      CHECK(own["how"] == "auto");
      const auto units = own["channels"]["unit_value"].get<std::vector<double>>();
      REQUIRE(units.size() == 2);
      const auto brightest = std::find_if(units.begin(), units.end(),
                                          [&](double each) { return each == Approx(usual_units(regularizer_of(kind), signal)); });
      CHECK(brightest != units.end());
    }
    return signal;
  };
  CHECK(check_units(plain) > bright_signal);
  // U = cell^2 sqrt(sum w) / N of a channel's own weights, and of the mean ones where a number of units was given
  const auto all_weights = small_observation(2).at("weight");
  const double unit = 0.01 * std::sqrt(all_weights.sum().item<double>() / 2) / plain["normalizer"].get<double>();
  const double sparsity = regularizer_of(TermKind::sparsity).automatic->bright;
  for (std::size_t c = 0; c < 2; ++c) {
    const double own =
        0.01 * std::sqrt(all_weights[static_cast<std::int64_t>(c)].sum().item<double>()) / plain["normalizer"].get<double>();
    CHECK(lambda["sparsity"]["channels"]["value"][c].get<double>() == Approx(sparsity * own).epsilon(1e-6));
  }
  const auto toml = read_text(scratch / "plain" / "run.toml");
  CHECK(toml.find("sparsity = \"auto\"  # auto: ") != std::string::npos);
  CHECK(toml.find(fmt::format("tv = \"auto\"  # auto: {:.3g}, ", lambda["tv"]["value"].get<double>())) != std::string::npos);

  const auto same_lambda = [&](const json& other, const char* name) {
    return other["lambda"][name]["value"].get<double>() == Approx(lambda[name]["value"].get<double>()).epsilon(1e-12);
  };
  const auto units = run_with("units", {"--sparsity", fmt::format("{}U", sparsity), "--tv", "auto"});
  CHECK(units["lambda"]["sparsity"]["how"] == "noise units");
  CHECK(units["lambda"]["tv"]["how"] == "auto");
  CHECK(units["lambda"]["sparsity"]["value"].get<double>() == Approx(sparsity * unit).epsilon(1e-6));
  CHECK(same_lambda(units, "tv"));
  CHECK(units["lambda"].size() == 2);  // one is a number
  const auto autos = run_with("autos", {"--sparsity", "auto", "--tv", "auto"});
  CHECK(autos["lambda"] == lambda);
  CHECK(same(io::read_fits(scratch / "autos" / "image.fits").cube, io::read_fits(scratch / "plain" / "image.fits").cube));
  const auto again = run_with("again", {"--config", (scratch / "plain" / "run.toml").string()});
  CHECK(same_lambda(again, "sparsity"));
  CHECK(read_text(scratch / "again" / "image.fits").size() == read_text(scratch / "plain" / "image.fits").size());
  CHECK(same(io::read_fits(scratch / "again" / "image.fits").cube, io::read_fits(scratch / "plain" / "image.fits").cube));

  // Of fainter data they are others.
  auto dim = small_observation(2);
  const double wanted = std::sqrt(faint_signal * bright_signal) / plain["peak_signal_to_noise"].get<double>();
  dim["weight"] = dim["weight"] * wanted * wanted;
  write_observation(scratch / "dim.npz", dim);
  const auto faint =
      json::parse(run_mpol_here({"image", (scratch / "dim.npz").string(), "-o", (scratch / "dim").string(), "--cell-size", "0.1",
                                 "--npix", "32", "--json", "--epochs", "30", "--scatter-check", "off"})
                      .out);
  CHECK(check_units(faint) == Approx(std::sqrt(faint_signal * bright_signal)).epsilon(1e-3));
  CHECK(faint["lambda"]["tv"]["unit_value"].get<double>() > lambda["tv"]["unit_value"].get<double>());

  // What equals a default is said all the same.
  const auto two = run_with("two", {"--sparsity", "1U", "--tv", "0.1U"});
  const auto repeated = run_with("repeated", {"--config", (scratch / "two" / "run.toml").string()});
  CHECK(repeated["lambda"] == two["lambda"]);

  // Whoever asks for a regulariser, or for none, gets that.
  CHECK(run_with("tsv", {"--tsv", "1e-3"})["lambda"].size() == 1);
  CHECK(run_with("tv", {"--tv", "0.1U"})["lambda"].size() == 1);
  CHECK(run_with("none", {"--sparsity", "0"})["lambda"].empty());
  CHECK(run_with("guess", {"--guess-lambda", "tsv"})["lambda"]["tsv"]["how"] == "guessed");
  const auto smooth = run_with("smooth", {"--tsv", "1U", "--entropy", "0.1U", "--psd", "2U", "--psd-length", "0.15"})["lambda"];
  for (const auto& [name, units_of_it] : {std::pair("tsv", 1.0), std::pair("entropy", 0.1), std::pair("psd", 2.0)}) {
    CHECK(smooth[name]["how"] == "noise units");
    CHECK(smooth[name]["unit_value"].get<double>() == Approx(units_of_it));
  }
  const auto number = run_with("number", {"--sparsity", "0.01"});
  CHECK(number["lambda"]["sparsity"]["how"] == "given");
  CHECK(number["lambda"]["sparsity"]["unit_value"].get<double>() == Approx(0.01 / unit).epsilon(1e-6));
  // With --verbose the same weight for other ways to divide chi^2.
  const auto verbose = run_mpol_here({"image", data, "-o", (scratch / "verbose").string(), "--cell-size", "0.1", "--npix", "32",
                                      "--epochs", "30", "--tv", "0.01", "--normalize", "none", "--verbose"});
  CHECK(verbose.exit_code == 0);
  CHECK_THAT(verbose.err, ContainsSubstring("lambda of tv: ") && ContainsSubstring(" 0.01 beside chi^2\n"));
  CHECK_THAT(verbose.err,
             ContainsSubstring(fmt::format("{:.6g} beside chi^2/(2 x {} cells)", 0.005 / static_cast<double>(cells), cells)));
  for (const auto* wrong : {"U", "-1U", "nanU", "0.3u", "automatic", "1e-3 U"}) {
    const auto run =
        run_mpol_here({"image", data, "-o", (scratch / "wrong").string(), "--cell-size", "0.1", "--npix", "32", "--tv", wrong});
    CAPTURE(wrong, run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, ContainsSubstring("--tv"));
  }
}
