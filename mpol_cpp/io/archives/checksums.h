#pragma once

namespace mpol::io {

/// Whether the checksums of an archive are compared, for which all of an array is read, wanted or not.
enum class Checksums {
  compared,  ///< a damaged array is an error
  ignored    ///< of an array that is stored, not deflated, no byte is read that is not wanted
};

}  // namespace mpol::io
