#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <mpol_cpp/components/point_fit.h>

namespace mpol::cli {

/// The point sources of a run with --points.
struct FittedPoints {
  PointFit found;
  SkyOffset center;  ///< of images from the phase centre, from which the tables count places
};

/// points.csv: a line for each source and image channel, numbers with 17 digits, places in arcsec from the phase centre.
std::string points_csv(const FittedPoints& points);
/// What summary.json says of them.
nlohmann::ordered_json points_json(const FittedPoints& points);
/// A source in one line: "point 1: 0.1234 ± 0.0002 Jy, 0.10" East and 0.20" South of the phase centre, to 0.0003"".
std::string point_words(const FittedPoints& points, std::size_t source);
/// What is doubtful about them, in words.
std::vector<std::string> points_warnings(const FittedPoints& points);

/// The sources of a file of points_csv(), whose places count from the middle of images there.
/// @param center  of these images from the phase centre
/// @throws FileError, DataError for what is no points.csv, naming the line
std::vector<PointComponent> read_points_csv(const std::filesystem::path& path, const SkyOffset& center);

}  // namespace mpol::cli
