#pragma once

#include <cstddef>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace mpol::testing {

/// LibTorch's allocator for the CPU while it lives, but for arrays of more bytes than it has.
class TightAllocator : public c10::Allocator {
 public:
  explicit TightAllocator(std::size_t most) : own_(*c10::GetCPUAllocator()), most_(most) { c10::SetCPUAllocator(this); }
  ~TightAllocator() override { c10::SetCPUAllocator(&own_); }
  TightAllocator(const TightAllocator&) = delete;
  TightAllocator& operator=(const TightAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > most_) throw c10::OutOfMemoryError("no memory in this test", nullptr);
    return own_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return own_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { own_.copy_data(to, from, bytes); }

 private:
  c10::Allocator& own_;
  std::size_t most_;
};

}  // namespace mpol::testing
