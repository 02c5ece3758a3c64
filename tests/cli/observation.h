#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/units.h>

namespace mpol::testing {

using torch::Tensor;

/// Arrays of a small observation of an off-centre Gaussian: `uu vv` (nvis), `data weight` (nvis) or (nchan, nvis).
/// The baselines suit cells of 0.1" and 32 pixels; the noise agrees with the weights.
std::map<std::string, Tensor> small_observation(std::int64_t nchan = 1, std::int64_t nvis = 600);

/// Writes arrays as .npz and returns the path as text.
std::string write_observation(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);

/// Arguments of a short `mpol image` run on the small observation: 0.1", 32 pixels, 10 epochs of Adam, float64.
std::vector<std::string> short_run(const std::string& data, const std::filesystem::path& out,
                                   const std::vector<std::string>& more = {});

/// Writes a mask and a start image for a cube of so many channels of the small observation, each other than the one before.
/// @return  the options that name them
std::vector<std::string> mask_and_start(const std::filesystem::path& folder, std::int64_t nchan);

/// How a disc lies in small images, and how the command line says so.
inline const GridCoords tilted_coords(0.05, 64);
inline const DiscGeometry tilted_disc{
    .inclination = 40 * units::degree, .position_angle = 30 * units::degree, .offset_east = 0.2, .offset_north = -0.1};
inline const std::vector<std::string> tilted_disc_options = {"--inclination", "40",  "--position-angle", "30",
                                                             "--offset-east", "0.2", "--offset-north",   "-0.1"};

}  // namespace mpol::testing
