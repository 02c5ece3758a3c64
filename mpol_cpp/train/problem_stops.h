#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// The stop criterion of stop_criterion.h for each problem of a batch by itself. It looks at the totals of the last epochs,
/// which it keeps, so that a resumed run decides as one that never stopped.
class ProblemStops {
 public:
  ProblemStops(std::size_t problems, double relative, std::int64_t window);

  /// The totals of an epoch, one for each problem, before its update. @throws ShapeError for another number of them
  void record(std::vector<double> totals);
  /// Stops what has converged. @param done  epochs
  void decide(std::int64_t done);

  std::vector<bool> stopped() const;
  bool all_stopped() const;
  /// Epochs after which each problem was stopped; -1 for those that go on.
  const std::vector<std::int64_t>& epochs() const { return epochs_; }

  /// "totals" (epochs, problems) and "epochs" (problems).
  NamedTensors state() const;
  /// @throws FileError where it is of other problems
  void load_state(const NamedTensors& state);

 private:
  bool has_converged(std::size_t problem) const;

  double relative_;
  std::size_t window_;
  std::deque<std::vector<double>> totals_;  // of the window, and the newest
  std::vector<std::int64_t> epochs_;
};

}  // namespace mpol::detail
