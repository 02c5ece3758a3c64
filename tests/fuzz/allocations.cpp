#include "allocations.h"

#include <atomic>
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MPOL_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(MPOL_ADDRESS_SANITIZER)
#define MPOL_COUNTS_ALLOCATIONS 1
// As in the sanitizers' allocator_interface.h, which GCC does not install.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, std::size_t),
                                              void (*released)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
}
#endif

namespace mpol::testing {
namespace {

std::atomic<bool> watching = false;
std::atomic<std::int64_t> held = 0, most_held = 0;

#ifdef MPOL_COUNTS_ALLOCATIONS
void count_allocation(const volatile void*, std::size_t bytes) {
  if (!watching) return;
  const auto now = held += static_cast<std::int64_t>(bytes);
  auto most = most_held.load();
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
}

void count_release(const volatile void* memory) {
  if (watching) held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory));
}

bool install() { return __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release) > 0; }
#else
bool install() { return false; }
#endif

}  // namespace

bool AllocationWatch::available() {
  static const bool installed = install();
  return installed;
}

AllocationWatch::AllocationWatch() {
  held = most_held = 0;
  watching = available();
}

AllocationWatch::~AllocationWatch() { watching = false; }

std::int64_t AllocationWatch::most() const { return most_held; }

}  // namespace mpol::testing
