#include <mpol_cpp/cli/output/points_table.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* point_columns = "point,channel,east,north,place_error,flux,flux_error";
constexpr std::size_t column_count = 7;

/// The numbers of a line. @throws DataError
std::vector<double> numbers_in(const std::string& line, const std::string& where) {
  std::vector<double> numbers;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) {
    const auto number = number_of<double>(field);
    if (!number || !std::isfinite(*number)) throw DataError(fmt::format("{}: '{}' is no finite number", where, field));
    numbers.push_back(*number);
  }
  if (numbers.size() == column_count) return numbers;
  throw DataError(fmt::format("{} has {} columns; points.csv has {}: {}", where, numbers.size(), column_count, point_columns));
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The standard error of a mean of independent numbers.
double error_of_mean(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += error * error;
  return std::sqrt(sum) / static_cast<double>(errors.size());
}

}  // namespace

std::string points_csv(const FittedPoints& points) {
  std::string text = fmt::format("{}\n", point_columns);
  for (std::size_t s = 0; s < points.found.sources.size(); ++s) {
    const auto& source = points.found.sources[s];
    for (std::size_t c = 0; c < source.flux.size(); ++c)
      text += fmt::format("{},{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n", s + 1, c, source.east + points.center.east,
                          source.north + points.center.north, source.place_error, source.flux[c],
                          source.flux_error.empty() ? 0.0 : source.flux_error[c]);
  }
  return text;
}

Json points_json(const FittedPoints& points) {
  auto list = Json::array();
  for (const auto& source : points.found.sources) {
    list.push_back({{"east_arcsec", source.east + points.center.east},
                    {"north_arcsec", source.north + points.center.north},
                    {"place_error_arcsec", source.place_error},
                    {"flux_jy", source.flux},
                    {"flux_error_jy", source.flux_error}});
  }
  return {
      {"sources", list}, {"rounds", points.found.rounds}, {"converged", points.found.converged}, {"change", points.found.change}};
}

std::string point_words(const FittedPoints& points, std::size_t source) {
  const auto& own = points.found.sources[source];
  const auto place = offset_text({own.east + points.center.east, own.north + points.center.north});
  const auto flux =
      fmt::format("{:.4g} ± {:.2g} Jy", mean_of(own.flux), own.flux_error.empty() ? 0 : error_of_mean(own.flux_error));
  const auto of_channels = own.flux.size() > 1 ? fmt::format(" (mean of {} channels)", own.flux.size()) : std::string();
  const auto error = own.place_error > 0 ? fmt::format(", ± {:.2g}\"", own.place_error) : std::string();
  return fmt::format("point {}: {}{}, {} of the phase centre{}", source + 1, flux, of_channels, place, error);
}

std::vector<std::string> points_warnings(const FittedPoints& points) {
  constexpr double clear = 3;
  std::vector<std::string> words;
  if (!points.found.converged) {
    words.push_back(
        fmt::format("the point sources still moved after {} rounds, by {:.2g} of an error: they and the image share what "
                    "the baselines do not tell apart",
                    points.found.rounds, points.found.change));
  }
  for (std::size_t s = 0; s < points.found.sources.size(); ++s) {
    const auto& source = points.found.sources[s];
    if (source.flux_error.empty()) continue;
    if (std::abs(mean_of(source.flux)) > clear * error_of_mean(source.flux_error)) continue;
    words.push_back(fmt::format("nothing stands out where {}: leave it out of --points", point_words(points, s)));
  }
  return words;
}

std::vector<PointComponent> read_points_csv(const std::filesystem::path& path, const SkyOffset& center) {
  std::ifstream file(path);
  if (!file) throw FileError(fmt::format("{}: cannot be read", path.string()));
  std::string line;
  std::getline(file, line);
  if (line != point_columns)
    throw DataError(fmt::format("{}: its first line is '{}'; that of points.csv is {}", path.string(), line, point_columns));
  std::vector<PointComponent> sources;
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    const auto where = fmt::format("{}, line {}", path.string(), number);
    const auto values = numbers_in(line, where);
    const auto known = static_cast<double>(sources.size());
    if (values[0] == known + 1 && values[1] == 0) {
      sources.push_back(
          {.east = values[2] - center.east, .north = values[3] - center.north, .flux = {}, .place_error = values[4]});
    } else if (sources.empty() || values[0] != known || values[1] != static_cast<double>(sources.back().flux.size())) {
      throw DataError(fmt::format("{}: channel {} of point {} is out of order", where, values[1], values[0]));
    }
    sources.back().flux.push_back(values[5]);
    sources.back().flux_error.push_back(values[6]);
  }
  return sources;
}

}  // namespace mpol::cli
