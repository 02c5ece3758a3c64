#include "catch.h"

#include <algorithm>

#include <mpol_cpp/cli/program/verb.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;

TEST_CASE("run.toml repeats a run bit for bit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto first = run_mpol(short_run(
      data, scratch / "disc", {"--dtype", "float32", "--learning-rate", "0.123456789", "--channels", "1", "--start", "dirty"}));
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  const auto again =
      run_mpol({"image", "--config", (scratch / "disc" / "run.toml").string(), "-o", (scratch / "again").string()});
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  for (const auto* name : {"image.fits", "dirty.fits", "residual.fits", "history.csv", "run.toml"}) {
    INFO(name);
    CHECK(read_text(scratch / "disc" / name) == read_text(scratch / "again" / name));
  }
  const auto text = read_text(scratch / "disc" / "run.toml");
  for (const auto* part : {"likelihood = \"gridded\"", "threads = ", "data_sha256 = \""}) {
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("learning-rate = 0.123456789\n") != std::string::npos);
  CHECK(text.find("disc") == std::string::npos);  // OUT is no setting
}

TEST_CASE("the command line beats the file, and paths in it are relative to it", "[cli]") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "observations");
  write_observation(scratch / "observations" / "vis.npz", small_observation());
  std::filesystem::create_directories(scratch / "settings");
  write_text(scratch / "settings" / "disc.toml",
             "data = \"../observations/vis.npz\"\nnpix = 34\n[image]\ncell-size = 0.1\nepochs = 3\ndtype = 'float64'\n"
             "device = 'cpu'\nquiet = true\nlikelihood = 'exact'\nkernel-folder = '../kernels'\n");
  std::filesystem::create_directories(scratch / "kernels");
  const auto config = (scratch / "settings" / "disc.toml").string();
  const auto run = run_mpol({"image", "--epochs", "5", "--config", config, "-o", "out"}, {.folder = scratch.path()});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.empty());
  const auto history = read_text(scratch / "out" / "history.csv");
  CHECK(std::count(history.begin(), history.end(), '\n') == 6);
  const auto record = read_text(scratch / "out" / "run.toml");
  CHECK_THAT(record, ContainsSubstring("npix = 34\n"));
  CHECK_THAT(record, ContainsSubstring("kernel-folder = \"" + (scratch / "kernels").string() + "\""));
}

TEST_CASE("a configuration that cannot be followed is one line that names what is wrong", "[cli]") {
  const Scratch scratch;
  const auto check = [&](const std::string& text, const std::string& named, int code) {
    write_text(scratch / "bad.toml", text);
    const auto run = run_mpol({"image", "--config", (scratch / "bad.toml").string(), "-o", (scratch / "out").string()});
    INFO(text << "\n" << run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(named));
    CHECK_FALSE(std::filesystem::exists(scratch / "out"));
  };
  check("sparsty = 1e-3\n", "sparsty", 2);
  check("[image]\nsparsty = 1e-3\n", "sparsty", 2);
  check("[imag]\nsparsity = 1e-3\n", "imag", 2);
  check("epochs = 3\n\nsparsty = 1e-3\n", "line 3", 2);
  check("epochs = 3\n[image]\nsparsty = 1e-3\n", "line 3", 2);
  check("epochs = 3\ntv = [1, {a = 2}]\n", "line 2", 2);
  check("npix = 33\ndata = 'x.npz'\n", "33", 2);
  check("data = 'x.npz'\nnpix = 33\n", "--npix (line 2 of " + (scratch / "bad.toml").string() + "): 33; ", 2);
  check("data = 'x.npz'\n[image]\nlikelihood = 'exakt'\n", "--likelihood (line 3 of ", 2);
  check("data = 'x.npz'\n\ndegrees-of-freedom = 3\n", "--degrees-of-freedom (line 3 of ", 2);  // without a meaning here
  check("data = 'x.npz'\nquiet = 'perhaps'\n", "--quiet (line 2 of ", 2);
  check("sparsity = nan\n", "nan", 2);
  check("npix = \n", "line 1", 1);
}

TEST_CASE("settings of all verbs stand in one file, each in a table that the others pass over", "[cli][quick]") {
  const Scratch scratch;
  const auto read_by = [&](const std::string& verb, const std::string& text) {
    write_text(scratch / "shared.toml", text);
    return run_mpol_here({verb, "--config", (scratch / "shared.toml").string(), "--help"});
  };
  const auto table_of = [](const std::string& verb) { return "[" + verb + "]\nno-such-option = 1\n"; };
  std::size_t readers = 0;
  for (const std::string verb : mpol::cli::verb_names) {
    if (run_mpol_here({verb, "--help"}).out.find("--config") == std::string::npos) continue;
    ++readers;
    std::string others;
    for (const std::string other : mpol::cli::verb_names) {
      const bool is_own = other == verb || (verb == "crossval" && other == "image");
      if (!is_own) others += table_of(other);
    }
    const auto passed_over = read_by(verb, others), own = read_by(verb, others + table_of(verb));
    INFO(verb << "\n" << passed_over.err << own.err);
    CHECK(passed_over.exit_code == 0);
    CHECK(own.exit_code == 2);
    CHECK(own.error_names("no-such-option"));
  }
  CHECK(readers > 15);
}

TEST_CASE("a cross-validation has the settings of an image, and those of its own table beat them", "[cli]") {
  const Scratch scratch;
  const auto refused_value = [&](const std::string& text) {
    write_text(scratch / "scan.toml", text);
    return run_mpol_here({"crossval", "x.npz", "--config", (scratch / "scan.toml").string(), "-o", (scratch / "out").string()});
  };
  CHECK(refused_value("[image]\nnpix = 33\n").error_names("--npix (line 2 of "));
  CHECK(refused_value("[image]\nnpix = 34\n[crossval]\nnpix = 35\n").error_names("--npix (line 4 of "));
}

TEST_CASE("a value is not said to be a file's where the command line gave it", "[cli]") {
  const Scratch scratch;
  write_text(scratch / "good.toml", "npix = 34\n");
  const auto config = (scratch / "good.toml").string();
  for (const auto& own : {std::vector<std::string>{"--npix", "33"}, {"--npix=33"}}) {
    auto arguments = std::vector<std::string>{"image", "x.npz", "-o", (scratch / "out").string(), "--config", config};
    arguments.insert(arguments.end(), own.begin(), own.end());
    const auto run = run_mpol(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.error_names("--npix: 33; "));
    CHECK_FALSE(run.error_names("good.toml"));
  }
}
