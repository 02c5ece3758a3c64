#pragma once

#include <algorithm>
#include <cstdint>

namespace mpol::gridding {

/// Working storage in which DirtyImager::compare makes images of npix x npix pixels for a fit, bytes: fine grids of all of them
/// where these are not large, so that one pass over the data does, else of one after the other, and a block of samples.
constexpr std::int64_t storage_to_compare(std::int64_t npix) {
  constexpr std::int64_t for_samples = std::int64_t{8} << 20, for_one_pass = std::int64_t{256} << 20;
  const auto pixels = npix * npix, several_grids = 192 * pixels, one_grid = 64 * pixels;
  return std::min(several_grids, one_grid + for_one_pass) + for_samples;
}

/// What it takes of that, or less, where there are so many samples.
constexpr std::int64_t needed_to_compare(std::int64_t npix, std::int64_t samples) {
  constexpr std::int64_t grids = 144, of_sample = 136;  // bytes a pixel; a block's values, weights and sorted points
  return std::min(storage_to_compare(npix), grids * npix * npix + of_sample * samples);
}

}  // namespace mpol::gridding
