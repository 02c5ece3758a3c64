#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <mpol_cpp/device/timer.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/divergence.h>
#include <mpol_cpp/train/fit_verdict.h>
#include <mpol_cpp/train/problem_stops.h>
#include <mpol_cpp/train/steps/step.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/train/training_state.h>

namespace mpol::detail {

/// One run of a Trainer, from the first epoch to the result.
///
/// Steps report on the device; record() fetches what they said, every epoch on the CPU and every few on a GPU, where
/// waiting would cost more than the step. Whatever it then finds broken lies in the past: rewind() goes back to a kept
/// state and repeats the steps up to the last good epoch.
class Fit {
 public:
  Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options);
  TrainResult run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    double learning_rate;
    StepReport report;
  };

  void place();   ///< moves what the options want moved, and checks that all is on one device
  void resume();  ///< takes up the checkpoint, if one is wanted and there

  StopReason train();
  bool has_converged();  ///< also stops problems that have, where each ends by itself
  std::optional<StopReason> after_epoch();
  double learning_rate(std::int64_t epoch) const;
  StepReport take_step(std::int64_t epoch);

  TrainingState present_state() const;
  void go_to(const TrainingState& state);

  bool record();              ///< false when something was not finite: breakdown_ says what
  void keep_state();          ///< now and then, for rewind()
  void keep_present_state();  ///< in good_ or candidate_
  bool evaluate_final();      ///< likewise
  void rewind();              ///< to the last state whose loss was finite

  double flux_of(const Tensor& sky) const;  ///< of all channels and problems, Jy
  void mark_flux_if_due();
  void look_at_final(const ModelOutput& output, const Tensor& nll);  ///< fills final_image_
  StopReason verdict(StopReason reason);  ///< writes down what judge_fit says of a fit that ended for this reason

  void checkpoint_if_due();
  void write_checkpoint();
  void write_history_files();
  double seconds();

  std::shared_ptr<ImageModel> model_;
  const Objective& objective_;
  const TrainOptions& options_;
  std::unique_ptr<Step> step_;
  TrainResult result_;
  std::int64_t done_ = 0;  ///< epochs
  std::size_t fetch_interval_ = 1;
  std::vector<Pending> pending_;

  std::optional<ProblemStops> stops_;  ///< where each problem ends by itself
  std::vector<bool> stopped_;          ///< as the step knows

  TrainingState good_;                      ///< the newest kept state whose loss is known to be finite
  std::optional<TrainingState> candidate_;  ///< a newer one that has to prove it
  std::optional<Breakdown> breakdown_;

  std::optional<FluxMark> flux_mark_;
  FinalImage final_image_;

  std::optional<DeviceTimer> timer_;
  Clock::time_point last_checkpoint_ = Clock::now();
  std::int64_t checkpoint_epochs_ = -1;  ///< done in the newest checkpoint
  std::int64_t checkpoints_written_ = 0;
  std::vector<std::string> history_files_;  ///< of its complete blocks
  Existing existing_checkpoint_ = Existing::keep_as_previous;
};

}  // namespace mpol::detail
