#pragma once

#include <atomic>
#include <cstddef>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace mpol::testing {

/// LibTorch's allocator for the CPU while it lives, but that the k-th allocation finds no memory.
class FailingAllocator : public c10::Allocator {
 public:
  explicit FailingAllocator(int k) : own_(*c10::GetCPUAllocator()), left_(k) { c10::SetCPUAllocator(this); }
  ~FailingAllocator() override { c10::SetCPUAllocator(&own_); }
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    if (left_-- == 0) throw c10::OutOfMemoryError("no memory in this test", nullptr);
    return own_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return own_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { own_.copy_data(to, from, bytes); }
  bool has_failed() const { return left_ < 0; }

 private:
  c10::Allocator& own_;
  std::atomic<int> left_;
};

}  // namespace mpol::testing
