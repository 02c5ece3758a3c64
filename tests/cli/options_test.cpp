#include "catch.h"

#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <utility>

#include <ATen/ops/exp.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "option_table.h"
#include "program.h"
#ifdef MPOL_TEST_SETS
#include "set_writer.h"
#endif

using namespace mpol::testing;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// PATH with a gnuplot alone whose pictures are the scripts and data that it is given: soon drawn, and the same everywhere.
class QuickGnuplot {
 public:
  QuickGnuplot() {
    write_text(folder_ / "gnuplot", R"(#!/bin/sh
while IFS= read -r line; do
  case $line in
    "cd "*) eval cd "${line#cd }" ;;
    "output = "*) eval output="${line#output = }" ;;
    "load "*) { printf '\211PNG\r\n\032\n'; /bin/cat -- *; printf '%060dIEND....' 0; } >"$output" ;;
    "print "*) eval echo "${line#print }" ;;
  esac
done
)");
    fs::permissions(folder_ / "gnuplot", fs::perms::owner_all);
    ::setenv("PATH", (folder_ / "").c_str(), 1);
  }
  ~QuickGnuplot() { ::setenv("PATH", before_.c_str(), 1); }
  QuickGnuplot(const QuickGnuplot&) = delete;
  QuickGnuplot& operator=(const QuickGnuplot&) = delete;

 private:
  Scratch folder_;
  std::string before_ = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
};

/// The files that command lines of the table name, and the folder in which they run.
class OptionFiles {
 public:
  OptionFiles() {
    write_observations();
    write_images();
#ifdef MPOL_TEST_SETS
    write_small_set();
#endif
    write_text(scratch_ / "quiet.toml", "quiet = true\n");
    write_text(scratch_ / "robust.toml", "robust = -1\n");
    write_text(scratch_ / "array", "0 0 0 12\n100 0 0 12\n0 200 0 12\n-300 50 0 12\n");
  }

  fs::path run_folder() const { return scratch_ / "run"; }

  std::string filled(std::string word) const {
    static const std::regex name("\\{([a-z.]+)\\}");
    for (std::smatch found; std::regex_search(word, found, name);) {
      const auto key = found[1].str();
      const auto path = key == "run" ? run_folder() : key == "out" ? run_folder() / "out" : scratch_ / key;
      word = found.prefix().str() + path.string() + found.suffix().str();
    }
    return word;
  }
  std::vector<std::string> filled(std::vector<std::string> words) const {
    for (auto& word : words) word = filled(word);
    return words;
  }

 private:
  void write_observations() const {
    write_observation(scratch_ / "vis", small_observation(2, 200));
    write_observation(scratch_ / "one", small_observation(1, 200));
    write_observation(scratch_ / "more", small_observation(1, 150));
    auto scattered = small_observation(1, 20000);  // many in a cell, and noisier than their weights say
    scattered["weight"] = 100 * scattered["weight"];
    write_observation(scratch_ / "scattered", scattered);
    auto metres = small_observation(2, 200);
    metres["uu"] = metres["uu"] * 1.3e-3;
    metres["vv"] = metres["vv"] * 1.3e-3;
    write_observation(scratch_ / "metres", metres);
  }

#ifdef MPOL_TEST_SETS
  /// Two windows, of which the first has a flagged hand; both columns of data.
  void write_small_set() const {
    TestSet set;
    set.windows = {{{230e9}}, {{231e9, 230e9}}};
    for (int i = 0; i < 8; ++i) {
      TestRow row;
      row.window = i % 2;
      row.antenna1 = i / 2 % 3;  // the first pair twice
      row.antenna2 = 5;
      row.uvw = {100.0 + 10 * i, 50.0 - 20 * i, 0};
      for (int k = 0; k < (i % 2 == 0 ? 2 : 4); ++k) row.data.push_back({1.0F + 0.1F * static_cast<float>(k), 0.5F});
      row.corrected = row.data;
      row.corrected[0] = {3, 1};
      row.weight = {1, 2};
      if (i == 2) row.flags = {true, false};
      set.rows.push_back(row);
    }
    write_set(scratch_ / "set", set);
  }
#endif

  void write_images() const {
    const mpol::GridCoords coords(0.1, 16);
    const auto r = at::hypot(coords.sky_x() - 0.1, coords.sky_y());
    const auto cube = at::stack({at::exp(-3 * r), at::exp(-4 * r)});
    const auto beamed = mpol::io::FitsOptions()
                            .unit(mpol::io::FitsUnit::jy_per_beam)
                            .beams({{.major = 0.5, .minor = 0.3, .position_angle = 0.4}});
    mpol::io::write_fits(scratch_ / "image", cube, coords);
    mpol::io::write_fits(scratch_ / "other", 1.5 * cube, coords);
    mpol::io::write_fits(scratch_ / "single", cube[0], coords);
    mpol::io::write_fits(scratch_ / "mask", (r < 0.5).to(torch::kFloat64), coords);
    mpol::io::write_fits(scratch_ / "beamed", cube, coords, beamed);
  }

  Scratch scratch_;
};

/// What a command line said and left behind.
struct Effect {
  Outcome outcome;
  std::map<std::string, std::string> files;  ///< by path under {run}

  /// The part that a row speaks of; "absent" for a file or key that is not there.
  std::string part(const std::string& name) const {
    static const std::regex number("[0-9.]+(e[-+]?[0-9]+)?");
    if (name == "exit") return std::to_string(outcome.exit_code);
    const auto hash = name.find('#');
    const auto source = name.substr(0, hash);
    const bool printed = source == "stdout" || source == "stderr";
    const auto file = files.find(source);
    if (!printed && file == files.end()) return "absent";
    const auto& text = source == "stdout" ? outcome.out : source == "stderr" ? outcome.err : file->second;
    if (hash == std::string::npos) return printed ? std::regex_replace(text, number, "#") : text;
    const auto object = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const json::json_pointer place("/" + name.substr(hash + 1));
    return object.is_structured() && object.contains(place) ? object[place].dump() : "absent";
  }
};

Effect effect_in(const fs::path& folder, const std::vector<std::string>& arguments, const std::vector<std::string>* before) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  if (before != nullptr) run_mpol_here(*before);
  Effect effect{run_mpol_here(arguments), {}};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) effect.files[fs::relative(entry.path(), folder).string()] = read_text(entry.path());
  }
  return effect;
}

/// Long options of a verb's --help.
std::set<std::string> options_of(const std::string& verb) {
  const auto help = run_mpol_here({verb, "--help"}).out;
  std::set<std::string> names;
  const std::regex option("(?:^|\n)  (?:-[a-z],)?(--[a-z0-9-]+)");
  for (std::sregex_iterator match(help.begin(), help.end(), option), end; match != end; ++match) names.insert((*match)[1]);
  return names;
}

}  // namespace

TEST_CASE("every option of every verb has a row in the table of options", "[cli][quick]") {
  std::set<std::string> verbs;
  for (const auto& [verb, rows] : option_table()) {
    INFO(verb);
    verbs.insert(verb);
    std::set<std::string> in_table;
    for (const auto& row : rows) in_table.insert(row.option);
    const auto in_help = options_of(verb);
    REQUIRE(in_help.size() > 1);
    CHECK(in_table == in_help);
  }
  const auto help = run_mpol_here({"--help"}).out;
  const auto begin = help.find("Subcommands:");
  const auto list = help.substr(begin, help.find("Example:") - begin);
  std::set<std::string> in_help;
  const std::regex verb("\n  ([a-z]+) ");
  for (std::sregex_iterator match(list.begin(), list.end(), verb), end; match != end; ++match) in_help.insert((*match)[1]);
  CHECK(verbs == in_help);
}

TEST_CASE("every option changes what comes out", "[cli]") {
  const OptionFiles files;
  const QuickGnuplot gnuplot;
  const auto folder = files.run_folder();
  for (const auto& [verb, rows] : option_table()) {
#ifndef MPOL_TEST_SETS
    if (verb == "export") continue;  // it has nothing to read in this build
#endif
    std::map<std::vector<std::string>, std::pair<Effect, Effect>> effects;  // of command lines without the option, twice
    for (const auto& row : rows) {
      const auto base = files.filled(row.base);
      auto with = base;
      with.push_back(row.option);
      if (!row.value.empty()) with.push_back(files.filled(row.value));
      INFO(verb << " " << row.option << " " << row.value << " after " << json(row.base).dump());
      const auto* before = row.again ? &base : nullptr;
      if (!effects.contains(base)) effects[base] = {effect_in(folder, base, nullptr), effect_in(folder, base, nullptr)};
      const auto& [once, twice] = effects[base];
      CHECK(once.part(row.changes) == twice.part(row.changes));
      const auto plain = row.again ? effect_in(folder, base, before) : once;
      const auto changed = effect_in(folder, with, before);
      INFO("without it: " << plain.outcome.err << "with it: " << changed.outcome.err);
      if (row.changes != "exit" && row.option != "--keep-diverged") {
        CHECK(plain.outcome.exit_code == 0);
        CHECK(changed.outcome.exit_code == 0);
      }
      CHECK(changed.part(row.changes) != plain.part(row.changes));
    }
  }
}

TEST_CASE("an option that has no meaning where it is given is refused by name", "[cli][quick]") {
  const OptionFiles files;
  for (const auto& [arguments, option] : refused_options()) {
    fs::remove_all(files.run_folder());
    fs::create_directories(files.run_folder());
    const auto run = run_mpol_here(files.filled(arguments));
    INFO(json(arguments).dump() << ": " << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(option));
    CHECK(fs::is_empty(files.run_folder()));
  }
}
