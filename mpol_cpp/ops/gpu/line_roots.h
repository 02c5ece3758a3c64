#pragma once

#include <cstdint>

#include <torch/types.h>

namespace mpol::ops {

/// exp(-2 pi i k / length) for k from 0 to length - 1, complex128 on the CPU: the table of a LineTransform.
at::Tensor line_roots(std::int64_t length);

}  // namespace mpol::ops
