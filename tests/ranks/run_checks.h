#pragma once

#include "catch.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <nlohmann/json.hpp>

#include "cli/program.h"

// What tests of runs that are shared compare.
namespace mpol::testing {

using Words = std::vector<std::string>;
inline constexpr double rounding_of_doubles = 1e-12, rounding_of_floats = 1e-6;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Base pixels that a run ended with.
inline torch::Tensor pixels_of(const std::filesystem::path& out) {
  const auto tensors = mpol::read_safetensors(out / "checkpoint.safetensors").tensors;
  return tensors.at("state.model.bcube.base_cube").to(torch::kFloat64);
}

inline double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

inline nlohmann::json summary_of(const std::filesystem::path& out) {
  return nlohmann::json::parse(read_text(out / "summary.json"));
}

/// A run's image, losses and counts are those of another to a tolerance.
inline void check_same(const std::filesystem::path& out, const std::filesystem::path& reference, double tolerance) {
  INFO(out.filename() << " is to be " << reference.filename());
  CHECK_THAT(difference(pixels_of(out), pixels_of(reference)), WithinAbs(0, tolerance));
  const auto own = summary_of(out), wanted = summary_of(reference);
  for (const auto* key : {"epochs", "n_visibilities", "n_cells", "normalizer", "stop_reason", "likelihood"}) {
    INFO(key);
    CHECK(own[key] == wanted[key]);
  }
  for (const auto& [name, value] : wanted["loss"].items())
    CHECK(own["loss"][name].get<double>() == Approx(value).epsilon(tolerance));
  CHECK(own["chi_squared"].get<double>() == Approx(wanted["chi_squared"]).epsilon(tolerance));
  for (std::size_t channel = 0; channel < wanted["flux_jy"].size(); ++channel)
    CHECK(own["flux_jy"][channel].get<double>() == Approx(wanted["flux_jy"][channel]).epsilon(tolerance));
  // The products, which ranks make of their own channels.
  for (const auto* key : {"noise_jy_per_beam", "rms_jy_per_beam", "peak_jy_per_beam"}) {
    INFO(key);
    REQUIRE(own["residual"][key].size() == wanted["residual"][key].size());
    for (std::size_t channel = 0; channel < wanted["residual"][key].size(); ++channel)
      CHECK(own["residual"][key][channel].get<double>() ==
            Approx(wanted["residual"][key][channel].get<double>()).epsilon(1e3 * tolerance));
  }
  // What the report says of the data, of which ranks may know their channels alone.
  const auto data_of = [](const std::filesystem::path& folder) {
    const auto text = read_text(folder / "report.html");
    const auto begin = text.find("<h2>Data</h2>"), end = text.find("<h2>", begin + 1);
    REQUIRE(begin != std::string::npos);
    return text.substr(begin, end - begin);
  };
  CHECK(data_of(out) == data_of(reference));
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  CHECK(lines(read_text(out / "history.csv")) == lines(read_text(reference / "history.csv")));
}

/// A run has errors as another one has: of the same fits where `tolerance` says so, else of channels that were sampled apart.
inline void check_errors(const std::filesystem::path& out, const std::filesystem::path& reference,
                         std::optional<double> tolerance = {}) {
  INFO(out.filename() << " has errors as " << reference.filename());
  const auto own = summary_of(out), wanted = summary_of(reference);
  CHECK_FALSE(own.contains("why_no_errors"));
  REQUIRE(own.contains("errors"));
  CHECK(own["errors"]["samples"] == wanted["errors"]["samples"]);
  const auto error = mpol::io::read_fits(out / "error.fits").cube, other = mpol::io::read_fits(reference / "error.fits").cube;
  REQUIRE(error.sizes() == other.sizes());
  if (tolerance) {
    CHECK_THAT(difference(error, other), WithinAbs(0, *tolerance));
    return;
  }
  // In the first channel noise is drawn alike, of a size that all channels tell, or its own; in others it is another one.
  CHECK_THAT(difference(error[0], other[0]), WithinAbs(0, 0.3));
  const auto ratios = (error.square().mean({1, 2}) / other.square().mean({1, 2})).sqrt();
  CHECK(ratios.min().item<double>() > 0.5);
  CHECK(ratios.max().item<double>() < 2);
  for (const auto* key : {"flux_error_jy", "flux_bias_jy", "flux_left_jy", "flux_unseen_jy", "growth_width_arcsec",
                          "correlation_length_arcsec", "error_factor", "share_below_error"})
    CHECK(own["errors"][key].size() == wanted["errors"][key].size());
}

inline Words small_run(const std::string& verb, const std::string& data, const std::filesystem::path& out, const Words& more) {
  return with({verb, data, "-o", out.string(), "--cell-size", "0.1", "--npix", "32", "--device", "cpu", "--threads", "1"}, more);
}

}  // namespace mpol::testing
