#pragma once

// What kernels on blocks of threads are written with, once for a GPU and for its emulation on the CPU. A body is a
// struct with
//   static constexpr int threads, phases;    threads of a block, and parts between barriers
//   struct Shared, Local;                    memory of a block, and of one of its threads, without initialisers
//   template <int phase> void run(Place, Shared&, Local&) const
// and, where some phases are gone through several times,
//   static constexpr int round_begin, round_end;           those phases
//   std::int64_t rounds(std::int64_t block) const          how often; Place::round counts
// and, where a block needs memory whose size is known only when the kernel is started,
//   std::int64_t scratch_bytes() const                     shared memory, which Place::scratch gives
// Within a phase no thread reads what another one writes. The CUDA compiler reads this in C++17: neither LibTorch nor
// C++20 belongs in here.
//
// Stages are bodies that one kernel runs one after the other, all its blocks waiting for each other between stages:
//   static constexpr int threads, least_blocks;            of a block: as many as any body has; that a processor holds
//   int stages() const                                     how many
//   template <typename Run> void with_bodies(int stage, const Run& run) const
//                                                          calls run(body) with each body of a stage, whose blocks() are callable
//                                                          on the device; no body reads what another one of its stage writes
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#define MPOL_DEVICE __host__ __device__ __forceinline__
#define MPOL_UNROLL _Pragma("unroll")
#else
#define MPOL_DEVICE inline
#define MPOL_UNROLL
#endif

namespace mpol::ops {

[[noreturn]] inline void report_outside(std::int64_t index, std::int64_t size) {
  throw std::out_of_range("a kernel reaches for element " + std::to_string(index) + " of " + std::to_string(size));
}

/// Shared memory of a block, of a size that its body says when it is started.
template <typename T>
struct ScratchArray {
  T* data;
  int size;

  MPOL_DEVICE T& operator[](int i) const {
#ifndef __CUDA_ARCH__
    if (i < 0 || i >= size) report_outside(i, size);
#endif
    return data[i];
  }
};

/// A thread of a block.
struct Place {
  std::int64_t block;
  int thread;
  std::int64_t round;
  unsigned char* memory = nullptr;  // body.scratch_bytes() of them
  std::int64_t bytes = 0;           // in the emulation

  /// `size` elements of the block's scratch memory, behind `begin` bytes, which T's alignment divides.
  template <typename T>
  MPOL_DEVICE ScratchArray<T> scratch(int begin, int size) const {
#ifndef __CUDA_ARCH__
    if (begin < 0 || begin + std::int64_t{size} * static_cast<std::int64_t>(sizeof(T)) > bytes)
      report_outside(begin + size, bytes);
#endif
    return {reinterpret_cast<T*>(memory + begin), size};
  }
};

/// How much scratch memory a block of a body needs: none unless it says so.
template <typename Body, typename = void>
struct BodyScratch {
  static constexpr bool has = false;
  static std::int64_t bytes(const Body&) { return 0; }
};
template <typename Body>
struct BodyScratch<Body, std::void_t<decltype(std::declval<const Body&>().scratch_bytes())>> {
  static constexpr bool has = true;
  static std::int64_t bytes(const Body& body) { return body.scratch_bytes(); }
};

/// The phases of a body that are gone through several times: none unless it says so.
template <typename Body, typename = void>
struct BodyRounds {
  static constexpr int begin = Body::phases, end = Body::phases;
  MPOL_DEVICE static std::int64_t count(const Body&, std::int64_t) { return 0; }
};
template <typename Body>
struct BodyRounds<Body, std::void_t<decltype(Body::round_begin)>> {
  static constexpr int begin = Body::round_begin, end = Body::round_end;
  static_assert(begin < end && end < Body::phases, "something must come after the last round");
  MPOL_DEVICE static std::int64_t count(const Body& body, std::int64_t block) { return body.rounds(block); }
};

/// Device memory of a known size. @throws std::out_of_range, in the emulation only, for an element that is not there
template <typename T>
struct DeviceArray {
  T* data = nullptr;
  std::int64_t size = 0;

  MPOL_DEVICE T& operator[](std::int64_t i) const {
#ifndef __CUDA_ARCH__
    if (i < 0 || i >= size) report_outside(i, size);
#endif
    return data[i];
  }

  /// `count` elements from `begin` on: whoever works on them counts in 32 bits.
  MPOL_DEVICE DeviceArray part(std::int64_t begin, std::int64_t count) const {
#ifndef __CUDA_ARCH__
    if (begin < 0 || begin + count > size) report_outside(begin + count, size);
#endif
    return {data + begin, count};
  }
};

/// The same within a block's shared memory.
template <typename T, int count>
struct SharedArray {
  T data[count];

  MPOL_DEVICE T& operator[](int i) {
#ifndef __CUDA_ARCH__
    if (i < 0 || i >= count) report_outside(i, count);
#endif
    return data[i];
  }
};

/// Sums of several quantities over the threads of a block, in float64 and in the same order each time:
///   phase n      put
///   phase n + 1  gather
///   phase n + 2  total
template <int quantities, int threads>
struct BlockSums {
  static constexpr int groups = 16;
  SharedArray<double, quantities * threads> thread_sums;
  SharedArray<double, quantities * groups> group_sums;

  MPOL_DEVICE void put(int thread, const double (&sums)[quantities]) {
    for (int q = 0; q < quantities; ++q) thread_sums[q * threads + thread] = sums[q];
  }
  MPOL_DEVICE void put(int thread, int quantity, double sum) { thread_sums[quantity * threads + thread] = sum; }
  MPOL_DEVICE void gather(int thread) {
    for (int k = thread; k < quantities * groups; k += threads) {
      double sums[chains] = {};
      int t = k % groups;
      const int begin = k / groups * threads;
      for (; t + (chains - 1) * groups < threads; t += chains * groups) {
        MPOL_UNROLL
        for (int chain = 0; chain < chains; ++chain) sums[chain] += thread_sums[begin + t + chain * groups];
      }
      for (; t < threads; t += groups) sums[0] += thread_sums[begin + t];
      group_sums[k] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
  }
  MPOL_DEVICE double total(int quantity) {
    double sums[chains] = {};
    MPOL_UNROLL
    for (int group = 0; group < groups; ++group) sums[group % chains] += group_sums[quantity * groups + group];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

 private:
  static constexpr int chains = 4;  // of additions, each of which waits for the one before
  static_assert(groups % chains == 0);
};

}  // namespace mpol::ops
