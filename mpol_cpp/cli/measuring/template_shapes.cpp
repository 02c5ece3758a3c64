#include <mpol_cpp/cli/measuring/template_shapes.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {
namespace {

constexpr std::size_t most_generated = 100'000;
constexpr std::int64_t most_values = std::int64_t{1} << 28;  // in all maps, 2 GiB

[[noreturn]] void refuse_shape(const std::string& shape, const std::string& limit) {
  throw UsageError(error_text("--generate", shape, limit,
                              "give disc:RADIUS, ring:RADIUS:WIDTH, arc:RADIUS:WIDTH:OPENING or spiral:RADIUS:WIDTH:PITCH:ARMS"));
}

/// The values of "0.5" or "0.2..0.8..7".
std::vector<double> values_of(const std::string& shape, const std::string& text) {
  const auto number = [&](const std::string& part) {
    const auto value = number_of<double>(part);
    if (!value || !std::isfinite(*value)) refuse_shape(shape, fmt::format("\"{}\" is no finite number", part));
    return *value;
  };
  const auto first_dots = text.find("..");
  if (first_dots == std::string::npos) return {number(text)};
  const auto last_dots = text.find("..", first_dots + 2);
  if (last_dots == std::string::npos) refuse_shape(shape, "a range is FIRST..LAST..COUNT");
  const double first = number(text.substr(0, first_dots));
  const double last = number(text.substr(first_dots + 2, last_dots - first_dots - 2));
  const double count = number(text.substr(last_dots + 2));
  if (count < 2 || count > static_cast<double>(most_generated) || count != std::floor(count)) {
    refuse_shape(shape, fmt::format("a range has from 2 to {} values", most_generated));
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < std::llround(count); ++i)
    values.push_back(first + (last - first) * static_cast<double>(i) / (count - 1));
  return values;
}

torch::Tensor spiral_of(const PolarBins& bins, const std::vector<double>& numbers) {
  const SpiralShape spiral{numbers[0], numbers[1], numbers[2] * units::degree, std::llround(numbers[3])};
  if (numbers[3] != std::floor(numbers[3]) || numbers[3] > 100)
    throw ValueError("the arms of a spiral are a whole number, 100 at most");
  return spiral_template(bins, spiral);
}

/// A shape as the option names it, how many numbers it has, and its map of such numbers.
struct TemplateShape {
  const char* name;
  std::size_t numbers;
  torch::Tensor (*map)(const PolarBins& bins, const std::vector<double>& numbers);
};

const std::vector<TemplateShape>& template_shapes() {
  using Numbers = std::vector<double>;
  static const std::vector<TemplateShape> shapes = {
      {"disc", 1, [](const PolarBins& bins, const Numbers& of) { return disc_template(bins, of[0]); }},
      {"ring", 2, [](const PolarBins& bins, const Numbers& of) { return ring_template(bins, of[0], of[1]); }},
      {"arc", 3,
       [](const PolarBins& bins, const Numbers& of) { return arc_template(bins, of[0], of[1], of[2] * units::degree); }},
      {"spiral", 4, spiral_of}};
  return shapes;
}

const TemplateShape& template_shape(const std::string& shape, const std::string& kind) {
  for (const auto& known : template_shapes()) {
    if (kind == known.name) return known;
  }
  refuse_shape(shape, "is no shape that is known");
}

/// All combinations of one item of the list.
void add_shapes(const std::string& shape, const PolarBins& bins, std::vector<GeneratedTemplate>& all) {
  const auto parts = list_items(shape, ':');
  const auto kind = parts.empty() ? std::string() : parts.front();
  const auto& known = template_shape(shape, kind);
  const auto count = known.numbers;
  if (parts.size() != count + 1) refuse_shape(shape, fmt::format("a {} has {} number(s)", kind, count));
  const auto values = static_cast<std::int64_t>(bins.radii.size() - 1) * bins.nphi;
  const auto most = std::min(most_generated, static_cast<std::size_t>(most_values / values));
  std::vector<std::vector<double>> choices;
  std::size_t combinations = 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    choices.push_back(values_of(shape, parts[i]));
    combinations *= choices.back().size();
    if (all.size() + combinations > most) refuse_shape(shape, fmt::format("makes more than {} templates of these bins", most));
  }
  for (std::size_t combination = 0; combination < combinations; ++combination) {
    std::vector<double> numbers(count);
    auto left = combination;
    for (auto i = count; i-- > 0; left /= choices[i].size()) numbers[i] = choices[i][left % choices[i].size()];
    try {
      all.push_back({fmt::format("{}:{:.6g}", kind, fmt::join(numbers, ":")), known.map(bins, numbers)});
    } catch (const ValueError& error) {
      refuse_shape(shape, error.what());
    }
  }
}

}  // namespace

std::vector<GeneratedTemplate> generated_templates(const std::string& list, const PolarBins& bins) {
  std::vector<GeneratedTemplate> all;
  for (const auto& shape : list_items(list, ',')) add_shapes(shape, bins, all);
  return all;
}

}  // namespace mpol::cli
