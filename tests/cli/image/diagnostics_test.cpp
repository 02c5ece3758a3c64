#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "picture.h"
#include "program.h"

using namespace mpol::testing;

namespace {

std::vector<std::string> and_more(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void run_well(const std::vector<std::string>& arguments) {
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  // Fits of so few epochs may say that they were cut short, and nothing else.
  for (const auto& line : run.error_lines()) CHECK_THAT(line, ContainsSubstring("the fit was still moving"));
}

std::vector<std::vector<double>> diagnostic_rows(const std::filesystem::path& table) {
  std::istringstream lines(read_text(table));
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<double>> rows;
  while (std::getline(lines, line)) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

bool same_files(const std::filesystem::path& a, const std::filesystem::path& b) { return read_text(a) == read_text(b); }

}  // namespace

TEST_CASE("diagnostics show a fit every few epochs, and leave it as it is, bit for bit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto [step, likelihood, dtype, optimizer] =
      GENERATE(table<std::string, std::string, std::string, std::string>({{"fused", "gridded", "float64", "adam"},
                                                                          {"fused", "exact", "float32", "adam"},
                                                                          {"eager", "exact", "float32", "adam"},
                                                                          {"fused", "gridded", "float64", "lbfgs"},
                                                                          {"eager", "gridded", "float32", "sgd"}}));
  INFO(step << " " << likelihood << " " << dtype << " " << optimizer);
  const std::vector<std::string> manner = {"--step", step,          "--likelihood", likelihood, "--dtype",
                                           dtype,    "--optimizer", optimizer,      "--tv",     "1e-3"};
  run_well(short_run(data, scratch / "plain", manner));
  run_well(short_run(data, scratch / "shown", and_more(manner, {"--diagnostics-interval", "4"})));
  for (const auto* name : {"history.csv", "image.fits"}) {
    INFO(name);
    CHECK(same_files(scratch / "plain" / name, scratch / "shown" / name));
  }
  CHECK_FALSE(std::filesystem::exists(scratch / "plain" / "diagnostics"));
  const auto folder = scratch / "shown" / "diagnostics";
  CHECK(names_in(folder) == std::vector<std::string>{"diagnostics.csv", "epoch_000004.png", "epoch_000008.png",
                                                     "epoch_000010.png", "last.safetensors"});
  CHECK(read_png(folder / "epoch_000004.png").width == 3 * 620);

  CHECK(read_text(folder / "diagnostics.csv").starts_with("epoch,gradient_norm,largest_change,flux_0,flux_1\n"));
  const auto rows = diagnostic_rows(folder / "diagnostics.csv");
  REQUIRE(rows.size() == 3);
  const auto summary = nlohmann::json::parse(read_text(scratch / "shown" / "summary.json"));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i][0] == std::vector<double>{4, 8, 10}[i]);
    CHECK(rows[i][1] > 0);
    CHECK(rows[i][2] > 0);
  }
  CHECK(rows[2][3] == Approx(summary["flux_jy"][0].get<double>()).epsilon(1e-6));
  CHECK(rows[2][4] == Approx(summary["flux_jy"][1].get<double>()).epsilon(1e-6));
}

TEST_CASE("diagnostics say how far the image has moved since the figure before", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  run_well(short_run(data, scratch / "out", {"--epochs", "8", "--diagnostics-interval", "4"}));
  run_well(short_run(data, scratch / "before", {"--epochs", "4"}));
  const auto image = [&](const std::string& out) {
    return mpol::io::read_fits(scratch / out / "image.fits").cube / 0.01;
  };  // Jy/arcsec^2
  const auto rows = diagnostic_rows(scratch / "out" / "diagnostics" / "diagnostics.csv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1][2] == Approx((image("out") - image("before")).abs().max().item<double>()).epsilon(1e-5));
}

TEST_CASE("an interrupted fit that is resumed has the diagnostics of one that never was", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::vector<std::string> shown = {"--diagnostics-interval", "7", "--likelihood", "gridded"};
  const auto table = scratch / "out" / "diagnostics" / "diagnostics.csv";
  {
    Program program(short_run(data, scratch / "out", and_more(shown, {"--epochs", "1000000"})));
    while (!std::filesystem::exists(table) && program.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    program.send(SIGINT);
    const auto ended = program.wait();
    INFO(ended.err);
    REQUIRE(ended.exit_code == 130);
  }
  // Drawn without image.fits, from what the diagnostics hold.
  run_well({"plot", (scratch / "out").string(), "-o", (scratch / "interrupted.png").string()});
  CHECK(read_png(scratch / "interrupted.png").width == 3 * 620);

  const auto history = read_text(scratch / "out" / "history.csv");
  const auto epochs = std::to_string(std::count(history.begin(), history.end(), '\n') - 1 + 20);
  run_well(short_run(data, scratch / "out", and_more(shown, {"--epochs", epochs, "--resume"})));
  run_well(short_run(data, scratch / "straight", and_more(shown, {"--epochs", epochs})));
  CHECK(same_files(table, scratch / "straight" / "diagnostics" / "diagnostics.csv"));
  CHECK(names_in(scratch / "out" / "diagnostics") == names_in(scratch / "straight" / "diagnostics"));
  CHECK(same_files(scratch / "out" / "image.fits", scratch / "straight" / "image.fits"));
}

TEST_CASE("damaged diagnostics do not keep a fit from going on", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::vector<std::string> shown = {"--diagnostics-interval", "5"};
  run_well(short_run(data, scratch / "out", shown));
  write_text(scratch / "out" / "diagnostics" / "last.safetensors", "damaged");
  const auto resumed = run_mpol_here(short_run(data, scratch / "out", and_more(shown, {"--resume", "--epochs", "20"})));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  const auto lines = resumed.error_lines();
  CHECK(std::count_if(lines.begin(), lines.end(),
                      [](const std::string& line) { return line.find("still moving") == std::string::npos; }) == 1);
  CHECK(resumed.error_names("diagnostics"));
  CHECK(diagnostic_rows(scratch / "out" / "diagnostics" / "diagnostics.csv").size() == 2);
}

TEST_CASE("a run that replaces another removes its diagnostics, and nothing else", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  run_well(short_run(data, scratch / "out", {"--diagnostics-interval", "3"}));
  write_text(scratch / "out" / "diagnostics" / "notes.txt", "mine");
  run_well(short_run(data, scratch / "out", {"--diagnostics-interval", "5", "--overwrite"}));
  CHECK(names_in(scratch / "out" / "diagnostics") ==
        std::vector<std::string>{"diagnostics.csv", "epoch_000005.png", "epoch_000010.png", "last.safetensors", "notes.txt"});
  run_well(short_run(data, scratch / "out", {"--overwrite"}));
  CHECK(names_in(scratch / "out" / "diagnostics") == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("plot shows change, gradient and flux of a fit with diagnostics", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  run_well(short_run(data, scratch / "out", {"--diagnostics-interval", "2"}));
  run_well({"plot", (scratch / "out").string(), "-o", (scratch / "training.png").string()});
  const auto script = read_text(scratch / "figures" / "training.gp");
  for (const auto* title : {"'image", "'change of the image", "'gradient of the loss", "'loss, learning rate 0.", "'flux'"}) {
    INFO(title);
    CHECK(script.find(title) != std::string::npos);
  }
}

TEST_CASE("guessed strengths of regularisers are used, and wrong names refused", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol_here(short_run(data, scratch / "out", {"--guess-lambda", "tsv,entropy", "--sparsity", "1e-3"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto said = run.out.find("lambda of tsv: ");
  REQUIRE(said != std::string::npos);
  const auto tsv = run.out.substr(said + 15, run.out.find(' ', said + 15) - said - 15);  // as the program said it
  CHECK(std::stod(tsv) > 0);
  const auto toml = read_text(scratch / "out" / "run.toml");
  CHECK(toml.find("tsv = 0  # guessed: " + tsv) != std::string::npos);
  CHECK(toml.find("entropy = 0  # guessed: ") != std::string::npos);
  const auto history = mpol::io::read_fits(scratch / "out" / "image.fits").history;
  CHECK(std::find(history.begin(), history.end(), "tsv = " + tsv + " (guessed)") != history.end());
  CHECK(std::find(history.begin(), history.end(), "tsv = 0") == history.end());
  CHECK(read_text(scratch / "out" / "history.csv").starts_with("epoch,total,nll,sparsity,tv,tsv,entropy,learning_rate\n"));
  const auto again =
      run_mpol_here({"image", "--config", (scratch / "out" / "run.toml").string(), "-o", (scratch / "again").string()});
  REQUIRE(again.exit_code == 0);
  CHECK(same_files(scratch / "out" / "history.csv", scratch / "again" / "history.csv"));

  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    const auto bad = run_mpol_here(short_run(data, scratch / "bad", more));
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK(bad.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "bad"));
  };
  refused({"--guess-lambda", "nonsense"}, "nonsense");
  refused({"--guess-lambda", "tsv", "--tsv", "1e-3"}, "--tsv");
  refused({"--guess-lambda", "psd"}, "--psd-length");
  refused({"--diagnostics-interval", "0"}, "--diagnostics-interval");
}

TEST_CASE("data with Hermitian pairs are refused", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation();
  arrays["uu"] = at::cat({arrays["uu"], -arrays["uu"]});
  arrays["vv"] = at::cat({arrays["vv"], -arrays["vv"]});
  arrays["weight"] = at::cat({arrays["weight"], arrays["weight"]});
  arrays["data"] = at::cat({arrays["data"], arrays["data"].conj().resolve_conj()});
  const auto data = write_observation(scratch / "pairs.npz", arrays);
  for (const auto* verb : {"image", "dirty", "weights"}) {
    INFO(verb);
    const auto run = run_mpol_here({verb, data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32"});
    INFO(run.err);
    CHECK(run.exit_code == 1);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names("Hermitian"));
    CHECK_FALSE(std::filesystem::exists(scratch / "out"));
  }
  const auto inspected = run_mpol_here({"inspect", data});
  CHECK(inspected.exit_code == 0);
  CHECK(inspected.error_names("Hermitian"));
}

TEST_CASE("dirty compares the scatter of the data with their weights", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation(1, 6000);
  arrays["weight"] = arrays["weight"] * 25.0;
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const auto dirty = [&](const std::string& out, const std::vector<std::string>& more) {
    return run_mpol_here(and_more({"dirty", data, "-o", (scratch / out).string(), "--cell-size", "0.1", "--npix", "32"}, more));
  };
  const auto warned = dirty("warned", {});
  CHECK(warned.exit_code == 0);
  CHECK(warned.error_lines().size() == 1);
  CHECK(warned.error_names("weights look too large"));
  CHECK(dirty("off", {"--scatter-check", "off"}).err.empty());
  const auto refused = dirty("refused", {"--scatter-check", "error"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_lines().size() == 1);
  CHECK_FALSE(std::filesystem::exists(scratch / "refused"));
}

TEST_CASE("a bright source off the centre or outside of the field is not taken for wrong weights", "[cli]") {
  const Scratch scratch;
  const std::vector<std::string> grid{"--cell-size", "0.05", "--npix", "96"};
  for (const auto& offset : std::vector<std::string>{"0", "1", "5"}) {
    const auto data = (scratch / ("vis" + offset + ".npz")).string();
    REQUIRE(run_mpol_here({"simulate", "-o", data, "--flux", "5", "--offset-east", offset, "--quiet"}).exit_code == 0);
    const auto run = [&](const std::string& verb, const std::vector<std::string>& more = {}) {
      const auto result =
          run_mpol_here(and_more(and_more({verb, data, "-o", (scratch / (verb + offset)).string(), "--overwrite"}, grid), more));
      CHECK(result.exit_code == 0);
      return result;
    };
    INFO("offset " << offset);
    CHECK_FALSE(run("dirty", {"--scatter-check", "error"}).error_names("weights"));
    CHECK_FALSE(run("image").error_names("weights"));
    CHECK_FALSE(run("image", {"--likelihood", "gridded", "--scatter-check", "error"}).error_names("weights"));
    run("weights", {"--quiet"});
    CHECK_THAT(nlohmann::json::parse(read_text(scratch / ("weights" + offset) / "summary.json"))["sigma_factor"].get<double>(),
               WithinRel(1.0, 0.05));
  }
}

TEST_CASE("several files make one continuum image, whatever their channels and samples", "[cli]") {
  const Scratch scratch;
  auto first = small_observation(2, 500), second = small_observation(1, 400);
  const auto a = write_observation(scratch / "a.npz", first), b = write_observation(scratch / "b.npz", second);
  // The same samples in one file.
  const auto all = [&](const std::string& key) {
    const auto& own = first.at(key);
    return at::cat({own.dim() == 1 ? own.repeat({2}) : own.flatten(), second.at(key).flatten()});
  };
  const auto together = write_observation(
      scratch / "ab.npz", {{"uu", all("uu")}, {"vv", all("vv")}, {"weight", all("weight")}, {"data", all("data")}});
  for (const auto* likelihood : {"gridded", "exact"}) {
    INFO(likelihood);
    const auto out = scratch / (std::string("several_") + likelihood), one = scratch / (std::string("one_") + likelihood);
    run_well(short_run(a, out, {"--more-data", b, "--likelihood", likelihood}));
    run_well(short_run(together, one, {"--likelihood", likelihood}));
    CHECK(same_files(out / "history.csv", one / "history.csv"));
    const auto summary = nlohmann::json::parse(read_text(out / "summary.json"));
    CHECK(summary["n_visibilities"] == 1400);
    CHECK(summary["flux_jy"].size() == 1);
  }
  // A comma in a name, on the command line, in run.toml and in a list of a configuration.
  const auto comma = write_observation(scratch / "b,c.npz", second);
  const auto escaped = (scratch / "b\\,c.npz").string();
  run_well(short_run(a, scratch / "comma", {"--more-data", escaped}));
  CHECK(same_files(scratch / "comma" / "history.csv", scratch / "several_gridded" / "history.csv"));
  run_well({"image", "--config", (scratch / "comma" / "run.toml").string(), "-o", (scratch / "comma_again").string()});
  CHECK(same_files(scratch / "comma_again" / "image.fits", scratch / "comma" / "image.fits"));
  write_text(scratch / "list.toml", "more-data = [\"b,c.npz\"]\n");
  run_well(short_run(a, scratch / "comma_list", {"--config", (scratch / "list.toml").string()}));
  CHECK(same_files(scratch / "comma_list" / "history.csv", scratch / "comma" / "history.csv"));
  // run.toml repeats it; another second file is another run.
  const auto toml = (scratch / "several_gridded" / "run.toml").string();
  run_well({"image", "--config", toml, "-o", (scratch / "again").string()});
  CHECK(same_files(scratch / "again" / "image.fits", scratch / "several_gridded" / "image.fits"));
  const auto other = run_mpol_here(
      short_run(a, scratch / "several_gridded", {"--more-data", a, "--likelihood", "gridded", "--resume", "--epochs", "12"}));
  CHECK(other.exit_code != 0);
  const auto cube = run_mpol_here(short_run(a, scratch / "cube", {"--more-data", b, "--mode", "cube"}));
  CHECK(cube.exit_code == 2);
  CHECK(cube.error_names("--more-data"));
  const auto missing = run_mpol_here(short_run(a, scratch / "missing", {"--more-data", "nothing.npz"}));
  CHECK(missing.exit_code == 1);
  CHECK(missing.error_names("nothing.npz"));
}

TEST_CASE("events for TensorBoard leave a fit as it is, go on with a resumed one, and go with a run without them", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const std::vector<std::string> manner = {"--step", "fused", "--likelihood", "exact", "--epochs", "24"};
  run_well(short_run(data, scratch / "plain", manner));
  run_well(short_run(data, scratch / "shown", and_more(manner, {"--tensorboard"})));
  for (const auto* name : {"history.csv", "image.fits"}) CHECK(same_files(scratch / "plain" / name, scratch / "shown" / name));
  CHECK_FALSE(std::filesystem::exists(scratch / "plain" / "diagnostics"));
  const auto folder = scratch / "shown" / "diagnostics";
  auto names = names_in(folder);
  REQUIRE(names.size() == 1);
  CHECK(names[0].starts_with("events.out.tfevents."));
  const auto events = read_text(folder / names[0]);
  for (const auto* tag : {"loss/total", "loss/nll", "loss/tv", "learning_rate", "flux_jy/0", "flux_jy/1"}) {
    INFO(tag);
    std::size_t count = 0;
    for (auto at = events.find(tag); at != std::string::npos; at = events.find(tag, at + 1)) ++count;
    CHECK(count == 3);  // after 10, 20 and 24 epochs
  }
  auto longer = manner;
  longer.back() = "35";
  run_well(short_run(data, scratch / "shown", and_more(longer, {"--tensorboard", "--resume"})));
  CHECK(names_in(folder).size() == 2);
  run_well(short_run(data, scratch / "shown", and_more(manner, {"--tensorboard", "--overwrite"})));
  names = names_in(folder);
  CHECK(names.size() == 1);
  run_well(short_run(data, scratch / "shown", and_more(manner, {"--overwrite"})));
  CHECK(names_in(folder).empty());
}
