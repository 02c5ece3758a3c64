#pragma once

#include <cstdint>
#include <functional>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How the samples of a channel are cut.
struct SampleStripOptions {
  std::int64_t most_samples = std::int64_t{1} << 18;  ///< of a block that is handed on
  std::int64_t chunk = std::int64_t{1} << 22;         ///< samples that are put into order together
};

/// Hands on the samples of a data channel in blocks of bounded size whose points lie in strips of the uv plane, |u| from one
/// to another multiple of `width`: what is done with a block then stays in a small part of a grid. Channels of few samples are
/// one block in their own order. Beside a block it takes 6 bytes for each sample of a chunk. Blocks and their order depend on
/// the data alone.
/// @param width  wavelengths, > 0
void for_each_strip(const Visibilities& visibilities, std::int64_t channel, double width, const SampleStripOptions& options,
                    const std::function<void(const VisibilityBlock&)>& use);

}  // namespace mpol
