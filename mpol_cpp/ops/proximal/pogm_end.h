#pragma once

// What became of a problem in an iteration of POGM. C++17, no LibTorch: the CUDA compiler reads it.
#include <cstdint>

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// How an iteration ended for a problem; saved states hold its number.
enum class PogmEnd : std::int64_t {
  moved = 0,       ///< F fell, or it was the first iteration since the problem began anew
  began_anew = 1,  ///< F would have risen: it stays where it is, without momentum; or there was no iteration yet
  repeats = 2,     ///< F would have risen: the next iteration goes on with the proximal map of this one
  held = 3,        ///< it stands still, whatever others do
};

/// The passes of the proximal map that follow `passes`: twice as many, but no more than `most`.
MPOL_DEVICE std::int64_t more_passes(std::int64_t passes, std::int64_t most) {
  const std::int64_t more = 2 * passes;
  return more < most ? more : most;
}

}  // namespace mpol::ops
