#pragma once

namespace mpol {

/// What an operation that writes into given storage does with what is there.
enum class Accumulate {
  overwrite,  ///< replace the contents
  add,        ///< add to the contents
};

}  // namespace mpol
