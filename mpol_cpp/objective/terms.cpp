#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/term.h>

namespace mpol {
namespace {

void check_setting(const Regularizer& regularizer, const RegularizerSetting& setting, double value) {
  if (std::isfinite(value) && (value > 0 || (setting.may_be_zero && value == 0))) return;
  throw ValueError(fmt::format("{} of term {} is {}; it must be finite and {} 0", setting.name, regularizer.name, value,
                               setting.may_be_zero ? ">=" : "greater than"));
}

}  // namespace

Term Term::known(TermKind kind, double weight, std::vector<double> settings) {
  const auto& regularizer = regularizer_of(kind);
  if (settings.size() > regularizer.settings.size()) {
    throw ValueError(
        fmt::format("term {} is given {} settings; it has {}", regularizer.name, settings.size(), regularizer.settings.size()));
  }
  for (std::size_t i = settings.size(); i < regularizer.settings.size(); ++i) {
    if (!regularizer.settings[i].value) {
      throw ValueError(fmt::format("term {} has no {}: give one", regularizer.name, regularizer.settings[i].name));
    }
    settings.push_back(*regularizer.settings[i].value);
  }
  for (std::size_t i = 0; i < settings.size(); ++i) check_setting(regularizer, regularizer.settings[i], settings[i]);
  Term term(regularizer.name, weight, [function = regularizer.function(settings)](const ModelOutput& output) {
    const auto& pixels = output.signed_pixels.defined() ? output.signed_pixels : output.sky;
    return function({output.sky, output.coords(), [&output]() -> const Tensor& { return output.visibilities(); }, pixels});
  });
  term.kind_ = kind;
  term.settings_ = std::move(settings);
  return term;
}

}  // namespace mpol
