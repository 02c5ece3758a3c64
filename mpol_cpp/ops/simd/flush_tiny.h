#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mpol::ops {

/// While it lives, this thread takes numbers below the normal range (1e-38 in float32) for 0: they would take a hundred times as
/// long, and iterations that converge leave differences that small.
class FlushTiny {
 public:
#if defined(__x86_64__)
  FlushTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040U); }  // flush to zero, denormals are zero
  ~FlushTiny() { _mm_setcsr(before_); }
#else
  FlushTiny() = default;
  ~FlushTiny() {}
#endif
  FlushTiny(const FlushTiny&) = delete;
  FlushTiny& operator=(const FlushTiny&) = delete;

#if defined(__x86_64__)
 private:
  unsigned before_;
#endif
};

}  // namespace mpol::ops
