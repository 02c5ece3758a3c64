#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

/// What a fit by turns, of images and of something else, goes on from after one of its rounds.
struct SavedRounds {
  NamedTensors tensors;    ///< of that something
  NamedTensors of_imager;  ///< what the next image begins from
};

/// Takes rounds until they have converged, one was interrupted, or there are as many as allowed.
/// @param fit         what they find: counts them, and knows whether they have converged or were interrupted
/// @param take_round  takes one; gives whether it came to its end
template <typename Fit, typename TakeRound>
void take_rounds(Fit& fit, std::int64_t most, const TakeRound& take_round) {
  while (!fit.interrupted && !fit.converged && fit.rounds < most) fit.interrupted = !take_round();
}

/// Writes it in the place of what was there. @param fingerprint  "key = value", of the settings and the data
void write_rounds(const std::filesystem::path& path, const SavedRounds& rounds, const std::vector<std::string>& fingerprint);

/// Nothing where there is no such file, or, with a warning, where it is of other settings or data.
/// @throws FileError for a file that is none
std::optional<SavedRounds> read_rounds(const std::filesystem::path& path, const std::vector<std::string>& fingerprint);

}  // namespace mpol
