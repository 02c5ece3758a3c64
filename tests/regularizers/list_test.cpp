// What every regularizer of the list is held to, and that its names are in three files.
#include "catch.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/objective/term.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::filesystem::path repository = std::filesystem::path(MPOL_DATA_DIR).parent_path();

/// The names of a line of list.h: tv_image and TvImage.
struct Names {
  std::string kind, type;
};

std::vector<Names> names_in_list() {
  return {
#define MPOL_EACH(name, Type) {#name, #Type},
      MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
  };
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Identifiers outside of comments, of text in quotation marks and of names of folders in includes.
std::set<std::string> identifiers_of(const std::string& text) {
  std::set<std::string> found;
  std::string word;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!quoted && text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
    if (!quoted && text.compare(i, 10, "#include <") == 0) {
      const auto slash = text.rfind('/', text.find('\n', i));
      if (slash != std::string::npos) i = std::max(i, slash);
    }
    if (text[i] == '"' && (i == 0 || (text[i - 1] != '\\' && text[i - 1] != '\''))) quoted = !quoted;
    const auto letter = static_cast<unsigned char>(text[i]);
    if (!quoted && (std::isalnum(letter) != 0 || letter == '_')) {
      word += text[i];
    } else if (!word.empty()) {
      found.insert(word);
      word.clear();
    }
  }
  return found;
}

/// A value for each setting that differs from the usual one.
std::vector<double> other_settings(const Regularizer& regularizer) {
  std::vector<double> settings;
  for (const auto& setting : regularizer.settings) {
    if (setting.name == "q_max") settings.push_back(1e5);
    else if (setting.name == "length_scale") settings.push_back(0.04);
    else settings.push_back(setting.name == "epsilon" ? 1e-3 : 0.3);
  }
  return settings;
}

Tensor value_of(TermKind kind, const GridCoords& coords, const Tensor& sky) {
  return Term::known(kind, 1, other_settings(regularizer_of(kind))).evaluate(ModelOutput(coords, {}, sky));
}

}  // namespace

TEST_CASE("a regularizer is three files: its pair and the list", "[regularizers][quick]") {
  // Solvers that have a proximal map of their own for one, and the image that these two make by default.
  const std::set<std::string> solved = {"solvers/convex_objective.cpp", "train/usual_image.cpp", "train/usual_image.h"};
  const auto source = repository / "mpol_cpp";
  REQUIRE(std::filesystem::exists(source));
  const auto all = names_in_list();
  REQUIRE(all.size() == static_cast<std::size_t>(regularizer_count));
  std::map<std::string, std::set<std::string>> files_of;  // by kind
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    const auto name = entry.path().lexically_relative(source).generic_string();
    const auto extension = entry.path().extension();
    // Sparse coding has a norm of coefficients of its own by a name that is also ours.
    if ((extension != ".h" && extension != ".cpp" && extension != ".cu") || name.starts_with("sparse_coding/")) continue;
    const auto identifiers = identifiers_of(text_of(entry.path()));
    for (const auto& [kind, type] : all) {
      if (identifiers.contains(kind) || identifiers.contains(type)) files_of[kind].insert(name);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& kind = all[i].kind;
    CAPTURE(kind);
    auto files = files_of[kind];
    if (regularizer_of(all_regularizers()[i]).convexity == Convexity::proximal) {
      for (const auto& file : solved) files.erase(file);
    }
    const std::set<std::string> expected = {"regularizers/" + kind + ".h", "regularizers/" + kind + ".cpp",
                                            "regularizers/list.h"};
    CHECK(files == expected);
  }
}

TEST_CASE("descriptors are complete, and their names their own", "[regularizers][quick]") {
  std::set<std::string> names, options;
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    CAPTURE(regularizer.name);
    CHECK(names.insert(regularizer.name).second);
    CHECK_FALSE(regularizer.help.empty());
    CHECK(regularizer.settings.size() <= regularizers::most_settings);
    const auto usual = RegularizerSettings::usual();
    for (std::size_t i = 0; i < regularizer.settings.size(); ++i) {
      const auto& setting = regularizer.settings[i];
      CAPTURE(setting.name);
      CHECK((setting.value || !setting.option.empty()));  // the program can give it
      if (setting.value) CHECK(*setting.value == usual.of[static_cast<int>(kind)][i]);
      if (!setting.value) CHECK_FALSE(setting.missing.empty());
      if (!setting.option.empty()) CHECK(options.insert(setting.option).second);
      if (!setting.option.empty()) CHECK_FALSE((setting.unit.empty() || setting.help.empty()));
    }
    if (regularizer.automatic) CHECK(regularizer.noise_scale != NoiseScale::none);
    if (regularizer.scaled_by) CHECK(*regularizer.scaled_by < regularizer.settings.size());
  }
  CHECK_THROWS_AS(regularizer_of(TermKind::custom), ValueError);
  CHECK_FALSE(is_fused(TermKind::custom));
}

TEST_CASE("every regularizer's gradient is that of finite differences, and each problem has its own value",
          "[regularizers][quick]") {
  const GridCoords coords(0.05, 14);
  const auto direction = normal({4, 14, 14}, torch::kFloat64, 2);
  for (const auto kind : all_regularizers()) {
    CAPTURE(regularizer_of(kind).name);
    const auto loss = [&](const Tensor& x) { return value_of(kind, coords, x); };
    CHECK(finite_difference_error(loss, random_image(coords, 4, torch::kFloat64, 1), direction) < 1e-6);
    const auto batch = normal({2, 2, 4, 14, 14}, torch::kFloat64, 4).abs();
    const auto together = loss(batch);
    REQUIRE(together.sizes() == at::IntArrayRef({2, 2}));
    CHECK(together.scalar_type() == torch::kFloat64);
    CHECK(together[1][0].item<double>() == Approx(loss(batch[1][0]).item<double>()).epsilon(1e-13));
    CHECK(value_of(kind, coords, batch[0][1].narrow(0, 0, 1)).isfinite().all().item<bool>());  // one channel
  }
}

TEST_CASE("terms refuse settings that are out of their range, missing or too many", "[regularizers][quick]") {
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    CAPTURE(regularizer.name);
    for (std::size_t i = 0; i < regularizer.settings.size(); ++i) {
      for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
        auto settings = other_settings(regularizer);
        settings[i] = bad;
        CHECK_THROWS_AS(Term::known(kind, 1, settings), ValueError);
      }
      if (!regularizer.settings[i].value) CHECK_THROWS_AS(Term::known(kind, 1), ValueError);
    }
    auto settings = other_settings(regularizer);
    CHECK(Term::known(kind, 1, settings).settings() == settings);
    settings.push_back(1);
    CHECK_THROWS_AS(Term::known(kind, 1, settings), ValueError);
    CHECK_THROWS_AS(Term::known(kind, -1, other_settings(regularizer)), ValueError);
  }
}
