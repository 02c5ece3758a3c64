#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/ops/fused/cpu/fused_cells.h>
#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/ops/fused/fused_settings.h>

namespace mpol::ops {

/// chi^2 and the unweighted regularizers of one problem, and the sum of its base pixels after the update.
struct FusedValues {
  double chi_squared = 0, terms[regularizer_count] = {}, parameters = 0;

  double of(TermKind kind) const { return terms[static_cast<int>(kind)]; }
};

/// Value, gradient and update of
///   chi^2 / (2 N_norm) + sum_i lambda_i R_i,   image = Hann(softplus(base))
/// in three passes over the images of all problems and channels, without autograd:
///   rows     softplus, Hann, real transform; the columns that hold data are kept, in panels of some side by side
///   columns  transform, weighted residual at the cells, power spectrum, adjoint transform, while the panel is in the cache
///   rows     adjoint transform, regularisers, Hann, derivative of softplus, update
/// A likelihood of the images takes the place of the pass over columns, which then is there for the power spectrum alone.
/// Everything is allocated once. Work is cut into the same pieces for any number of threads and sums are taken in the
/// same order, so results are bitwise the same for any number of threads and for a problem alone or among others. Each
/// problem may have its own weights, cells (a fold's), learning rate and end.
template <typename T>
class FusedPipeline {
 public:
  /// @param cells  per channel, shared by all problems, or per problem and channel
  /// @throws ValueError unless npix is even and the numbers of cells and of `own` fit
  FusedPipeline(const FusedSettings& settings, std::vector<ColumnCells<T>> cells);
  FusedPipeline(const FusedSettings& settings, ImageLikelihood likelihood);
  ~FusedPipeline();
  FusedPipeline(const FusedPipeline&) = delete;
  FusedPipeline& operator=(const FusedPipeline&) = delete;

  /// Arrays are (problems, nchan, npix, npix), contiguous; `pixels` names what `kind` needs.
  /// @param update  for all problems; run_each takes one for each
  /// @return        one entry per problem, valid until the next call; of terms whose weight is 0 the value may be 0
  const std::vector<FusedValues>& run(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update);
  const std::vector<FusedValues>& run_each(FusedUpdate kind, const UpdateRow<T>& pixels,
                                           const std::vector<UpdateSettings>& update);

  /// From now on runs leave this problem as it is: the next one still finds its values there, later ones keep them at no cost
  /// (but that of a likelihood of images, which is given all of them).
  void stop(std::int64_t problem);
  /// Takes it up again.
  void resume(std::int64_t problem);

  /// The image of the last run, before its update, (problems, nchan, npix, npix).
  Tensor image() const;

  std::int64_t memory_bytes() const;

 private:
  class Runs;
  std::unique_ptr<Runs> runs_;
};

}  // namespace mpol::ops
