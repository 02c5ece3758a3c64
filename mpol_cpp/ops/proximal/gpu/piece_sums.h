#pragma once

// Images cut into pieces of pixels, and sums over them, in kernels; C++17.
#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// How elementwise kernels cut images: each block works on a piece of one image.
struct ImagePieces {
  std::int64_t pixels;  // of an image
  std::int32_t nchan, problems;

  static constexpr int threads = 256, of_thread = 4, length = threads * of_thread;

  MPOL_DEVICE std::int64_t images() const { return std::int64_t{problems} * nchan; }
  MPOL_DEVICE std::int64_t pieces() const { return (pixels + length - 1) / length; }
  MPOL_DEVICE std::int64_t blocks() const { return images() * pieces(); }
  MPOL_DEVICE std::int64_t image_of(std::int64_t block) const { return block / pieces(); }

  /// Calls run(place in the image) for the pixels of a thread.
  template <typename Run>
  MPOL_DEVICE void each(Place place, const Run& run) const {
    const std::int64_t begin = place.block % pieces() * length + place.thread;
    MPOL_UNROLL
    for (int i = 0; i < of_thread; ++i) {
      const std::int64_t at = begin + std::int64_t{i} * threads;
      if (at < pixels) run(at);
    }
  }
};

/// Sums of pieces (quantities, images, pieces) become those of images (quantities, images), in a fixed order.
template <typename Arrays, int quantities>
struct SumPiecesBody {
  static constexpr int threads = ImagePieces::threads, phases = 3;
  struct Shared {
    BlockSums<quantities, threads> sums;
  };
  struct Local {};

  Arrays arrays;

  std::int64_t blocks() const { return arrays.cut.images(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      const std::int64_t pieces = arrays.cut.pieces();
      for (int q = 0; q < quantities; ++q) {
        const std::int64_t begin = (q * arrays.cut.images() + place.block) * pieces;
        double sum = 0;
        for (std::int64_t i = place.thread; i < pieces; i += threads) sum += arrays.piece_sums[begin + i];
        shared.sums.put(place.thread, q, sum);
      }
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else {
      for (int q = place.thread; q < quantities; q += threads)
        arrays.sums[q * arrays.cut.images() + place.block] = shared.sums.total(q);
    }
  }
};

}  // namespace mpol::ops
