#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <mpol_cpp/device/device_timer.h>
#include <mpol_cpp/train/optimizers/channel_state.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/divergence.h>
#include <mpol_cpp/train/fit_verdict.h>
#include <mpol_cpp/train/image_trail.h>
#include <mpol_cpp/train/options/convergence_forecast.h>
#include <mpol_cpp/train/problem_stops.h>
#include <mpol_cpp/train/steps/step.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/train/training_state.h>

namespace mpol::detail {

/// One run of a Trainer, from the first epoch to the result.
///
/// Steps report on the device; look() fetches what they said, every epoch on the CPU and every few on a GPU, where
/// waiting would cost more than the step. What it then finds (a divergence, a fit that has converged, a callback that asks
/// to stop) may lie in the past: the fit goes back to a kept state and repeats the steps up to the epoch in which it would have
/// ended, had each been looked at. So the sizes of groups change no result.
class Fit {
 public:
  /// How long steps are put to work before somebody looks at what they report.
  struct FetchLimits {
    std::int64_t epochs = 192;  // graphs of eight steps; what a look costs is small beside so many
    double seconds = 0.05;
  };
  using StepMaker = std::function<std::unique_ptr<Step>(std::shared_ptr<ImageModel>, const Objective&, const TrainOptions&)>;

  Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options);
  /// With a step and groups of one's own, for tests. @param make  make_step where it is empty
  Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options, const StepMaker& make,
      std::optional<FetchLimits> limits);
  TrainResult run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    double learning_rate;
    StepReport report;
  };

  struct Fetched {
    std::vector<double> losses;  // summed over problems
    std::vector<double> totals;  // of each problem
    bool finite_parameters;
  };
  /// Why the fit ends after so many epochs.
  struct Ending {
    std::int64_t epochs;
    StopReason reason;
  };

  torch::Device place();  ///< moves what the options want moved, and checks that all is on one device
  void resume();          ///< takes up the checkpoint, if one is wanted and there

  StopReason train();
  bool has_converged(std::int64_t done);   ///< also stops problems that have, where each ends by itself
  std::int64_t epochs_until_look() const;  ///< the group, or less up to an epoch at which the model itself is wanted
  void adapt_group(std::int64_t epochs, Clock::time_point begin);
  double learning_rate(std::int64_t epoch) const;
  void take_steps(std::int64_t epochs);
  std::optional<Ending> look();    ///< at all pending reports, in their order, with the callbacks; fills breakdown_
  bool call_back(double seconds);  ///< for the newest epoch; true when somebody asks to stop
  Fetched fetched_of(std::span<const double> row) const;

  TrainingState present_state() const;
  void go_to(const TrainingState& state);

  void keep_state();                       ///< now and then, for rewind()
  void keep_present_state();               ///< in good_ or candidate_
  bool evaluate_final();                   ///< false when something was not finite: breakdown_ says what
  void return_to(std::int64_t epochs);     ///< one of those that were looked at last
  void rewind();                           ///< to the last state whose loss was finite
  void repeat_up_to(std::int64_t epochs);  ///< the steps from good_

  /// What a rank tells the others at the end of an epoch.
  struct Signs {
    bool stop = false, checkpoint = false;
  };
  bool is_interrupted() const;
  bool checkpoint_is_old() const;
  Tensor summed_with_signs(const Tensor& table);  ///< over ranks; fills told_
  bool on_any_rank(bool here) const;              ///< of those that fit other channels
  void sum_over_ranks(Tensor& numbers) const;     ///< float64 on the CPU; without such ranks nothing
  std::optional<ImageTrail::Change> change_of_image() const;
  double flux_of(const Tensor& sky) const;  ///< of all channels and problems, Jy
  std::int64_t next_image() const;          ///< after how many epochs somebody looks at the image again; < 0: nobody does
  void look_at_image_if_due();
  Tensor empty_nll(const Tensor& sky) const;
  bool has_vanished();
  bool has_settled_within(double tolerance);                         ///< at the newest image; notes what is lacking in forecast_
  void look_at_final(const ModelOutput& output, const Tensor& nll);  ///< fills final_image_
  StopReason verdict(StopReason reason);  ///< writes down what judge_fit says of a fit that ended for this reason

  void checkpoint_if_due();
  void write_checkpoint();
  bool is_first_rank() const { return !ranks_ || ranks_->is_first(); }
  void check_same_checkpoint(const std::optional<Checkpoint>& checkpoint) const;  ///< on all ranks
  void write_history_files();
  double seconds();

  std::shared_ptr<ImageModel> model_;
  const Objective& local_objective_;  ///< as given
  const Objective objective_;         ///< over ranks, where terms join channels of several
  const TrainOptions& options_;
  std::shared_ptr<Communicator> ranks_;   ///< that fit other channels; empty where this one is alone
  Signs told_;                            ///< by any of them, in this epoch
  std::optional<ChannelState> channels_;  ///< of those ranks
  std::unique_ptr<Step> step_;
  TrainResult result_;
  std::int64_t done_ = 0;  ///< epochs
  FetchLimits limits_;
  std::int64_t group_ = 1;  ///< epochs until the next look
  double seconds_ = 0;      ///< of training, at the last look with callbacks
  std::vector<Pending> pending_;

  std::optional<ProblemStops> stops_;  ///< where each problem ends by itself
  std::vector<bool> stopped_;          ///< as the step knows

  TrainingState good_;                      ///< the newest kept state whose loss is known to be finite
  std::optional<TrainingState> candidate_;  ///< a newer one that has to prove it
  std::optional<Breakdown> breakdown_;

  std::optional<FluxMark> flux_mark_;
  ImageTrail trail_;              ///< of a fit that is to converge
  ConvergenceForecast forecast_;  ///< of when that will be
  FinalImage final_image_;

  std::optional<DeviceTimer> timer_;
  Clock::time_point last_checkpoint_ = Clock::now();
  std::int64_t checkpoint_epochs_ = -1;  ///< done in the newest checkpoint
  std::int64_t checkpoints_written_ = 0;
  std::vector<std::string> history_files_;  ///< of its complete blocks
  Existing existing_checkpoint_ = Existing::keep_as_previous;
};

}  // namespace mpol::detail
