#pragma once

#include <cstdint>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

/// Which samples are put into one batch.
enum class Sampling {
  random,   ///< any
  compact,  ///< neighbours in the uv plane: a batch touches few cells
  uniform,  ///< of every baseline length alike: a batch resembles the whole
};

/// Options of a VisibilitySampler.
struct VisibilitySamplerOptions {
  VisibilitySamplerOptions() = default;
  /// Which samples come together.
  TORCH_ARG(Sampling, sampling) = Sampling::random;
  TORCH_ARG(std::int64_t, batch_size) = 1 << 16;  ///< samples; the last batches have one less where it does not divide them
  /// Seed of the order in each epoch: the same seed gives the same batches.
  TORCH_ARG(std::uint64_t, seed) = 0;
};

/// Cuts loose visibilities into batches, anew in each epoch.
///
/// The batches of an epoch are disjoint and hold every sample once. They depend on the seed and on the epoch's number alone,
/// so that a resumed run needs no more than the number to see the same batches. Samples are those of all channels: where
/// channels differ in u, v, the first one's decide.
class VisibilitySampler {
 public:
  /// @param coords  the grid whose uv cells say what neighbours are
  /// @throws ValueError unless batch_size > 0
  VisibilitySampler(const GridCoords& coords, const Baselines& baselines, const VisibilitySamplerOptions& options = {});

  /// The batches of an epoch: (samples) int64 indices each, increasing, of sizes that differ by at most one.
  std::vector<Tensor> epoch(std::int64_t number) const;
  std::int64_t batches() const { return batches_; }  ///< per epoch
  /// Bytes of the order that is kept between epochs; 0 for random batches.
  std::int64_t memory_bytes() const { return sorted_.defined() ? static_cast<std::int64_t>(sorted_.nbytes()) : 0; }

 private:
  Tensor order(std::int64_t number) const;

  VisibilitySamplerOptions options_;
  std::int64_t nvis_, batches_;
  Tensor sorted_;  // (nvis) int64: samples along the uv plane (compact) or by baseline length (uniform); else undefined
};

}  // namespace mpol
