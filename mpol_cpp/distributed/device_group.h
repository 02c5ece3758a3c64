#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// Devices of this process that work on one thing together. Each is a rank that is a thread of its own, for which the device is
/// the current one; what ranks of processes do, such as TrainOptions::ranks and CrossValidatorOptions::ranks, these do as well:
///
///     DeviceGroup devices(select_devices("all"));
///     devices.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
///       const auto share = share_of(nchan, ranks->rank(), ranks->size());
///       … Trainer(model, objective, TrainOptions().device(device).ranks(ranks)).fit();
///     });
///
/// The threads live as long as the group. The CPU may be a member more than once: the CPU's members divide the threads that
/// at::get_num_threads() gives where the group is made; members with a GPU have each an equal part of them for what they do on
/// the host. What is of the whole process (log, default random numbers, deterministic algorithms) is common to all.
class DeviceGroup {
 public:
  /// What every member does. @param ranks  its communicator, for as long as the group lives
  using Work = std::function<void(const std::shared_ptr<Communicator>& ranks, torch::Device device)>;

  /// @param devices  at least one
  /// @param speeds   of the devices, in any common unit; empty: all alike. The fastest is the first rank; equal ones keep their
  ///                 order
  /// @throws ValueError for no devices, or speeds that are not above 0 or not as many; DeviceError for a device that is not there
  explicit DeviceGroup(const std::vector<torch::Device>& devices, const std::vector<double>& speeds = {});
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;
  ~DeviceGroup();

  std::int64_t size() const { return static_cast<std::int64_t>(devices_.size()); }  ///< how many members there are
  const std::vector<torch::Device>& devices() const { return devices_; }            ///< in the order of ranks
  const std::vector<double>& speeds() const { return speeds_; }                     ///< the same

  /// Lets every member do this, and waits for all. What one throws makes the others end with RankError where they wait for it,
  /// and is thrown here: of several that failed by themselves, that of the lowest rank. Communicators of before a failure are of
  /// no use afterwards.
  void run(const Work& work);

 private:
  class Member;
  void join_members();

  std::vector<torch::Device> devices_;
  std::vector<double> speeds_;
  std::vector<std::shared_ptr<Communicator>> ranks_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace mpol
