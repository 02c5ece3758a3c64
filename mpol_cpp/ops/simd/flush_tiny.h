#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace mpol::ops {

/// While it lives, this thread takes numbers below the normal range (1e-38 in float32) for 0: they would take a hundred times as
/// long, and iterations that converge leave differences that small.
class FlushTiny {
 public:
#if defined(__x86_64__)
  FlushTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040U); }  // flush to zero, denormals are zero
  ~FlushTiny() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FlushTiny() : before_(control()) { set_control(before_ | 1U << 24U); }  // FPCR.FZ: operands and results
  ~FlushTiny() { set_control(before_); }
#else
  FlushTiny() = default;
  ~FlushTiny() {}
#endif
  FlushTiny(const FlushTiny&) = delete;
  FlushTiny& operator=(const FlushTiny&) = delete;

#if defined(__x86_64__)
 private:
  unsigned before_;
#elif defined(__aarch64__)

 private:
  static std::uint64_t control() {
    std::uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }

  std::uint64_t before_;
#endif
};

}  // namespace mpol::ops
