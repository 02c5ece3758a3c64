#pragma once

namespace mpol {

/// From now on tensors in host memory that cannot be had end with c10::OutOfMemoryError, as those of a GPU do; LibTorch's own
/// allocator throws a c10::Error that only its words tell apart. For programs, at their beginning; calling it again does
/// nothing.
void throw_typed_out_of_memory();

}  // namespace mpol
