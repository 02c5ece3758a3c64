#pragma once

namespace mpol::io {

/// Whether a reader's blocks shall say when their rows were taken, and of which pair of antennas, field and scan they are
/// (RowBlock::times, RowBlock::tracks), which averaging in time needs.
enum class RowTracks {
  leave,  ///< they need not
  read    ///< they shall, where the file knows
};

}  // namespace mpol::io
