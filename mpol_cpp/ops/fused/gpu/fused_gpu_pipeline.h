#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <c10/core/Stream.h>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_cells.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_cut.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/gpu/image_transforms.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/fused/fused_settings.h>

namespace mpol::ops {

/// The data of one problem, as in gpu_cells.
struct ProblemCells {
  Tensor cells, data, weights;
};

/// What a step of a GPU works out, and how it updates the base pixels.
struct FusedGpuSettings : FusedSettings {
  std::vector<TermKind> columns = {};  // the terms of the losses, in their order
  FusedUpdate update = FusedUpdate::adam;
  double momentum = 0;                // of gradient descent
  double beta1 = 0.9, beta2 = 0.999;  // of Adam
  // Each problem stops once the totals of the last stop_window steps are within stop_relative of the present one.
  double stop_relative = 0;
  std::int64_t stop_window = 0;  // 0: none stops by itself
  torch::Dtype dtype = torch::kFloat32;
  torch::Device device = torch::kCPU;  // a GPU; on the CPU the kernels are emulated, which is slow
  std::int64_t history_entries = 64;   // steps between two small allocations
  std::optional<TileKind> tile = {};   // chosen by what there is to do unless given
  StepKernels kernels = StepKernels::usual;
  EmulatedOrder order = EmulatedOrder::ascending;
};

/// Value, gradient and update of
///   chi^2 / (2 N_norm) + sum_i lambda_i R_i,   image = Hann(softplus(base))
/// of all problems and channels at once, on a GPU, in a few kernels:
///   map      softplus, Hann
///   square   sums over channels, where there are regularizers of spectra
///   ...      real transform
///   weigh    weighted residual at the cells, power spectrum
///   ...      inverse real transform
///   curve    regularizers of curvatures, where there are any
///   finish   regularizers, Hann, derivative of softplus, update
///   collect  losses into the history; beside the first kernels of the next step where it is known
/// Where lines of npix points have a LinePlan and fit into the memory of a block, map, weigh and finish work on rows, columns and
/// rows, and transform them by themselves: then all steps that are enqueued at once can also be one kernel, whose blocks wait for
/// each other, with the same results but for rounding. It saves the starts of kernels, and has fewer threads at work: which is
/// faster, small images try. Else they work on tiles, with the transforms of a library between them. A likelihood of the images
/// takes the place of the cells: transforms and weigh are then for the power spectrum alone. What changes between steps (learning
/// rate, lambda, counters, stop flags) lies on the device: a step is the same launches each time, reads nothing back and
/// allocates nothing, so that it can be recorded as a CUDA graph. Sums are taken in a fixed order.
class FusedGpuPipeline {
 public:
  /// Cells as in gpu_cells, shared by all problems. @throws ValueError where settings or cells do not fit
  FusedGpuPipeline(const FusedGpuSettings& settings, const Tensor& cells, const Tensor& data, const Tensor& weights);
  /// Each problem with cells of its own, as folds have them. @throws ValueError likewise, and unless there is one for each, or
  /// for all
  FusedGpuPipeline(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells);
  /// @param likelihood  puts its work into the current stream and waits for nothing
  FusedGpuPipeline(const FusedGpuSettings& settings, ImageLikelihood likelihood);
  ~FusedGpuPipeline();
  FusedGpuPipeline(const FusedGpuPipeline&) = delete;
  FusedGpuPipeline& operator=(const FusedGpuPipeline&) = delete;

  /// What one step reports, on the device.
  struct Losses {
    Tensor losses;      // (columns, problems) float64: total, nll, weighted terms
    Tensor parameters;  // (problems) float64: the sum of the base pixels after the update
  };

  /// Makes room for the losses of so many steps: to be called before they are enqueued or replayed, never within a graph.
  /// @throws ValueError for more steps than the history has entries
  void make_room(std::int64_t steps);
  /// Puts steps into the current stream. Of several, the losses of one are added up beside the first kernels of the next.
  /// @param base (problems, nchan, npix, npix), updated in place
  void enqueue(const Tensor& base, std::int64_t steps = 1);
  /// The same without update: the gradient with respect to the base pixels is written to `gradient`.
  void enqueue_gradient(const Tensor& base, const Tensor& gradient);
  /// The losses of the oldest step not yet asked for.
  Losses next_losses();

  /// Sets the rate of all problems without waiting for the device.
  void set_learning_rate(double rate);
  /// Steps taken so far, of all problems: what Adam's factors are made of.
  void set_steps(std::int64_t steps);

  /// What the criterion of problems that stop by themselves goes on from: (steps, problems), the oldest first.
  /// @throws ValueError for totals of another number of problems
  void set_recent_totals(const Tensor& totals);

  Tensor learning_rates() const { return rate_; }  ///< (problems) float64
  Tensor lambdas() const { return lambda_; }       ///< (regularizer_count, problems) float64, in the order of TermKind
  Tensor stopped() const { return stopped_; }      ///< (problems) uint8; parameters and moments stay where it is not 0
  Tensor steps() const { return steps_; }          ///< (problems) int64
  Tensor totals() const { return total_; }         ///< (problems) float64, of the last step
  Tensor first() const { return first_; }          ///< (problems, nchan, npix, npix); undefined where there is none
  Tensor second() const { return second_; }        ///< likewise
  Tensor image() const { return image_; }          ///< (problems, nchan, npix, npix) of the last step, before its update
  bool one_kernel() const { return one_kernel_; }  ///< whether steps that are enqueued at once are one

  std::int64_t memory_bytes() const;

 private:
  FusedGpuPipeline(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells, ImageLikelihood likelihood);
  void choose_tile(const FusedGpuSettings& settings);
  bool can_be_one_kernel() const;
  void choose_kernels(StepKernels wanted);
  bool is_one_kernel_faster();
  void place_cells(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells);
  void check(const FusedGpuSettings& settings) const;
  void allocate(const FusedGpuSettings& settings);
  void fill_constants(const FusedGpuSettings& settings);
  void check_pixels(const Tensor& pixels, const char* name) const;
  void new_history();

  template <typename T>
  GpuArrays<T> arrays(const Tensor& base, const Tensor& gradient, FusedUpdate update) const;
  template <regularizers::Driver driver>
  bool uses() const {
    return regularizers::has_any(regularizers::KindsOf<driver>{},
                                 [this](TermKind kind) { return constants_.present[static_cast<int>(kind)]; });
  }
  bool has_power() const { return uses<regularizers::Driver::half_plane>(); }
  void evaluate_likelihood();
  template <typename T>
  void launch(const GpuArrays<T>& arrays, std::int64_t steps);
  void run(const Tensor& base, const Tensor& gradient, FusedUpdate update, std::int64_t steps);

  torch::Device device_;
  torch::Dtype dtype_;
  GpuShape shape_;
  GpuConstants constants_{};
  TileKind tile_, image_tile_{};  // the latter for kernels that cut into tiles whatever the others do
  EmulatedOrder order_;
  bool one_kernel_ = false;
  std::unique_ptr<ImageTransforms> transforms_;
  GpuCells cells_;
  std::optional<GpuRowCut> cut_;      // where rows are cut
  ImageLikelihood image_likelihood_;  // null where cells are the data
  Tensor slope_;                      // its gradient, where likelihood_ holds that of the power spectrum
  Tensor inverse_power_;
  Tensor first_, second_, image_, likelihood_, squares_, spectrum_;
  Tensor scale_, scale_of_images_;  // (problems) float64; (problems, 1, 1, 1)
  Tensor recent_, recorded_;
  Tensor lambda_, rate_, stopped_, steps_, bias_, total_, plane_sums_, pixel_sums_, curve_sums_;
  Tensor address_, entry_;             // of the history, as the kernels see it
  Tensor history_;                     // (entries, columns + 1, problems)
  std::optional<c10::Stream> beside_;  // where the last kernel of a step goes; none on the CPU
  std::int64_t entries_, enqueued_ = 0, read_ = 0;
  double learning_rate_ = 0;
};

}  // namespace mpol::ops
