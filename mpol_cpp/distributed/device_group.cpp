#include <mpol_cpp/distributed/device_group.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/current_device.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/distributed/store_communicator.h>

namespace mpol {
namespace {

/// A thread of this process is not lost without a word, as a process may be, and a fit may take long.
constexpr auto timeout_of_members = std::chrono::hours(24 * 365);

}  // namespace

/// One thread, which does one thing after the other.
class DeviceGroup::Member {
 public:
  Member(torch::Device device, int threads) : thread_([this, device, threads] { live(device, threads); }) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() {
    begin({});
    thread_.join();
  }

  /// Gives the thread something to do; nothing: its end.
  void begin(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    is_busy_ = true;
    changed_.notify_all();
  }
  /// Waits until it is done. @return what it threw
  std::exception_ptr wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_busy_; });
    return std::exchange(failure_, nullptr);
  }

 private:
  void live(torch::Device device, int threads) {
    at::get_num_threads();  // a thread's first question sets its number to the process's, later than this one would be set
    at::set_num_threads(threads);
    std::optional<CurrentDevice> current;
    try {
      if (!device.is_cpu()) current.emplace(device);
    } catch (...) {
      failure_ = std::current_exception();
    }
    for (std::unique_lock lock(mutex_);;) {
      is_busy_ = false;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_busy_; });
      if (!work_) return;
      const auto work = std::exchange(work_, {});
      lock.unlock();
      std::exception_ptr failure;
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  std::exception_ptr failure_;
  bool is_busy_ = true;  // until it has begun
  std::thread thread_;
};

DeviceGroup::DeviceGroup(const std::vector<torch::Device>& devices, const std::vector<double>& speeds) {
  if (devices.empty()) throw ValueError("a group of no devices: name at least one");
  if (!speeds.empty() && speeds.size() != devices.size())
    throw ValueError(fmt::format("{} speeds of {} devices: give one of each, or none", speeds.size(), devices.size()));
  const auto speed_of = [&](std::size_t i) { return speeds.empty() ? 1.0 : speeds[i]; };
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const auto i : order) {
    check_device(devices[i]);
    if (!(speed_of(i) > 0 && std::isfinite(speed_of(i))))
      throw ValueError(fmt::format("{} has the speed {}: speeds must be finite and above 0", devices[i].str(), speed_of(i)));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return speed_of(a) > speed_of(b); });
  for (const auto i : order) {
    devices_.push_back(devices[i]);
    speeds_.push_back(speed_of(i));
  }
  const int threads = at::get_num_threads();
  const auto cpus = std::count_if(devices_.begin(), devices_.end(), [](torch::Device device) { return device.is_cpu(); });
  std::int64_t cpu = 0;
  for (const auto device : devices_) {
    const auto own = device.is_cpu() ? share_of(threads, cpu++, cpus).size() : threads / size();
    members_.push_back(std::make_unique<Member>(device, static_cast<int>(std::max<std::int64_t>(own, 1))));
    std::exception_ptr failure = members_.back()->wait();
    if (failure) std::rethrow_exception(failure);
  }
  at::set_num_threads(threads);  // the last thread's number is that of threads to come otherwise
  join_members();
}

DeviceGroup::~DeviceGroup() = default;

void DeviceGroup::join_members() {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  ranks_.clear();
  for (std::int64_t rank = 0; rank < size(); ++rank) {
    ranks_.push_back(store_communicator(store, rank, size()));
    ranks_.back()->set_timeout(timeout_of_members);
  }
}

void DeviceGroup::run(const Work& work) {
  std::vector<std::exception_ptr> failures(members_.size()), consequences(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i]->begin([&, i] {
      try {
        work(ranks_[i], devices_[i]);
      } catch (const RankError&) {
        consequences[i] = std::current_exception();
        ranks_[i]->abort(1);
      } catch (...) {
        failures[i] = std::current_exception();
        ranks_[i]->abort(1);
      }
    });
  }
  for (auto& member : members_) member->wait();
  for (const auto* group : {&failures, &consequences}) {
    for (const auto& failure : *group) {
      if (!failure) continue;
      join_members();
      std::rethrow_exception(failure);
    }
  }
}

}  // namespace mpol
