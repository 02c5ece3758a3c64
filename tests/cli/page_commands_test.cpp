#include <cstddef>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "compare.h"
#include "pages.h"
#include "python.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

namespace fs = std::filesystem;

/// Commands that no test of the pages runs, and why, by how they begin. What they name must be there all the same.
const std::map<std::string, std::string> not_run_here = {
    {"./quickstart", "it installs packages and builds; .ci/run starts it"},
    {"./run_tests", "it builds all and runs this test; .ci/run starts it"},
    {"scripts/", "they install, build, package and check; .ci/run and scripts/nightly start them"},
    {"cmake", "it builds; scripts/check_consumer runs the lines of docs/guide/linking.md, .ci/run the others"},
    {"cpack", "scripts/package packs"},
    {"ctest", "it runs this test"},
    {"build/release/bin/test_", "tests"},
    {"build/release/bin/simple_net", "tests/examples runs it"},
    {"build/release/bin/mpol_benchmark", "minutes"},
    {"build/release/bin/solver_benchmark", "minutes"},
    {"build/release/bin/measurement_set_benchmark", "minutes, and gigabytes"},
    {"python benchmarks/", "minutes, beside software of others"},
    {"build/test-python/bin/python3 benchmarks/", "minutes to an hour"},
    {"pip", "scripts/check_python installs the package"},
    {"apt-get", "scripts/check_package installs the package, in a bare system"},
    {"tar", "scripts/check_package unpacks the archive"},
    {"mpol-", "scripts/check_package runs it"},
    {"docker", "there is no Docker in a test"},
    {"apptainer", "there is no Apptainer in a test"},
};

/// A command without a comment behind it, and without variables that are set before it.
std::string bare(const std::string& command) {
  const auto text = command.substr(0, command.find(" #"));
  return std::regex_replace(text, std::regex("^( *[A-Z_]+=[^ ]* )*"), "");
}

std::string first_word(const std::string& command) {
  std::istringstream words(command);
  std::string word;
  words >> word;
  return word;
}

bool is_command(const std::string& line) {
  static const std::set<std::string> programs = {"mpol",      "mpirun", "mpiexec", "srun",    "sbatch", "torchrun", "cmake",
                                                 "cpack",     "ctest",  "python",  "python3", "pip",    "git",      "docker",
                                                 "apt-get",   "tar",    "gnuplot", "man",     "bash",   "sh",       "conda",
                                                 "apptainer", "mkdocs", "ninja",   "make"};
  const auto word = first_word(line);
  return programs.contains(word) || word.starts_with("./") || word.starts_with("#!") ||
         std::regex_match(word, std::regex("[a-z0-9_.-]+(/[A-Za-z0-9_.-]+)+"));
}

bool is_not_run(const std::string& command) {
  for (const auto& [beginning, reason] : not_run_here) {
    if (command.starts_with(beginning)) return true;
  }
  return false;
}

/// Whether a built program has its source here.
bool has_source(const std::string& program) {
  const auto in = [&](const std::string& path) { return fs::exists(repository() / path); };
  if (program == "mpol" || program == "readme_program") return true;
  if (program.starts_with("test_")) return in("tests/" + program.substr(5));
  return in("examples/" + program + ".cpp") || in("benchmarks/" + program + ".cpp");
}

/// A program's source, and those of the scripts beside it that it imports: they may name its options for it.
std::string source_with_imports(const fs::path& path) {
  const auto own = read_text(path);
  auto source = own;
  static const std::regex import("(?:^|\\n)from ([a-z_]+) import ");
  for (std::sregex_iterator found(own.begin(), own.end(), import), end; found != end; ++found) {
    const auto module = path.parent_path() / (found->str(1) + ".py");
    if (fs::exists(module)) source += read_text(module);
  }
  return source;
}

/// The words of a command that name what is not in the repository: scripts, programs, presets, options of benchmarks.
std::vector<std::string> names_nothing(const std::string& command) {
  std::vector<std::string> wrong;
  std::istringstream words(command);
  std::string benchmark, before;
  for (std::string word; words >> word; before = word) {
    bool is_there = true;
    if (word.starts_with("build/release/bin/")) {
      is_there = has_source(word.substr(std::string("build/release/bin/").size()));
    } else if (std::regex_match(word, std::regex("(\\./(?!mpol-)|scripts/|benchmarks/|packaging/|requirements/|data/).+"))) {
      is_there = fs::exists(repository() / word);
      if (word.starts_with("benchmarks/") && is_there) benchmark = source_with_imports(repository() / word);
    } else if (before == "--preset") {
      is_there = read_text(repository() / "CMakePresets.json").find("\"" + word + "\"") != std::string::npos;
    } else if (before == "--target") {
      is_there = has_source(word);
    } else if (!benchmark.empty() && word.starts_with("--")) {
      is_there = benchmark.find("\"" + word + "\"") != std::string::npos;
    }
    if (!is_there) wrong.push_back(word);
  }
  return wrong;
}

/// Whether a test runs the blocks `sh` of a page: those below, or, of programs of the tutorials, tests/examples.
bool is_run(const fs::path& page, const std::string& command) {
  const auto folder = page.parent_path().lexically_relative(repository()).string();
  if (folder == "docs/tutorials") return command.starts_with("build/release/bin/") || is_not_run(command);
  return folder == "docs" || folder == "docs/guide" || folder == "data" || page.filename() == "README.md";
}

}  // namespace

TEST_CASE("the tutorial's commands run as they are written", "[cli]") {
  const PageFolder folder;
  CHECK(run_commands_of(repository() / "docs/tutorial.md", folder) >= 15);
  for (const auto* made : {"visibilities.png", "weights/residuals.png", "dirty/dirty.fits", "disc/image.fits", "residual.png",
                           "truth.png", "restored/convolved.fits", "rings/profile.csv", "vis_profile/profile.png",
                           "face_on/deprojected.fits", "scan/scan.png", "folds.png"}) {
    INFO(made);
    CHECK(fs::exists(folder / made));
  }
}

TEST_CASE("the guide's commands run as they are written, each page in a folder of its own", "[cli]") {
  std::size_t commands = 0;
  for (const auto& page : pages_of("docs/guide")) {
    const PageFolder folder;
    const auto of_page = run_commands_of(page, folder, python());
    INFO(page);
    CHECK((of_page > 0 || page.filename() == "README.md"));
    commands += of_page;
  }
  CHECK(commands >= 50);
}

TEST_CASE("each page of the guide has a picture", "[cli][quick]") {
  for (const auto& page : pages_of("docs/guide")) {
    INFO(page);
    CHECK((read_text(page).find("](../images/") != std::string::npos || page.filename() == "README.md"));
  }
}

TEST_CASE("the commands of README.md and of the pages of docs run as they are written", "[cli]") {
  auto pages = pages_of("docs");
  std::erase(pages, repository() / "docs/tutorial.md");
  pages.push_back(repository() / "README.md");
  std::size_t commands = 0;
  for (const auto& page : pages) {
    const PageFolder folder;
    commands += run_commands_of(page, folder);
  }
  CHECK(commands >= 50);
}

TEST_CASE("the command of data/README.md makes the bundled disc", "[cli]") {
  const PageFolder folder;
  fs::remove(folder / "data");  // not the repository's
  fs::create_directory(folder / "data");
  CHECK(run_commands_of(repository() / "data/README.md", folder) == 1);
  const auto made = io::read_npz(folder / "data/simulated_disc.npz"),
             bundled = io::read_npz(repository() / "data/simulated_disc.npz");
  CHECK(relative_error(made.data(), bundled.data()) < 1e-5);
  CHECK(relative_error(made.weights(), bundled.weights()) < 1e-5);
  const auto truth = [](const fs::path& path) { return io::read_fits(path / "simulated_disc_truth.fits").cube; };
  CHECK(relative_error(truth(folder / "data"), truth(repository() / "data")) < 1e-5);
}

TEST_CASE("every block of commands is run by a test, or a reason is known why not", "[cli][quick]") {
  std::size_t run = 0, not_run = 0;
  for (const auto& page : all_pages()) {
    for (const auto& block : blocks_of(read_text(page))) {
      INFO(page << "\n" << block.text);
      if (block.language == "sh") {
        for (const auto& command : commands_of(block)) {
          CHECK(is_run(page, command));
          CHECK(names_nothing(bare(command)).empty());
          ++run;
        }
      } else if (block.language.empty()) {
        for (const auto& line : commands_of(block)) {
          const auto command = bare(line);
          if (!is_command(command)) continue;
          CHECK(is_not_run(command));
          CHECK(names_nothing(command).empty());
          ++not_run;
        }
      } else {
        CHECK(std::set<std::string>{"cpp", "cmake", "python", "py", "text"}.contains(block.language));
      }
    }
  }
  CHECK(run >= 150);
  CHECK(not_run >= 20);
}
