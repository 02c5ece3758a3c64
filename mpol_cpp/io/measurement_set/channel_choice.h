#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace mpol::io {

/// Which channels of a spectral window are wanted: all that every given condition holds for.
struct ChannelChoice {
  std::vector<std::int64_t> numbers;                         ///< from 0, as the window has them; empty: all
  std::optional<std::pair<double, double>> frequency_range;  ///< Hz, both ends included
  std::optional<std::pair<double, double>> velocity_range;   ///< m/s, radio convention, both ends included
  std::optional<double> rest_frequency;                      ///< Hz, of the velocities; without it the set's
};

/// The chosen channels of a window, by rising frequency.
/// @param frequencies     Hz, of all its channels
/// @param window          its id, for messages
/// @param rest_frequency  Hz, of the set, where the choice has none
/// @throws ValueError for a number that the window lacks or that is given twice; DataError for velocities without a rest
/// frequency
std::vector<std::int64_t> chosen_channels(const std::vector<double>& frequencies, const ChannelChoice& choice,
                                          std::int64_t window, std::optional<double> rest_frequency);

/// v = c (1 - frequency / rest_frequency), m/s: the radio convention.
double radio_velocity(double frequency, double rest_frequency);

}  // namespace mpol::io
