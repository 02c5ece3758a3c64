#pragma once

#include <mpol_cpp/ops/fft.h>

namespace mpol::ops::detail {

template <typename T>
std::unique_ptr<LineTransforms<T>> plan_aten_transforms(const FftLayout& layout);

template <typename T>
std::unique_ptr<LineTransforms<T>> plan_mkl_transforms(const FftLayout& layout);

}  // namespace mpol::ops::detail
