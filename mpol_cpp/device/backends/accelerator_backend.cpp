#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/backend.h>

namespace mpol::detail {
namespace {

const c10::impl::DeviceGuardImplInterface* guard_of(c10::DeviceType type) {
  return c10::impl::device_guard_impl_registry[static_cast<std::size_t>(type)].load();
}

/// Whatever LibTorch knows of an accelerator through its own interface: number, memory.
class AcceleratorBackend : public DeviceBackend {
 public:
  explicit AcceleratorBackend(c10::DeviceType type) : type_(type) {}

  std::string name() const override { return c10::DeviceTypeName(type_, /*lower_case=*/true); }
  c10::DeviceType type() const override { return type_; }
  bool compiled_in() const override { return guard_of(type_) != nullptr; }
  int count() const override {
    const auto* guard = guard_of(type_);
    return guard != nullptr ? static_cast<int>(guard->deviceCount()) : 0;
  }
  std::string no_device_reason() const override {
    if (count() > 0) return {};
    return fmt::format("LibTorch finds no device {}", name());
  }
  DeviceInfo info(int index) const override {
    DeviceInfo info;
    info.device = torch::Device(type_, static_cast<c10::DeviceIndex>(index));
    info.index = index;
    info.name = name();
    info.memory = memory(index);
    return info;
  }
  DeviceMemory memory(int index) const override {
    auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(type_));
    if (allocator == nullptr) return {};
    try {
      const auto [free, total] = allocator->getMemoryInfo(static_cast<c10::DeviceIndex>(index));
      return {static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)};
    } catch (const c10::Error&) {  // not every one of them says
      return {};
    }
  }

 private:
  c10::DeviceType type_;
};

}  // namespace

std::vector<std::shared_ptr<const DeviceBackend>> make_accelerator_backends() {
  std::vector<std::shared_ptr<const DeviceBackend>> backends;
  for (const auto type : {c10::DeviceType::XPU, c10::DeviceType::HIP, c10::DeviceType::MPS, c10::DeviceType::PrivateUse1}) {
    if (guard_of(type) != nullptr) backends.push_back(std::make_shared<AcceleratorBackend>(type));
  }
  return backends;
}

}  // namespace mpol::detail
