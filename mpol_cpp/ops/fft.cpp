#include <mpol_cpp/ops/fft.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fft_backends.h>

namespace mpol::ops {

std::string_view to_string(FftBackend backend) { return backend == FftBackend::mkl ? "mkl" : "aten"; }

bool fft_backend_available(FftBackend backend) {
#if defined(MPOL_WITH_MKL_DFTI)
  return backend == FftBackend::mkl || backend == FftBackend::aten;
#else
  return backend == FftBackend::aten;
#endif
}

FftBackend best_fft_backend() { return fft_backend_available(FftBackend::mkl) ? FftBackend::mkl : FftBackend::aten; }

template <typename T>
std::unique_ptr<LineTransforms<T>> plan_line_transforms(const FftLayout& layout, FftBackend backend) {
  const auto& [length, real_distance, half_distance] = layout;
  if (length < 2 || length % 2 != 0) throw ValueError(fmt::format("a line has {} pixels; it must be an even number > 0", length));
  if (real_distance < length || half_distance < length / 2 + 1) {
    throw ValueError(fmt::format("lines of {} pixels are {} apart and their spectra {}; at least {} and {} are needed", length,
                                 real_distance, half_distance, length, length / 2 + 1));
  }
#if defined(MPOL_WITH_MKL_DFTI)
  if (backend == FftBackend::mkl) return detail::plan_mkl_transforms<T>(layout);
#endif
  if (backend != FftBackend::aten) {
    throw ValueError(fmt::format("this build has no {} transforms: use aten", to_string(backend)));
  }
  return detail::plan_aten_transforms<T>(layout);
}

template std::unique_ptr<LineTransforms<float>> plan_line_transforms(const FftLayout&, FftBackend);
template std::unique_ptr<LineTransforms<double>> plan_line_transforms(const FftLayout&, FftBackend);

}  // namespace mpol::ops
