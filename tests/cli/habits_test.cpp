#include "catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "observation.h"
#include "option_table.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

/// What bash would offer after some words, the last of which is being typed.
std::string offered(const std::filesystem::path& script, const std::string& words, int current) {
  const auto out = script.parent_path() / "offered";
  const auto command = "bash -c 'source \"" + script.string() + "\"; COMP_WORDS=(" + words +
                       "); COMP_CWORD=" + std::to_string(current) + "; _mpol; echo \"${COMPREPLY[@]}\"' > \"" + out.string() +
                       "\"";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_text(out);
}

/// Sets a variable of this process's environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("bash completes verbs, options and the values that have names", "[cli]") {
  const Scratch scratch;
  const auto script = scratch / "mpol.bash";
  write_text(script, run_mpol_here({"completion", "bash"}).out);
  CHECK(offered(script, "mpol ima", 1) == "image\n");
  CHECK(offered(script, "mpol image --likeli", 2) == "--likelihood\n");
  CHECK(offered(script, "mpol image --likelihood e", 3) == "exact\n");
  CHECK(offered(script, "mpol image vis", 2) == "\n");  // bash then offers files
  CHECK(offered(script, "mpol image --mask im", 3) == "\n");
  CHECK(offered(script, "mpol devices --", 2).find("--json") != std::string::npos);
}

TEST_CASE("completions and manual pages have every option of every verb", "[cli][quick]") {
  const auto bash = run_mpol_here({"completion", "bash"}).out, zsh = run_mpol_here({"completion", "zsh"}).out,
             fish = run_mpol_here({"completion", "fish"}).out, program = run_mpol_here({"manual"}).out;
  CHECK(zsh.starts_with("#compdef mpol\n"));
  CHECK(program.starts_with(".TH MPOL 1 "));
  for (const auto& [verb, rows] : option_table()) {
    INFO(verb);
    const auto page = run_mpol_here({"manual", verb}).out;
    CHECK(page.find(".SH OPTIONS") != std::string::npos);
    CHECK(program.find("mpol\\-" + verb) != std::string::npos);
    CHECK(fish.find("-a " + verb + " -d ") != std::string::npos);
    for (const auto& row : rows) {
      INFO(row.option);
      CHECK(bash.find(row.option + " ") != std::string::npos);
      CHECK(zsh.find("'" + row.option) != std::string::npos);
      CHECK(fish.find("'__fish_seen_subcommand_from " + verb + "' -l " + row.option.substr(2)) != std::string::npos);
      auto in_roff = row.option;
      for (auto at = in_roff.find('-'); at != std::string::npos; at = in_roff.find('-', at + 2)) in_roff.insert(at, "\\");
      CHECK(page.find("\\fB" + in_roff + "\\fR") != std::string::npos);
    }
  }
  CHECK(json::parse(run_mpol_here({"completion", "fish", "--json"}).out)["text"] == fish);
  CHECK(run_mpol_here({"completion", "tcsh"}).exit_code == 2);
  CHECK(run_mpol_here({"completion"}).exit_code == 2);
  CHECK(run_mpol_here({"manual", "images"}).exit_code == 2);
}

TEST_CASE("variables of the environment are defaults, which files and the command line beat", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  write_text(scratch / "settings.toml", "npix = 36\n");
  const Variable pixels("MPOL_NPIX", "34"), unit("MPOL_UNIT", "Jy/arcsec2"), other("MPOL_CRESCENT_WIDTH", "3");
  const auto npix = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"weights", data, "-o", (scratch / "out").string(), "--overwrite", "--cell-size", "0.1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(run.error_lines().empty());
    return json::parse(read_text(scratch / "out" / "summary.json"))["npix"].get<int>();
  };
  CHECK(npix({}) == 34);
  CHECK(npix({"--config", (scratch / "settings.toml").string()}) == 36);
  CHECK(npix({"--npix", "38"}) == 38);
  const auto run =
      run_mpol_here({"image", data, "-o", (scratch / "image").string(), "--cell-size", "0.1", "--epochs", "2", "--quiet"});
  REQUIRE(run.exit_code == 0);
  CHECK(read_text(scratch / "image" / "run.toml").find("\nnpix = 34\n") != std::string::npos);
}

TEST_CASE("a variable that is no option is warned of, a bad value refused", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  {
    const Variable unknown("MPOL_NPIXELS", "34");
    const auto run = run_mpol_here({"inspect", data});
    CHECK(run.exit_code == 0);
    CHECK(run.error_names("MPOL_NPIXELS"));
  }
  const Variable bad("MPOL_NPIX", "many");
  const auto run = run_mpol_here({"inspect", data});
  CHECK(run.exit_code == 2);
  CHECK(run.error_names("--npix (MPOL_NPIX in the environment): many; "));
  write_text(scratch / "settings.toml", "npix = 'few'\n");
  const auto of_file = run_mpol_here({"inspect", data, "--config", (scratch / "settings.toml").string()});
  CHECK(of_file.error_names("--npix (line 1 of "));
  const auto own = run_mpol_here({"inspect", data, "--npix", "none"});
  CHECK(own.error_names("--npix: none; "));
  CHECK_FALSE(own.error_names("MPOL_NPIX"));
}

TEST_CASE("show draws an image in characters, blocks, sixels and kitty's graphics", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(data, scratch / "out", {"--quiet"})).exit_code == 0);
  const auto image = (scratch / "out" / "image.fits").string();
  const auto drawn = [&](const std::string& format) {
    return run_mpol_here({"show", image, "--format", format, "--width", "16"}).out;
  };
  const auto text = run_mpol_here({"show", image, "--width", "16"}).out;  // stdout is no terminal
  CHECK(text == drawn("text"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 9);  // 16 rows, two in a line, and the words
  const auto blocks = drawn("blocks");
  CHECK(blocks.find("\x1b[38;2;") != std::string::npos);
  CHECK(std::count(blocks.begin(), blocks.end(), '\n') == 9);
  const auto sixels = drawn("sixel");
  CHECK(sixels.starts_with("\x1bPq\"1;1;16;16"));
  CHECK(sixels.find("\x1b\\") != std::string::npos);
  CHECK(drawn("kitty").starts_with("\x1b_Ga=T,f=24,s=16,v=16,m=0;"));
  CHECK(json::parse(run_mpol_here({"show", image, "--json"}).out)["columns"] == 32);
  CHECK(run_mpol_here({"show", image, "--channel", "1"}).exit_code == 2);
  CHECK(run_mpol_here({"show"}).exit_code == 2);
  CHECK(run_mpol_here({"show", (scratch / "none.fits").string()}).exit_code == 1);
}
