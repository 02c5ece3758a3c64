#include <mpol_cpp/cli/options/structure_regions.h>

#include <sstream>
#include <string_view>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr const char* structure_option = "--test-structure";
constexpr std::string_view circle_prefix = "circle:";

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

StructureRegion::Circle parse_circle(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream numbers(text.substr(circle_prefix.size()));
  for (std::string part; std::getline(numbers, part, ',');) parts.push_back(trimmed(part));
  if (parts.size() != 3)
    throw UsageError(
        error_text(structure_option, text, "a circle has three numbers", "give it as circle:EAST,NORTH,RADIUS in arcsec"));
  const std::string name = "test-structure";
  return {parse_number(name, parts[0], Range::any()), parse_number(name, parts[1], Range::any()),
          parse_number(name, parts[2], Range::positive())};
}

}  // namespace

std::string StructureRegion::text() const {
  if (!circle) return mask.string();
  return fmt::format("{}{},{},{}", circle_prefix, circle->east, circle->north, circle->radius);
}

std::string StructureRegion::name() const { return circle ? text() : mask.filename().string(); }

Tensor StructureRegion::pixels(const SkyTarget& target) const {
  Tensor marked;
  if (circle) {
    const auto& center = target.observation.center;
    const auto east = target.coords.sky_x() + (center.east - circle->east);
    const auto north = target.coords.sky_y() + (center.north - circle->north);
    marked = east.square() + north.square() <= circle->radius * circle->radius;
  } else {
    marked = read_mask(mask, target, structure_option).ne(0);
  }
  if (!marked.any().item<bool>())
    throw DataError(
        error_text(structure_option, text(), "holds no pixel of the image", "mark pixels of a structure that it shows"));
  if (marked.flatten(-2).all(-1).any().item<bool>())
    throw DataError(
        error_text(structure_option, text(), "is the whole image", "leave pixels around it, from which it can be filled"));
  return marked;
}

std::vector<StructureRegion> parse_structures(const std::string& text) {
  std::vector<StructureRegion> regions;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    part = trimmed(part);
    if (part.empty()) throw UsageError(error_text(structure_option, text, "a region is empty", "separate regions by one ;"));
    if (part.starts_with(circle_prefix)) regions.push_back({.circle = parse_circle(part), .mask = {}});
    else regions.push_back({.circle = std::nullopt, .mask = std::filesystem::absolute(part).lexically_normal()});
  }
  return regions;
}

std::string structures_text(const std::vector<StructureRegion>& regions) {
  std::string text;
  for (const auto& region : regions) text += (text.empty() ? "" : ";") + region.text();
  return text;
}

}  // namespace mpol::cli
