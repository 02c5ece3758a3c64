#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <mpol_cpp/distributed/shares.h>

namespace mpol {

/// A part of visibilities: some samples of some channels.
struct VisibilityShare {
  std::optional<Share> samples = {};        ///< of each channel; nothing: all
  std::vector<std::int64_t> channels = {};  ///< 0-based, in their order there; none: all
};

}  // namespace mpol
