#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include <mpol_cpp/ops/proximal/gpu/pogm_arrays.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>

namespace mpol {

/// The iterations of Pogm where nobody waits for the device: which problems move, how far F falls, how much f curves and how many
/// passes the proximal map takes are told by numbers that lie there. What an iteration changes keeps its place in memory, so that
/// a CUDA graph can hold it. Images and numbers are worked on by the kernels of ops/proximal/gpu/pogm_launch.h, which are
/// emulated on the CPU.
///
/// It differs from Pogm in one thing: a problem that is to have twice the passes has them from the next multiple of
/// `between_looks` iterations on, for only then the host asks. All that follows from the state alone.
class DevicePogm {
 public:
  static constexpr std::int64_t between_looks = 8;

  /// @param function  without kernels: on a device, or made with CubeProximal::By::tensors; its images are overwritten
  DevicePogm(ConvexObjective& function, Momentum momentum);

  /// Evaluates the function at the images, unless that was done.
  void prepare();
  /// The passes of the next iteration's proximal map in any problem; now and then it waits for the device.
  std::int64_t passes();
  /// Pogm::hold_settled() with the scales of the present losses. @param still  on the host
  void hold_settled(double tolerance, const std::vector<bool>& still);
  /// One iteration after prepare(), to be followed by keep_report(). @param passes  what passes() gave
  void iterate(std::int64_t passes);
  /// What the last iteration tells, in a tensor that later ones leave alone: the losses before it (columns problems), then the
  /// sum of all pixels after it; float64 on the device.
  Tensor keep_report();

  const Tensor& images() const { return y_; }
  Tensor losses() const { return losses_; }  ///< (columns, problems) float64 on the device, of the present images
  std::int64_t iterations() const { return iterations_; }
  /// Pogm::has_converged() with the scales of the present losses. Waits for the device.
  bool has_converged(double tolerance) const;
  /// Everything that iterate() changes.
  std::vector<Tensor> changed() const;

  /// Those of Pogm, and what differs.
  NamedTensors state() const;
  /// Takes up such a state, or one of Pogm. @param losses  of the images, as losses(); undefined where none were known
  void load_state(const NamedTensors& state, const Tensor& losses);

 private:
  /// Everything as the kernels see it. @param values  of the function at next_; undefined where no kernel looks at them
  template <typename T>
  ops::PogmArrays<T> arrays(const ConvexObjective::DeviceValues& values) const;
  void run(std::initializer_list<ops::PogmKernel> kernels, const ConvexObjective::DeviceValues& values) const;
  void set_losses(const Tensor& losses);
  /// Which problems have settled, on the device: Pogm::has_settled() with the scales of the present losses.
  Tensor have_settled(double tolerance) const;
  Tensor fall(std::int64_t from, std::int64_t to) const;  // of problems in iterations from..to - 1
  /// Which problems mpol::may_fall_far(), on the device.
  Tensor may_fall_far(double tolerance) const;

  ConvexObjective& function_;
  Momentum momentum_;
  bool mixes_images_;
  Tensor y_, w_, z_, gradient_, next_, next_gradient_;  // like the images
  Tensor t_, c_, regularizers_, curvatures_;            // float64, (problems); (problems, nchan)
  Tensor passes_, in_force_;                            // (problems) int64: wanted, and had
  Tensor ends_;                                         // (problems) int64, of the last iteration: ops::PogmEnd
  Tensor losses_, report_;                              // report_: keep_report(), then the decreases of F (problems)
  Tensor next_t_, next_c_, steps_;                      // float64, of the step under way: (problems), and of each image
  Tensor piece_sums_, sums_, pixel_sums_;               // float64 (PogmArrays)
  Tensor decreases_;                                    // (room, problems), of each iteration
  static constexpr std::int64_t not_asked = -1;
  std::int64_t iterations_ = 0, most_in_force_ = not_asked;
  bool is_prepared_ = false;
};

}  // namespace mpol
