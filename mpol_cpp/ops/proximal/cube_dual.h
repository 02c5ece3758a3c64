#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/distributed/channel_neighbors.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/proximal/dual_images.h>
#include <mpol_cpp/ops/proximal/dual_walk.h>
#include <mpol_cpp/regularizers/base/cube_weights.h>

namespace mpol::ops {

using torch::Tensor;

/// Numbers of the dual steps of one problem (solvers/cube_proximal.h): each part j climbs by sigma_j = share_j / |K_j|^2, where
/// K_j is the weight k_j times its differences, |K_j|^2 <= 8 k^2, 4 k^2, k^2 and 64 k^2, and share_j = |K_j| / sum |K|: what
/// brings the bound of Beck and Teboulle down the most. |K|^2 of coefficients in eight bases is 8 k^2: of those CubeProximal
/// alone knows.
struct CubeDualSteps {
  CubeDualSteps(const CubeWeights& weights, std::size_t problem);

  double variation, channels, spectra, curvature, bases;  ///< k_j
  /// k_j sigma_j of images whose own step is 1; 0 where k_j is.
  double variation_climb = 0, channels_climb = 0, spectra_climb = 0, curvature_climb = 0, bases_climb = 0;
  /// Whether there is any weight of CubeDual's.
  bool is_on() const { return variation > 0 || channels > 0 || spectra > 0 || curvature > 0; }
};

/// The proximal map of total variation, differences from channel to channel, norms of spectra and pixels' signs on the CPU, as
/// TvDual works: the images of a few channels one after the other in blocks of rows, a pass over all dual images each. The duals
/// of spectra are cut in a second pass over theirs. Where there are problems enough each is one worker's for all of its passes,
/// so that its images stay in the cache. The same bits for any number of threads.
template <typename T>
class CubeDual {
 public:
  /// @param hann       whether it looks at the images convolved with the Hann kernel
  /// @param neighbors  who has the other channels of the same problems and calls the same functions; null: nobody
  CubeDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann, CubeWeights weights,
           std::shared_ptr<ChannelNeighbors> neighbors = {});
  CubeDual(const CubeDual&) = delete;
  CubeDual& operator=(const CubeDual&) = delete;

  /// @param q       (problems, nchan, npix, npix), contiguous
  /// @param mask    1 or 0, like q, or null
  /// @param steps   of each image, > 0
  /// @param passes  of each problem
  /// @param x       like q; overwritten
  void apply(const T* q, const T* mask, const std::vector<double>& steps, const std::vector<std::int64_t>& passes, T* x);

  /// The dual images, (2 to 7, problems, nchan, npix, npix): rows, columns, to the next channel, of the spectrum, and three of
  /// second order; all but the first two where they have a weight.
  Tensor dual() const { return duals_.now(); }
  void set_dual(const Tensor& dual);

 private:
  /// Some channels of a block of rows of a problem.
  struct Piece {
    std::size_t problem;
    std::int64_t chunk, first_channel, end_channel, first_row, end_row;
  };
  /// What all pieces of a pass are told.
  struct Pass {
    const T *q, *mask;
    const std::vector<double>& steps;         // of each image
    const std::vector<std::int64_t>& passes;  // of each problem
    std::vector<double> largest_step;         // of each problem
    std::vector<double> before, after;        // the steps of the neighbors' nearest channels in each problem; 0: there is none
    std::vector<double> t, momentum;          // of each problem
    RowBlocks blocks;
  };

  Piece piece_of(std::int64_t task, const RowBlocks& blocks) const;
  double step_of(const Piece& piece, std::int64_t channel, const Pass& pass) const;
  DualWalk<T> walk(const Piece& piece, std::int64_t channel, const Pass& pass, std::size_t worker) const;
  /// Asks other ranks for the steps of their nearest channels, and the largest of all.
  void ask_for_steps(Pass& pass) const;
  /// S x of the first and the last channel to the neighbors, and theirs into beyond_.
  void exchange_ends(const Pass& pass);
  /// Squares of duals of spectra, summed over the channels of all ranks, into those of the first chunk.
  void join_squares();
  /// A row of a neighbor's nearest channel.
  T* beyond(bool after, std::size_t problem, std::int64_t row) const;
  /// Raises the duals between this rank's channels and the neighbors'.
  void raise_to_before(const Piece& piece, std::int64_t row, const Pass& pass, const T* own);
  void raise_to_after(const Piece& piece, std::int64_t row, const Pass& pass, const T* own);
  /// Whether a problem has more passes to come, and something to climb.
  bool goes_on(std::size_t problem, const Pass& pass, std::int64_t done) const;
  /// All problems, where each is one worker's (most_work_first); empty where all workers share each pass.
  std::vector<std::size_t> problems_apart(const std::vector<std::int64_t>& passes) const;
  /// The passes of all problems, one after the other, and those of one of them by one worker, who finishes it, too.
  void climb_together(Pass& pass);
  void climb_alone(std::size_t problem, Pass& pass, std::size_t worker, T* x);
  /// What all rows of a problem say of turning, and what follows.
  double sum_of_turned(std::size_t problem) const;
  void turn(std::size_t problem, double sum, Pass& pass);
  /// Raises the duals of a piece.
  void raise(const Piece& piece, const Pass& pass, std::size_t worker);
  void raise_channel(const Piece& piece, std::int64_t channel, const Pass& pass, std::size_t worker);
  /// Cuts the raised duals of spectra.
  void cut(const Piece& piece, const Pass& pass, std::size_t worker);
  /// Squares of the raised duals of spectra, summed over the channels of a chunk.
  T* squares(std::size_t problem, std::int64_t chunk, std::int64_t row) const;
  /// What a row of an image says of turning, in units of each part's own steps.
  double& turned(std::int64_t image, std::int64_t row);
  /// S x of a row of a block in a worker's hands, of a channel or of the one before.
  T* level(std::size_t worker, std::int64_t channel, std::int64_t row_of_block) const;
  void finish(std::int64_t task, const Pass& pass, std::size_t worker, T* x) const;

  std::int64_t problems_, nchan_, chunks_;
  CubeWeights weights_;
  std::vector<CubeDualSteps> dual_steps_;  // of each problem
  std::int64_t plane_of_channels_, plane_of_spectra_, plane_of_curvature_;
  WalkFrame<T> frame_;
  DualImages<T> duals_;
  AlignedArray<T> squares_;
  std::vector<double> turned_;
  std::vector<WalkScratch<T>> scratch_;  // of each worker
  std::vector<AlignedArray<T>> levels_;  // of each worker
  std::shared_ptr<ChannelNeighbors> neighbors_;
  std::optional<DualImages<T>> duals_before_;  // from the neighbor's last channel to the first one here, which both raise alike
  AlignedArray<T> beyond_;                     // S x of the neighbors' nearest channels
};

}  // namespace mpol::ops
