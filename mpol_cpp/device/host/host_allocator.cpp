#include <mpol_cpp/device/host/host_allocator.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace mpol {
namespace {

/// LibTorch's allocator, but for the type of what it throws.
class TypedAllocator : public c10::Allocator {
 public:
  explicit TypedAllocator(c10::Allocator& own) : own_(own) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    try {
      return own_.allocate(bytes);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {  // an allocation has no other way to fail
      throw c10::OutOfMemoryError(error.what_without_backtrace(), nullptr);
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return own_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { own_.copy_data(to, from, bytes); }

 private:
  c10::Allocator& own_;
};

}  // namespace

void throw_typed_out_of_memory() {
  static TypedAllocator allocator(*c10::GetDefaultCPUAllocator());
  static const bool is_set = (c10::SetCPUAllocator(&allocator), true);  // another one set since stays
  static_cast<void>(is_set);
}

}  // namespace mpol
