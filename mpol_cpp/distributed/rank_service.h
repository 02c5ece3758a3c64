#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// Work that the first rank has and the others share in: it asks for it as often as it likes, and they do it until it releases
/// them.
class RankService {
 public:
  using Words = std::array<std::int64_t, 2>;  ///< that go along with a wish

  /// @param ranks  outlives it
  explicit RankService(Communicator& ranks) : ranks_(&ranks) {}

  Communicator& ranks() const { return *ranks_; }  ///< who work together

  /// Lets the other ranks begin; the caller then does its own part. By the first rank.
  /// @throws ValueError after release(); RankError when another rank has failed
  void ask(const Words& words = {});
  /// Lets the other ranks leave serve(). By the first rank; again it does nothing.
  void release();
  /// Does the part of another rank until the first releases it.
  /// @param work  is given the words of each wish
  /// @throws RankError when another rank fails, or the first does not ask within the time-out
  void serve(const std::function<void(const Words&)>& work);

 private:
  Communicator* ranks_;
  bool released_ = false;
};

}  // namespace mpol
