#include <mpol_cpp/cli/measuring/spectrum_sources.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {
namespace {

constexpr const char* sources_option = "--sources";

/// A shape as the option names it, and its numbers.
struct ShapeWords {
  const char* name;
  DiscShape shape;
  std::size_t sizes;  ///< numbers before inclination and position angle, which a point does not have
  const char* form;
};
constexpr std::array<ShapeWords, 5> shape_words = {{
    {"point", DiscShape::point, 0, "point:EAST,NORTH"},
    {"gaussian", DiscShape::gaussian, 1, "gaussian:FWHM,INCLINATION,POSITION_ANGLE,EAST,NORTH"},
    {"ring", DiscShape::ring, 1, "ring:RADIUS,INCLINATION,POSITION_ANGLE,EAST,NORTH"},
    {"broad-ring", DiscShape::broad_ring, 2, "broad-ring:RADIUS,WIDTH,INCLINATION,POSITION_ANGLE,EAST,NORTH"},
    {"disc", DiscShape::disc, 1, "disc:RADIUS,INCLINATION,POSITION_ANGLE,EAST,NORTH"},
}};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

[[noreturn]] void refuse(const std::string& text, const std::string& limit, const std::string& remedy) {
  throw UsageError(error_text(sources_option, text, limit, remedy));
}

const ShapeWords& shape_named(const std::string& name, const std::string& text) {
  const auto found = std::find_if(shape_words.begin(), shape_words.end(), [&](const auto& words) { return name == words.name; });
  if (found != shape_words.end()) return *found;
  refuse(text, "is no shape", "take point, gaussian, ring, broad-ring or disc");
}

/// Numbers between commas, each within its range.
std::vector<double> numbers_of(const std::string& list, const std::vector<Range>& ranges, const ShapeWords& shape,
                               const std::string& text) {
  std::vector<double> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    if (numbers.size() == ranges.size())
      refuse(text, fmt::format("has more than {} numbers", ranges.size()), fmt::format("give {}", shape.form));
    numbers.push_back(parse_number("sources", trimmed(part), ranges[numbers.size()]));
  }
  if (numbers.size() < shape.sizes) refuse(text, "lacks its size", fmt::format("give {}", shape.form));
  numbers.resize(ranges.size());
  return numbers;
}

NamedSource parse_source(const std::string& text) {
  const auto colon = text.find(':');
  const auto& shape = shape_named(trimmed(text.substr(0, colon)), text);
  const bool is_point = shape.shape == DiscShape::point;
  std::vector<Range> ranges(shape.sizes, Range::positive());
  if (!is_point) ranges.insert(ranges.end(), {Range::between(0, 89), Range::any()});
  ranges.insert(ranges.end(), {Range::any(), Range::any()});
  const auto numbers = numbers_of(colon == std::string::npos ? "" : text.substr(colon + 1), ranges, shape, text);
  const auto place = numbers.size() - 2;
  DiscModel model{.shape = shape.shape, .flux = 1, .size = 0, .width = 0, .geometry = {}};
  if (shape.sizes > 0) model.size = numbers[0];
  if (shape.sizes > 1) model.width = numbers[1];
  if (!is_point) {
    model.geometry.inclination = numbers[place - 2] * units::degree;
    model.geometry.position_angle = numbers[place - 1] * units::degree;
  }
  model.geometry.offset_east = numbers[place];
  model.geometry.offset_north = numbers[place + 1];
  return {text, model};
}

}  // namespace

std::vector<NamedSource> parse_sources(const std::string& text) {
  std::vector<NamedSource> sources;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    part = trimmed(part);
    if (part.empty()) refuse(text, "a source is empty", "separate sources by one ;");
    sources.push_back(parse_source(part));
  }
  if (sources.empty()) refuse(text, "names no source", "give point, or gaussian:FWHM, and the like");
  return sources;
}

}  // namespace mpol::cli
