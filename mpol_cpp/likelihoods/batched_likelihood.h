#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol {

/// The likelihoods of a batch whose problems have data of their own: folds of a cross-validation, or observations that are imaged
/// alike. An image is (problems…, nchan, npix, npix), and what the problems' likelihoods say of their images is put side by side.
/// An Objective divides each problem's chi^2 by its own normalizer, so that every problem is fitted as it would be alone.
///
/// State dict: those of the likelihoods, as `problem_0`, `problem_1`, …
class BatchedLikelihoodImpl : public Module<BatchedLikelihoodImpl>, public Likelihood {
 public:
  /// @param problems  one for each problem, on one device, of the same grid; they are kept
  /// @throws ValueError for none, an empty pointer, grids that differ, or a batch within a batch
  explicit BatchedLikelihoodImpl(std::vector<std::shared_ptr<Likelihood>> problems);
  void reset() override;

  /// @throws ShapeError for an image of another number of problems
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override;
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  std::vector<const Likelihood*> of_problems() const override;
  double normalizer() const override;                  ///< the sum over problems
  std::int64_t samples() const override;               ///< likewise
  std::int64_t visibilities_count() const override;    ///< likewise
  std::int64_t memory_bytes() const override;          ///< likewise
  bool is_quadratic() const override;                  ///< whether all are
  bool can_be_recorded() const override;               ///< likewise
  std::string obstacle_to_recording() const override;  ///< there always is one: normalizers come from the host
  /// That of each problem, as `problem_0.NAME`.
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  std::string name() const override;  ///< what they are called, where all are called the same, else "batched"

 private:
  /// The images as (problems, nchan, npix, npix).
  Tensor apart(const Tensor& sky) const;
  /// What an evaluation of each problem's likelihood gives, side by side.
  Tensor of_each(const Tensor& sky, Tensor& gradient,
                 const std::function<Tensor(Likelihood&, const Tensor& image, Tensor& slope)>& evaluate) const;
  void add_modules();

  std::vector<std::shared_ptr<Likelihood>> problems_;
};

TORCH_MODULE(BatchedLikelihood);

}  // namespace mpol
