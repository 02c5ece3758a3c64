#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/simulation/scene.h>
#include <mpol_cpp/simulation/simulate.h>

namespace mpol::cli {

/// The settings of `mpol simulate` as the command line has them: degrees, arcsec, GHz, seconds.
struct SimulateSettings {
  OutputOptions output;  ///< `out` is the .npz file
  std::filesystem::path truth, sky;
  io::UvUnit uv_unit = io::UvUnit::lambda;
  torch::Dtype dtype = torch::kFloat32;
  double cell_size = 0.05;
  std::int64_t npix = 192;
  std::optional<std::int64_t> threads;

  std::filesystem::path array;
  std::int64_t antennas = 43;
  double longest_baseline = 1600;
  std::optional<double> latitude, diameter, right_ascension;
  double declination = -24, hour_angle_start = -15, hour_angle_end = 15, integration = 300, minimum_elevation = 15;
  std::string frequencies = "230";
  double channel_width_mhz = 2000, system_temperature = 100, opacity = 0, antenna_efficiency = 0.7;
  double correlator_efficiency = 0.88;
  std::int64_t polarizations = 2, seed = 0;
  bool primary_beam = false;
  bool no_noise = false;

  std::optional<Scene> scene;  ///< nothing: the disc
  std::int64_t scene_seed = 0;
  double flux = 0.15, spectral_index = 2.2, inclination = 35, position_angle = 60;
  double offset_east = 0, offset_north = 0;
  std::string rings = "0:0.2:0.5,0.36:0.15:1,0.68:0.17:0.6";
  bool no_crescent = false;
  double crescent_radius = 0.68, crescent_width = 0.15, crescent_position_angle = 140, crescent_azimuthal_width = 80;
  double crescent_contrast = 1.5;
};

void declare(OptionSet& options, SimulateSettings& settings);

/// What the settings mean to the library. @throws UsageError naming the option; FileError for the array's file
ArrayConfiguration array_of(const SimulateSettings& settings);
SimulationOptions observation_of(const SimulateSettings& settings);
RingedDisc disc_of(const SimulateSettings& settings);
/// The --scene at each frequency, (nchan, npix, npix) float64 on the grid of --cell-size and --npix, Jy/arcsec^2.
Tensor scene_of(const SimulateSettings& settings, const std::vector<double>& frequencies);

}  // namespace mpol::cli
