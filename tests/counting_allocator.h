#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <c10/core/CPUAllocator.h>

#include <mpol_cpp/device/host/host_allocator.h>

namespace mpol::testing {

/// LibTorch's allocator for the CPU while it lives, with a count of what tensors made meanwhile take. They may outlive it.
class CountingAllocator : public c10::Allocator {
 public:
  CountingAllocator() : own_(allocator_of_the_program()) { c10::SetCPUAllocator(this); }
  ~CountingAllocator() override { c10::SetCPUAllocator(&own_); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    auto memory = own_.allocate(bytes);
    auto* const data = memory.get();
    count_->now += bytes;
    count_->peak = std::max(count_->peak.load(), count_->now.load());
    auto held = std::make_unique<Held>(Held{std::move(memory), count_, bytes});
    return {data, held.release(), &give_back, c10::DeviceType::CPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { own_.copy_data(to, from, bytes); }

  double now() const { return static_cast<double>(count_->now); }    ///< bytes
  double peak() const { return static_cast<double>(count_->peak); }  ///< bytes, since the last reset
  void reset_peak() { count_->peak = count_->now.load(); }

 private:
  /// The one that the program sets with its first call, which would otherwise replace this one.
  static c10::Allocator& allocator_of_the_program() {
    throw_typed_out_of_memory();
    return *c10::GetCPUAllocator();
  }
  struct Count {
    std::atomic<std::size_t> now = 0, peak = 0;
  };
  struct Held {
    c10::DataPtr memory;
    std::shared_ptr<Count> count;
    std::size_t bytes;
  };
  static void give_back(void* context) {
    const std::unique_ptr<Held> held(static_cast<Held*>(context));
    held->count->now -= held->bytes;
  }

  c10::Allocator& own_;
  std::shared_ptr<Count> count_ = std::make_shared<Count>();
};

}  // namespace mpol::testing
