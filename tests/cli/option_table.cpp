#include "option_table.h"

#include <utility>

namespace mpol::testing {
namespace {

using Words = std::vector<std::string>;

Words added(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// What every verb with an OUT understands, added to a command line of it that runs.
std::vector<OptionRow> shared_rows(const Words& base, const Words& without_out, const std::string& threads_in) {
  return {{"--help", "", base, "stdout"},
          {"--out", "{out}", without_out, "exit"},
          {"--overwrite", "", base, "exit", /*again=*/true},
          {"--config", "{quiet.toml}", base, "stdout"},
          {"--threads", "2", added(base, {"--threads", "1", "--json"}), threads_in},
          {"--quiet", "", base, "stdout"},
          {"--verbose", "", base, "stderr"},
          {"--json", "", base, "stdout"}};
}

VerbRows verb_rows(const std::string& verb, const std::vector<std::vector<OptionRow>>& groups) {
  VerbRows all{verb, {}};
  for (const auto& group : groups) all.rows.insert(all.rows.end(), group.begin(), group.end());
  return all;
}

const Words small_grid = {"--cell-size", "0.1", "--npix", "16"};

/// How measurement sets are read, refused of an .npz file; what each does is in the rows of export.
std::vector<OptionRow> set_rows(const Words& base, const std::string& column = "--column") {
  std::vector<OptionRow> rows;
  for (const auto& [option, value] : {std::pair<std::string, std::string>{"--select", "FIELD_ID == 0"},
                                      {column, "DATA"},
                                      {"--stokes", "XX"},
                                      {"--hands", "one"},
                                      {"--spw", "0"},
                                      {"--frequency-range", "1e9:2e9"},
                                      {"--velocity-range", "-1:1"},
                                      {"--rest-frequency", "1e9"},
                                      {"--average-time", "10"}})
    rows.push_back({option, value, base, "exit"});
  return rows;
}

OptionRow mode_row(const Words& base) { return {"--mode", "cube", base, "exit"}; }

VerbRows filter_rows() {
  const Words to = {"-o", "{out}"}, base = added({"filter", "{vis}", "--template", "{single}"}, to);
  // Two wide channels: some of a broad, fast line leaves the one channel of its template.
  const Words of_disc = {"--frequency",    "230e9,231e9", "--mass",       "1",   "--distance", "140",    "--inclination", "30",
                         "--outer-radius", "0.5",         "--line-width", "200", "--dtype",    "float64"};
  const Words all_but_disc = added(added(base, of_disc), small_grid), disc = added(all_but_disc, {"--keplerian"});
  const std::string filtered = "out/filter.csv";
  return verb_rows("filter", {{{"--data", "{vis}", added({"filter", "--template", "{single}"}, to), "exit"},
                               {"--template", "{other}", base, filtered},
                               {"--keplerian", "", all_but_disc, "exit"},
                               {"--mass", "1e3", disc, filtered},
                               {"--distance", "0.14", disc, filtered},
                               {"--inclination", "60", disc, filtered},
                               {"--position-angle", "50", disc, filtered},
                               {"--offset-east", "0.1", disc, filtered},
                               {"--offset-north", "0.1", disc, filtered},
                               {"--inner-radius", "0.2", disc, filtered},
                               {"--outer-radius", "0.6", disc, filtered},
                               {"--brightness-index", "2", disc, filtered},
                               {"--line-width", "250", disc, filtered},
                               {"--line-frequency", "230e9", disc, filtered},
                               {"--cell-size", "0.05", base, filtered},
                               {"--npix", "32", disc, filtered},
                               {"--uv-unit", "klambda", base, "exit"},
                               {"--frequency", "230e9,231e9", base, filtered},
                               {"--channels", "1", base, filtered},
                               {"--device", "cuda:77", base, "exit"},
                               {"--dtype", "float64", base, filtered},
                               {"--average-channels", "2", base, filtered},
                               {"--conjugate", "", base, filtered}},
                              set_rows(base),
                              shared_rows(base, {"filter", "{vis}", "--template", "{single}"}, "out/summary.json#threads")});
}

VerbRows spectrum_rows() {
  const Words base = {"spectrum", "{vis}", "-o", "{out}"};
  const std::string found = "out/spectrum.csv";
  return verb_rows("spectrum", {{{"--data", "{vis}", {"spectrum", "-o", "{out}"}, "exit"},
                                 {"--sources", "gaussian:0.3", base, found},
                                 {"--uv-unit", "klambda", added(base, {"--sources", "gaussian:0.3"}), "exit"},
                                 {"--frequency", "230e9,231e9", base, found},
                                 {"--channels", "1", base, found},
                                 {"--average-channels", "2", base, found},
                                 {"--conjugate", "", added(base, {"--sources", "point:0.3"}), found}},
                                set_rows(base),
                                shared_rows(base, {"spectrum", "{vis}"}, "out/summary.json#threads")});
}

VerbRows export_rows() {
  const Words to = {"-o", "{out}.npz"}, base = added({"export", "{set}"}, to);
  const std::string made = "out.npz";
  auto shared = shared_rows(base, {"export", "{set}"}, "stdout#threads");
  for (auto& row : shared) {
    if (row.option == "--out") row.value = "{out}.npz";
  }
  return verb_rows("export", {{{"--data", "{set}", added({"export"}, to), "exit"},
                               {"--channels", "1", added(base, {"--spw", "1"}), made},
                               {"--select", "ANTENNA1 == 0", base, made},
                               {"--column", "DATA", base, made},
                               {"--stokes", "XX", base, made},
                               {"--hands", "one", base, made},
                               {"--spw", "1", base, made},
                               {"--frequency-range", "229.5e9:230.5e9", base, made},
                               {"--velocity-range", "-100:100", added(base, {"--rest-frequency", "230e9"}), made},
                               {"--rest-frequency", "230e9", base, made},
                               {"--mode", "cube", added(base, {"--spw", "1"}), made},
                               {"--average-time", "1e4", base, made},
                               {"--average-channels", "2", base, made},
                               {"--conjugate", "", base, made}},
                              shared});
}

/// How visibilities are read, by a verb that grids them; `product` follows the channels.
std::vector<OptionRow> data_rows(const std::string& verb, const Words& rest, const std::string& product,
                                 const std::string& of_frequency) {
  const auto base = added({verb, "{vis}"}, rest);
  std::vector<OptionRow> rows = {{"--data", "{vis}", added({verb}, rest), "exit"},
                                 {"--more-data", "{more}", added({verb, "{one}"}, rest), product},
                                 {"--cell-size", "0.11", base, product},
                                 {"--npix", "18", base, product},
                                 {"--uv-unit", "klambda", base, "exit"},
                                 {"--frequency", "230e9,231e9", base, of_frequency},
                                 {"--channels", "1", base, product},
                                 {"--average-channels", "2", base, product},
                                 {"--conjugate", "", base, of_frequency}};
  const bool predicts = verb == "predict";
  if (verb == "image" || verb == "crossval" || verb == "dirty") rows.push_back({"--center", "0.3,0.1", base, product});
  for (const auto& row : set_rows(base, predicts ? "--data-column" : "--column")) rows.push_back(row);
  if (verb != "image" && verb != "crossval") rows.push_back(mode_row(base));
  return rows;
}

/// Of `mpol image`, and of `mpol crossval`, which is the same with a search before it.
VerbRows image_rows(const std::string& verb) {
  const bool searches = verb == "crossval";
  const Words few_fits = {"--folds", "2", "--tsv"}, one_point = {"cv", "--search-points", "1"};
  const Words search = searches ? added(few_fits, one_point) : Words();
  const Words rest = added(added({"-o", "{out}", "--epochs", "3"}, search), small_grid);
  const Words base = added({verb, "{vis}"}, rest);
  const Words compass = added(base, added(few_fits, {"cv", "--search-points", "3"}));
  const Words loose = added(base, {"--likelihood", "loose"});
  const Words batches = added(loose, {"--batch-size", "50"});
  const std::string history = "out/history.csv", image = "out/image.fits";
  std::vector<OptionRow> own = {
      {"--device", "cuda:77", base, "exit"},
      {"--dtype", "float64", base, history},
      {"--likelihood", "gridded", base, history},
      {"--noise", "student", loose, history},
      {"--degrees-of-freedom", "10", added(loose, {"--noise", "student"}), history},
      {"--batch-size", "50", loose, history},
      {"--sampling", "compact", batches, history},
      {"--normalize", "none", base, history},
      {"--chi2-bound", "1e6", base, "exit"},  // so much that there is nothing to fit
      {"--mode", "continuum", base, image},
      {"--fit-blocks", "weight", added(added({verb, "{one}"}, rest), {"--more-data", "{more}"}), history},
      {"--blocks", "channel", added(base, {"--mode", "continuum", "--fit-blocks", "weight"}), "exit"},
      {"--points", "0,0", base, "out/points.csv"},
      {"--scatter-check", "error", added(added({verb, "{scattered}"}, rest), {"--likelihood", "gridded"}), "exit"},
      {"--optimizer", "sgd", base, history},
      {"--learning-rate", "0.1", base, history},
      {"--schedule", "exponential:0.5", base, history},
      {"--momentum", "0.9", added(base, {"--optimizer", "sgd"}), history},
      {"--betas", "0.5,0.9", base, history},
      {"--weight-decay", "0.1", base, history},
      {"--tolerance", "0.4", added({verb, "{vis}", "-o", "{out}", "--epochs", "300"}, added(search, small_grid)), history},
      {"--epochs", "4", base, history},
      {"--stop-relative", "0.9:1", base, history},
      {"--start", "base:-5", base, history},
      {"--mask", "{mask}", base, image},
      {"--sign", "either", base, image},
      {"--no-hann", "", base, image},
      {"--samples", "2", base, "out/std.fits"},
      {"--keep-samples", "", added(base, {"--samples", "2"}), "out/samples_0000.fits"},
      {"--test-structure", "circle:0,0,0.4", base, "out/summary.json#structures"},
      {"--seed", "5", batches, history},
      {"--deterministic", "", base, "out/run.toml"},  // on the CPU every operation gives the same bits without it too
      {"--step", "eager", added(base, {"--optimizer", "adam"}), "out/summary.json#step"},
      {"--checkpoint-interval", "1", base, "out/checkpoint.previous.safetensors"},
      {"--diagnostics-interval", "1", base, "out/diagnostics/diagnostics.csv"},
      {"--tensorboard", "", base, "out/run.toml"},  // its files have the time in their names
      {"--memory-limit", "1e-6", base, "exit"},
      {"--channels-at-once", "1", base, "out/summary.json#channels_at_once"},
      {"--kernel-folder", "{run}/missing", base, "exit"},
      {"--shard", "none", base, "out/run.toml"},  // one rank shares nothing: tests/ranks
      {"--rank-timeout", "5", base, "out/run.toml"},
      {"--split-channels", "", base, "out/image_0001.fits"},
      {"--resume", "", base, "exit", /*again=*/true},
      {"--dry-run", "", added(added({verb, "{vis}"}, search), small_grid), "exit"},
      {"--keep-diverged", "", added(base, {"--optimizer", "sgd", "--learning-rate", "1e300"}), image},
  };
  const std::vector<OptionRow> regularizers = {
      {"--sparsity", "1e-4", base, history},
      {"--tv", "1e-4", base, history},
      {"--tsv", searches ? "0.01U:0.1U:2" : "1e-4",
       searches ? added({verb, "{vis}", "-o", "{out}", "--tsv", "1U:2U:2"}, small_grid) : base, history},
      {"--entropy", "1e-4", base, history},
      {"--tv-channel", "1e-4", base, history},
      {"--edge-clamp", "1e-4", base, history},
      {"--psd", "2e-9", added(base, {"--psd", "1e-9", "--psd-length", "0.15"}), history},
      {"--uv-sparsity", "2e-6", added(base, {"--uv-sparsity", "1e-6", "--uv-sparsity-q-max", "5e5"}), history},
      {"--group-sparsity", "1e-4", base, history},
      {"--spectral-smoothness", "1e-4", base, history},
      {"--tv-slope", "1e-4", base, history},
      {"--wavelets", "1e-4", base, history},
      {"--entropy-prior", "1e-3", added(base, {"--entropy", "1e-4"}), history},
      {"--entropy-flux", "5", added(base, {"--entropy", "1e-4"}), history},
      {"--psd-length", "0.2", added(base, {"--psd", "1e-9", "--psd-length", "0.15"}), history},
      {"--uv-sparsity-q-max", "4e5", added(base, {"--uv-sparsity", "1e-6", "--uv-sparsity-q-max", "5e5"}), history},
      {"--guess-lambda", "tv", base, history},
  };
  const std::vector<OptionRow> crossval = {
      {"--score", "sure",
       added(added({verb, "{vis}", "-o", "{out}", "--epochs", "3", "--tsv"}, {"cv", "--search-points", "1"}), small_grid),
       "out/scan.csv"},
      {"--folds", "3", compass, "out/scan.csv"},
      {"--split", "dartboard", compass, "out/scan.csv"},
      {"--check-split", "", compass, "out/summary.json#crossval"},
      {"--search", "random", compass, "out/scan.csv"},
      {"--search-points", "2", compass, "out/scan.csv"},
      {"--folds-at-once", "2", compass, "out/summary.json#crossval"},
  };
  const auto without_out = added({verb, "{vis}", "--epochs", "3"}, added(search, small_grid));
  if (searches)  // only image has them
    std::erase_if(own, [](const OptionRow& row) {
      return row.option == "--keep-diverged" || row.option == "--chi2-bound" || row.option == "--channels-at-once";
    });
  return verb_rows(verb, {data_rows(verb, rest, image, image), own, regularizers, crossval,
                          shared_rows(base, without_out, "out/summary.json#threads")});
}

VerbRows dirty_rows() {
  const Words rest = added({"-o", "{out}"}, small_grid), base = added({"dirty", "{vis}"}, rest);
  const std::string dirty = "out/dirty.fits";
  return verb_rows("dirty", {data_rows("dirty", rest, dirty, dirty),
                             {{"--imaging", "cells", base, dirty},
                              {"--weighting", "uniform", base, dirty},
                              {"--robust", "-1", base, dirty},
                              {"--taper", "0.4", base, dirty},
                              {"--unit", "Jy/arcsec2", base, dirty},
                              {"--scatter-check", "error", added({"dirty", "{scattered}"}, rest), "exit"},
                              {"--split-channels", "", base, "out/dirty_0001.fits"}},
                             shared_rows(base, added({"dirty", "{vis}"}, small_grid), "out/summary.json#threads")});
}

VerbRows weights_rows() {
  const Words rest = added({"-o", "{out}"}, small_grid), base = added({"weights", "{vis}"}, rest);
  return verb_rows("weights",
                   {data_rows("weights", added(rest, {"--apply", "one"}), "out/summary.json", "out/visibilities.npz"),
                    {{"--apply", "one", base, "out/visibilities.npz"}, {"--source", "cells", base, "out/histogram.csv"}},
                    shared_rows(base, added({"weights", "{vis}"}, small_grid), "out/summary.json#threads")});
}

VerbRows inspect_rows() {
  const Words base = {"inspect", "{vis}"}, with_out = added(base, {"-o", "{out}"});
  auto data = data_rows("inspect", added({"-o", "{out}"}, small_grid), "out/summary.json", "out/summary.json");
  for (auto& row : data) {
    if (row.option == "--uv-unit") row.changes = "out/summary.json";  // inspect says what any unit would mean
  }
  std::erase_if(data, [](const OptionRow& row) { return row.option == "--conjugate"; });  // it looks at no phases
  auto shared = shared_rows(with_out, {}, "out/summary.json#threads");
  for (auto& row : shared) {
    if (row.option == "--out") row = {"--out", "{out}", base, "out/summary.json"};
  }
  return verb_rows("inspect", {data, shared});
}

VerbRows geometry_fit_rows() {
  const Words rest = {"-o", "{out}"}, base = added({"geometry", "{vis}"}, rest);
  const std::string summary = "out/summary.json";
  auto data = data_rows("geometry", rest, summary, summary);
  for (auto& row : data) {
    if (row.option == "--cell-size") row = {"--cell-size", "30", added(base, {"--npix", "16"}), "exit"};
    if (row.option == "--npix") row = {"--npix", "16", added(base, {"--cell-size", "30"}), "exit"};
    if (row.option == "--uv-unit") row.changes = summary;  // any unit has a disc
  }
  std::erase_if(data, [](const OptionRow& row) { return row.option == "--frequency"; });
  return verb_rows("geometry",
                   {data,
                    {{"--frequency", "230e9,231e9", {"geometry", "{metres}", "--uv-unit", "m", "-o", "{out}"}, "exit"},
                     {"--model", "gaussian", base, summary},
                     {"--bins", "9", base, "out/geometry.csv"}},
                    shared_rows(base, {"geometry", "{vis}"}, "out/summary.json#threads")});
}

VerbRows radial_rows() {
  const Words rest = {"-o", "{out}", "--radius", "1.5", "--points", "30"}, base = added({"radial", "{vis}"}, rest);
  const Words inclined = added(base, {"--inclination", "40"});
  const std::string summary = "out/summary.json", profile = "out/radial.csv";
  auto data = data_rows("radial", added(rest, {"--inclination", "0"}), summary, summary);
  for (auto& row : data) {
    if (row.option == "--cell-size") row = {"--cell-size", "30", added(inclined, {"--npix", "16"}), "exit"};
    if (row.option == "--npix") row = {"--npix", "16", added(inclined, {"--cell-size", "30"}), "exit"};
    if (row.option == "--uv-unit") row.changes = summary;                                   // any unit has a disc
    if (row.option == "--conjugate") row.base = added(row.base, {"--offset-east", "0.3"});  // a centered disc has no phases
  }
  std::erase_if(data, [](const OptionRow& row) { return row.option == "--frequency"; });
  return verb_rows(
      "radial",
      {data,
       {{"--frequency", "230e9,231e9", added({"radial", "{metres}", "--uv-unit", "m", "--inclination", "0"}, rest), "exit"},
        {"--inclination", "40", base, profile},
        {"--position-angle", "30", inclined, profile},
        {"--offset-east", "0.1", inclined, profile},
        {"--offset-north", "0.1", inclined, profile},
        {"--radius", "1.2", inclined, profile},
        {"--points", "35", inclined, profile},
        {"--alpha", "1.3", inclined, profile},
        {"--smoothness", "0.1", inclined, profile},
        {"--bins", "9", inclined, "out/visibilities.csv"}},
       shared_rows(inclined, added({"radial", "{vis}", "--inclination", "0"}, {"--radius", "1.5"}), "out/summary.json#threads")});
}

std::vector<OptionRow> geometry_rows(const Words& base, const std::string& product) {
  const Words inclined = added(base, {"--inclination", "40"});
  return {{"--inclination", "50", base, product},
          {"--position-angle", "30", inclined, product},
          {"--offset-east", "0.1", base, product},
          {"--offset-north", "0.1", base, product}};
}

VerbRows profile_rows() {
  const Words image = {"profile", "{image}", "-o", "{out}"}, vis = {"profile", "{vis}", "-o", "{out}"};
  const std::string profile = "out/profile.csv";
  return verb_rows("profile", {{{"--image", "{image}", {"profile", "-o", "{out}"}, "exit"},
                                {"--ring-width", "0.3", image, profile},
                                {"--rings", "exact", image, profile},
                                {"--radius", "0.4", image, profile},
                                {"--samples", "{image}", added(image, {"--channels", "0"}), profile},
                                {"--memory-limit", "1e-9", image, "exit"},
                                {"--channels", "1", image, profile},
                                {"--channels", "1", vis, profile},
                                {"--average-channels", "2", vis, profile},
                                {"--bin-width", "50", vis, profile},
                                {"--max-baseline", "400", vis, profile},
                                {"--face-on", "", added(vis, {"--inclination", "40"}), profile},
                                {"--uv-unit", "klambda", vis, profile},
                                mode_row(vis),
                                {"--frequency", "230e9,231e9", {"profile", "{metres}", "--uv-unit", "m", "-o", "{out}"}, "exit"},
                                {"--cell-size", "5", added(vis, small_grid), "exit"},
                                {"--npix", "2", added(vis, small_grid), "exit"}},
                               set_rows(vis),
                               geometry_rows(image, profile),
                               geometry_rows(vis, profile),
                               shared_rows(image, {"profile", "{image}"}, "out/summary.json#threads")});
}

VerbRows polar_rows() {
  const Words base = {"polar", "{image}", "-o", "{out}", "--nr", "4", "--nphi", "6"};
  const std::string map = "out/polar.csv";
  return verb_rows("polar", {{{"--image", "{image}", {"polar", "-o", "{out}"}, "exit"},
                              {"--nr", "5", {"polar", "{image}", "-o", "{out}", "--nphi", "6"}, map},
                              {"--nphi", "7", {"polar", "{image}", "-o", "{out}", "--nr", "4"}, map},
                              {"--radius", "0.4", base, map},
                              {"--mode", "sum", base, map},
                              {"--memory-limit", "1e-9", base, "exit"},
                              {"--device", "cuda:77", base, "exit"},
                              {"--dtype", "float32", base, map},
                              {"--channels", "1", base, map}},
                             geometry_rows(base, map),
                             shared_rows(base, {"polar", "{image}"}, "out/summary.json#threads")});
}

VerbRows match_rows() {
  const Words one = {"match", "{image}", "-o", "{out}", "--generate", "spiral:0.3:0.1:20:1"};
  const Words base = {"match", "{image}", "-o", "{out}", "--generate", "ring:0.1..0.5..6:0.1,spiral:0.1..0.5..3:0.1:10..40..3:1"};
  const std::string found = "out/match.csv";
  return verb_rows("match", {{{"--image", "{image}", {"match", "-o", "{out}", "--generate", "disc:0.3"}, "exit"},
                              {"--templates", "{image}", one, found},
                              {"--generate", "disc:0.3", {"match", "{image}", "-o", "{out}", "--templates", "{image}"}, found},
                              {"--nr", "5", base, found},
                              {"--nphi", "40", base, found},
                              {"--radius", "0.4", base, found},
                              {"--n-best", "2", base, found},
                              {"--score", "cosine", base, found},
                              {"--mirrors", "none", base, found},
                              {"--weights", "even", base, found},
                              {"--angles", "bins", base, found},
                              {"--keep", "1", base, found},
                              {"--keep-fraction", "0.01", base, found},
                              {"--memory-limit", "1e-9", base, "exit"},
                              {"--device", "cuda:77", base, "exit"},
                              {"--dtype", "float64", base, found},
                              {"--channels", "1", base, found}},
                             geometry_rows(base, found),
                             shared_rows(base, {"match", "{image}", "--generate", "disc:0.3"}, "out/summary.json#threads")});
}

VerbRows deproject_rows() {
  const Words base = {"deproject", "{image}", "-o", "{out}"};
  return verb_rows("deproject", {{{"--image", "{image}", {"deproject", "-o", "{out}"}, "exit"},
                                  {"--memory-limit", "1e-9", base, "exit"},
                                  {"--channels", "1", base, "out/deprojected.fits"}},
                                 geometry_rows(added(base, {"--inclination", "20"}), "out/deprojected.fits"),
                                 shared_rows(base, {"deproject", "{image}"}, "out/summary.json#threads")});
}

VerbRows pbcor_rows() {
  const Words base = {"pbcor", "{image}", "-o", "{out}", "--antenna-diameter", "6000", "--frequency-ghz", "100"};
  const Words dish = {"pbcor", "{image}", "-o", "{out}", "--frequency-ghz", "100"};
  const std::string corrected = "out/pbcor.fits";
  return verb_rows("pbcor",
                   {{{"--image", "{image}", {"pbcor", "-o", "{out}", "--fwhm", "0.5"}, "exit"},
                     {"--mode", "multiply", base, "out/apparent.fits"},
                     {"--antenna-diameter", "6000", dish, "exit"},
                     {"--fwhm", "0.5", dish, "exit"},
                     {"--frequency-ghz", "100", {"pbcor", "{image}", "-o", "{out}", "--antenna-diameter", "6000"}, "exit"},
                     {"--offset-east", "0.1", base, corrected},
                     {"--offset-north", "0.1", base, corrected},
                     {"--limit", "0.6", base, corrected},
                     {"--channels", "1", base, corrected},
                     {"--memory-limit", "1e-9", base, "exit"}},
                    shared_rows(base, {"pbcor", "{image}", "--fwhm", "0.5"}, "out/summary.json#threads")});
}

VerbRows convolve_rows() {
  const Words base = {"convolve", "{image}", "-o", "{out}", "--bmaj", "0.5", "--bmin", "0.4"};
  const std::string convolved = "out/convolved.fits";
  return verb_rows("convolve", {{{"--image", "{image}", {"convolve", "-o", "{out}", "--bmaj", "0.5"}, "exit"},
                                 {"--bmaj", "0.6", base, convolved},
                                 {"--bmin", "0.3", base, convolved},
                                 {"--bpa", "20", base, convolved},
                                 {"--beam-of", "{beamed}", {"convolve", "{image}", "-o", "{out}"}, "exit"},
                                 {"--residual", "{beamed}", base, convolved},
                                 {"--memory-limit", "1e-9", base, "exit"},
                                 {"--unit", "Jy/arcsec2", base, convolved}},
                                shared_rows(base, {"convolve", "{image}", "--bmaj", "0.5"}, "out/summary.json#threads")});
}

VerbRows compare_rows() {
  const Words base = {"compare", "{image}", "{other}", "-o", "{out}"};
  return verb_rows("compare", {shared_rows(base, {"compare", "{image}", "{other}"}, "out/summary.json#threads")});
}

VerbRows plot_rows() {
  const Words to = {"-o", "{out}.png"};
  const Words image = added({"plot", "{image}"}, to), vis = added({"plot", "{vis}"}, to);
  const Words split = added(vis, {"--kind", "split"}), residuals = added(added(vis, {"--kind", "residuals"}), small_grid);
  const std::string figure = "out.png";
  auto shared = shared_rows(image, {"plot", "{image}"}, "stdout#threads");
  for (auto& row : shared) {
    if (row.option == "--out") row.value = "{out}.png";
  }
  return verb_rows("plot", {{{"--kind", "uv", vis, figure},
                             {"--title", "Words", image, figure},
                             {"--norm", "asinh", image, figure},
                             {"--gamma", "0.3", added(image, {"--norm", "power"}), figure},
                             {"--softening", "0.2", added(image, {"--norm", "asinh"}), figure},
                             {"--lower", "0.2", image, figure},
                             {"--upper", "0.5", image, figure},
                             {"--half-width", "0.5", image, figure},
                             {"--no-beam", "", added({"plot", "{beamed}"}, to), figure},
                             {"--channels", "1", image, figure},
                             {"--channels", "1", vis, figure},
                             {"--average-channels", "2", vis, figure},
                             {"--uv-unit", "klambda", vis, figure},
                             {"--frequency", "230e9,231e9", added({"plot", "{metres}", "--uv-unit", "m"}, to), "exit"},
                             {"--bins", "10", vis, figure},
                             mode_row(vis),
                             {"--cell-size", "0.09", residuals, figure},
                             {"--npix", "32", residuals, figure},
                             {"--split", "random", split, figure},
                             {"--folds", "3", split, figure},
                             {"--seed", "3", added(split, {"--split", "random"}), figure}},
                            set_rows(vis),
                            shared});
}

VerbRows predict_rows() {
  const Words to = {"-o", "{out}.npz"}, rest = added({"--image", "{single}"}, to), base = added({"predict", "{vis}"}, rest);
  const std::string predicted = "out.npz";
  auto data = data_rows("predict", rest, predicted, predicted);
  for (auto& row : data) {
    if (row.option == "--cell-size") row.value = "0.05";
  }
  auto shared = shared_rows(base, {"predict", "{vis}", "{image}"}, "stdout#threads");
  for (auto& row : shared) {
    if (row.option == "--out") row.value = "{out}.npz";
  }
  return verb_rows("predict", {data,
                               {{"--dtype", "float64", base, predicted},
                                {"--column", "MODEL_DATA", base, "exit"},
                                {"--residual-column", "LEFT_OVER", base, "exit"},
                                {"--gains", "{run}/missing.csv", base, "exit"},
                                {"--points", "{run}/missing.csv", base, "exit"},
                                {"--image", "{image}", added({"predict", "{vis}"}, to), "exit"}},
                               shared});
}

VerbRows simulate_rows() {
  const Words few = {"simulate", "-o", "{out}.npz", "--integration", "3000"}, base = added(few, {"--antennas", "5"});
  const Words truth = added(base, {"--truth", "{run}/truth.fits", "--npix", "16"});
  const std::string made = "out.npz";
  auto shared = shared_rows(base, {"simulate", "--antennas", "5", "--integration", "3000"}, "stdout#threads");
  for (auto& row : shared) {
    if (row.option == "--out") row.value = "{out}.npz";
  }
  std::vector<OptionRow> rows = {{"--truth", "{run}/truth.fits", base, "truth.fits"},
                                 {"--cell-size", "0.1", truth, "truth.fits"},
                                 {"--npix", "18", truth, "truth.fits"},
                                 {"--frequency-ghz", "200", base, made},
                                 {"--spectral-index", "1", added(base, {"--frequency-ghz", "100"}), made},
                                 {"--array", "{array}", few, made},
                                 {"--sky", "{single}", base, made},
                                 {"--scene", "blobs", base, made},
                                 {"--scene-seed", "1", added(base, {"--scene", "nebula", "--npix", "16"}), made},
                                 {"--primary-beam", "", added(base, {"--dish-diameter", "1000"}), made},
                                 {"--no-noise", "", base, made},
                                 {"--no-crescent", "", base, made}};
  const std::vector<std::pair<std::string, std::string>> values = {{"--uv-unit", "m"},
                                                                   {"--dtype", "float64"},
                                                                   {"--antennas", "6"},
                                                                   {"--longest-baseline", "800"},
                                                                   {"--latitude", "-30"},
                                                                   {"--dish-diameter", "7"},
                                                                   {"--declination", "-30"},
                                                                   {"--right-ascension", "20"},
                                                                   {"--hour-angle-start", "-20"},
                                                                   {"--hour-angle-end", "40"},
                                                                   {"--integration", "2000"},
                                                                   {"--minimum-elevation", "85"},
                                                                   {"--channel-width-mhz", "100"},
                                                                   {"--system-temperature", "200"},
                                                                   {"--opacity", "0.3"},
                                                                   {"--antenna-efficiency", "0.5"},
                                                                   {"--correlator-efficiency", "0.5"},
                                                                   {"--polarizations", "1"},
                                                                   {"--seed", "3"},
                                                                   {"--flux", "1"},
                                                                   {"--inclination", "50"},
                                                                   {"--position-angle", "10"},
                                                                   {"--offset-east", "0.3"},
                                                                   {"--offset-north", "0.3"},
                                                                   {"--rings", "0.3:0.1:1"},
                                                                   {"--crescent-radius", "0.5"},
                                                                   {"--crescent-width", "0.3"},
                                                                   {"--crescent-position-angle", "10"},
                                                                   {"--crescent-azimuthal-width", "40"},
                                                                   {"--crescent-contrast", "3"}};
  for (const auto& [option, value] : values) rows.push_back({option, value, base, made});
  return verb_rows("simulate", {rows, shared});
}

VerbRows devices_rows() {
  const Words timed = {"devices", "--benchmark", "--npix", "32"};
  const Words as_json = added(timed, {"--json"});
  return {"devices",
          {{"--json", "", {"devices"}, "stdout"},
           {"--help", "", {"devices"}, "stdout"},
           {"--benchmark", "", {"devices"}, "stdout"},
           {"--npix", "64", as_json, "stdout#0/step/npix"},
           {"--nchan", "2", as_json, "stdout#0/step/nchan"},
           {"--dtype", "float64", as_json, "stdout#0/step/dtype"}}};
}

/// Of verbs that print a text.
VerbRows text_rows(const Words& base) { return {base.front(), {{"--json", "", base, "stdout"}, {"--help", "", base, "stdout"}}}; }

VerbRows show_rows() {
  const Words base = {"show", "{image}"};
  return {"show",
          {{"--help", "", base, "stdout"},
           {"--image", "{image}", {"show"}, "exit"},
           {"--format", "blocks", base, "stdout"},
           {"--norm", "symmetric", base, "stdout"},
           {"--channel", "0", base, "stdout"},
           {"--width", "7", base, "stdout"},
           {"--json", "", base, "stdout"}}};
}

}  // namespace

std::vector<VerbRows> option_table() {
  return {image_rows("image"),
          image_rows("crossval"),
          dirty_rows(),
          weights_rows(),
          inspect_rows(),
          profile_rows(),
          polar_rows(),
          match_rows(),
          geometry_fit_rows(),
          radial_rows(),
          spectrum_rows(),
          deproject_rows(),
          pbcor_rows(),
          convolve_rows(),
          compare_rows(),
          plot_rows(),
          predict_rows(),
          filter_rows(),
          export_rows(),
          simulate_rows(),
          devices_rows(),
          show_rows(),
          text_rows({"completion", "bash"}),
          text_rows({"manual", "image"})};
}

std::vector<RefusedRow> refused_options() {
  const Words image = added({"image", "{vis}", "-o", "{out}", "--epochs", "3"}, small_grid);
  const Words dirty = added({"dirty", "{vis}", "-o", "{out}"}, small_grid);
  const Words picture = {"plot", "{image}", "-o", "{out}.png"}, two = {"plot", "{image}", "{other}", "-o", "{out}.png"};
  const Words vis = {"plot", "{vis}", "-o", "{out}.png"};
  const Words disc = {"simulate", "-o", "{out}.npz"}, sky = added(disc, {"--sky", "{single}"});
  std::vector<RefusedRow> rows = {
      {added(image, {"--degrees-of-freedom", "4"}), "--degrees-of-freedom"},
      {added(image, {"--dry-run"}), "--out"},
      {added(image, {"--blocks", "window"}), "--blocks"},
      {added(image, {"--check-split"}), "--check-split"},
      {{"predict", "{vis}", "{image}", "--column", "MODEL_DATA", "--gains", "{run}/blocks.csv"}, "--column"},
      {{"show", "{image}", "--json", "--width", "8"}, "--width"},
      {added(image, {"--select", "FIELD_ID == 0"}), "--select"},
      {added(dirty, {"--mode", "cube"}), "--mode"},
      {added(vis, {"--stokes", "V"}), "--stokes"},
      {added(image, {"--optimizer", "adam", "--tolerance", "1e-3"}), "--tolerance"},
      {added(image, {"--stop-relative", "1e-3", "--tolerance", "1e-3"}), "--tolerance"},
      {added(image, {"--optimizer", "pogm", "--learning-rate", "0.3"}), "--learning-rate"},
      {added(image, {"--optimizer", "pogm", "--stop-relative", "1e-3"}), "--stop-relative"},
      {added(image, {"--optimizer", "pogm", "--step", "eager"}), "--step"},
      {added(image, {"--optimizer", "pogm", "--entropy", "1"}), "--optimizer"},
      {added(image, {"--optimizer", "fista", "--learning-rate", "0.3"}), "--learning-rate"},
      {added(image, {"--optimizer", "fista", "--entropy", "1"}), "--optimizer"},
      {added(image, {"--optimizer", "admm", "--learning-rate", "0.3"}), "--learning-rate"},
      {added(image, {"--optimizer", "admm", "--stop-relative", "1e-3"}), "--stop-relative"},
      {added(image, {"--optimizer", "admm", "--entropy", "1"}), "--optimizer"},
      {added(image, {"--batch-size", "50"}), "--batch-size"},
      {added(image, {"--folds", "5"}), "--folds"},
      {added(image, {"--tv", "cv", "--score", "sure", "--folds", "5"}), "--folds"},
      {added(image, {"--samples", "5", "--optimizer", "adam"}), "--samples"},
      {added(image, {"--keep-samples", "--samples", "0"}), "--keep-samples"},
      {added(image, {"--mode", "continuum", "--channels-at-once", "2"}), "--channels-at-once"},
      {added(image, {"--test-structure", "circle:0,0,0.4", "--optimizer", "adam"}), "--test-structure"},
      {{"profile", "{vis}", "-o", "{out}", "--samples", "{image}"}, "--samples"},
      {added(image, {"--tv", "0.3U", "--search", "grid"}), "--search"},
      {added(image, {"--tv", "0.1U:1U:3", "--search-points", "5"}), "--search-points"},
      {added(image, {"--tv", "0.1U:1U:3", "--optimizer", "lbfgs", "--folds-at-once", "5"}), "--folds-at-once"},
      {added(image, {"--tv", "1U:0.1U:3"}), "--tv"},
      {added(image, {"--tv", "0.1U:1:3"}), "--tv"},
      {added(image, {"--tv", "0.1:1"}), "--tv"},
      {added(image, {"--edge-clamp", "cv"}), "--edge-clamp"},
      {added({"crossval", "{vis}", "-o", "{out}", "--tv", "1e-3"}, small_grid), "every LAMBDA is given"},
      {added(image, {"--likelihood", "loose", "--sampling", "uniform"}), "--sampling"},
      {added(image, {"--likelihood", "gridded", "--kernel-folder", "{run}"}), "--kernel-folder"},
      {added(image, {"--entropy-prior", "1e-4"}), "--entropy-prior"},  // also with the value of the default
      {added(image, {"--entropy-flux", "3"}), "--entropy-flux"},
      {added(image, {"--psd-length", "0.2"}), "--psd-length"},
      {added(image, {"--uv-sparsity-q-max", "4e5"}), "--uv-sparsity-q-max"},
      {added(image, {"--resume", "--overwrite"}), "--overwrite"},
      {added(image, {"--quiet", "--verbose"}), "--verbose"},
      {added(image, {"--config", "{robust.toml}"}), "robust"},
      {added(dirty, {"--weighting", "natural", "--robust", "0.5"}), "--robust"},
      {added(dirty, {"--weighting", "uniform", "--config", "{robust.toml}"}), "--robust"},
      {added(dirty, {"--taper", "0.4", "--scatter-check", "error"}), "--scatter-check"},
      {{"inspect", "{vis}", "--overwrite"}, "--overwrite"},
      {{"convolve", "{image}", "-o", "{out}", "--beam-of", "{beamed}", "--bpa", "20"}, "--bpa"},
      {{"pbcor", "{image}", "-o", "{out}", "--antenna-diameter", "12", "--fwhm", "20"}, "--fwhm"},
      {{"convolve", "{image}", "-o", "{out}", "--bmaj", "0.5", "--beam-of", "{beamed}"}, "--beam-of"},
      {{"profile", "{vis}", "-o", "{out}", "--ring-width", "0.1"}, "--ring-width"},
      {{"profile", "{vis}", "-o", "{out}", "--rings", "exact"}, "--rings"},
      {{"profile", "{vis}", "-o", "{out}", "--radius", "1"}, "--radius"},
      {{"profile", "{vis}", "-o", "{out}", "--npix", "16"}, "--npix"},
      {{"profile", "{vis}", "-o", "{out}", "--cell-size", "0.1"}, "--cell-size"},
      {{"profile", "{image}", "-o", "{out}", "--channels", "2"}, "--channels"},
      {{"polar", "{image}", "-o", "{out}", "--channels", "2"}, "--channels"},
      {{"filter", "{vis}", "--template", "{single}", "-o", "{out}", "--mass", "1"}, "--mass"},
      {{"filter", "{vis}", "--template", "{single}", "-o", "{out}", "--inclination", "30"}, "--inclination"},
      {{"geometry", "{vis}", "-o", "{out}", "--npix", "16"}, "--npix"},
      {{"geometry", "{vis}", "-o", "{out}", "--cell-size", "0.1"}, "--cell-size"},
      {{"radial", "{vis}", "-o", "{out}", "--npix", "16"}, "--npix"},
      {{"radial", "{vis}", "-o", "{out}", "--cell-size", "0.1"}, "--cell-size"},
      {added(picture, {"--gamma", "0.5"}), "--gamma"},
      {added(picture, {"--softening", "0.5"}), "--softening"},
      {added(picture, {"--bins", "10"}), "--bins"},
      {added(picture, {"--uv-unit", "m"}), "--uv-unit"},
      {added(picture, {"--frequency", "230e9"}), "--frequency"},
      {added(picture, {"--split", "random"}), "--split"},
      {added(picture, {"--folds", "3"}), "--folds"},
      {added(picture, {"--seed", "3"}), "--seed"},
      {added(picture, {"--cell-size", "0.1"}), "--cell-size"},
      {added(picture, {"--npix", "16"}), "--npix"},
      {added(two, {"--title", "A and B"}), "--title"},
      {added(two, {"--no-beam"}), "--no-beam"},
      {added(two, {"--norm", "symmetric"}), "--norm"},
      {added(two, {"--channels", "0,1"}), "--channels"},
      {added(vis, {"--norm", "asinh"}), "--norm"},
      {added(vis, {"--lower", "1"}), "--lower"},
      {added(vis, {"--upper", "1"}), "--upper"},
      {added(vis, {"--half-width", "1"}), "--half-width"},
      {added(vis, {"--kind", "uv", "--bins", "10"}), "--bins"},
      {added(disc, {"--array", "{array}", "--antennas", "5"}), "--antennas"},
      {added(disc, {"--array", "{array}", "--longest-baseline", "5"}), "--longest-baseline"},
      {added(disc, {"--cell-size", "0.1"}), "--cell-size"},
      {added(disc, {"--npix", "16"}), "--npix"},
      {added(disc, {"--no-noise", "--seed", "1"}), "--seed"},
      {added(disc, {"--no-crescent", "--crescent-width", "1"}), "--crescent-width"},
      {added(sky, {"--no-crescent"}), "--no-crescent"},
      {added(sky, {"--rings", "none"}), "--rings"},
      {added(sky, {"--truth", "{run}/truth.fits", "--npix", "16"}), "--npix"},
  };
  for (const auto* option : {"--flux", "--spectral-index", "--inclination", "--position-angle", "--offset-east", "--offset-north",
                             "--crescent-radius", "--crescent-width", "--crescent-position-angle", "--crescent-contrast"}) {
    rows.push_back({added(sky, {option, "1"}), option});
  }
  for (const auto* option : {"--uv-unit", "--frequency", "--bin-width", "--max-baseline", "--cell-size", "--npix"}) {
    const auto* value = std::string(option) == "--uv-unit" ? "m" : "8";
    rows.push_back({{"profile", "{image}", "-o", "{out}", option, value}, option});
  }
  for (const auto* verb : {"dirty", "weights", "inspect", "profile", "plot", "predict", "spectrum"}) {
    rows.push_back({{verb, "{vis}", "-o", "{out}", "--device", "cpu"}, "--device"});
  }
  for (const auto* verb : {"dirty", "weights", "inspect", "profile", "plot"}) {
    rows.push_back({{verb, "{vis}", "-o", "{out}", "--dtype", "float64"}, "--dtype"});
  }
  return rows;
}

}  // namespace mpol::testing
