#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/device/backends/backend.h>

#include "warnings.h"

namespace mpol::testing {

/// A device that a fake backend claims to have.
struct FakeDevice {
  double memory_in_use = 0;  // fraction
  std::optional<double> processor_load = 0.0;
  std::int64_t total_bytes = std::int64_t{16} << 30;
};

/// An accelerator that exists on paper only, as long as it lives.
class FakeBackend : public DeviceBackend {
 public:
  explicit FakeBackend(std::vector<FakeDevice> devices, c10::DeviceType type = c10::DeviceType::CUDA, std::string name = "cuda")
      : devices_(std::move(devices)), type_(type), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  c10::DeviceType type() const override { return type_; }
  bool compiled_in() const override { return true; }
  int count() const override { return static_cast<int>(devices_.size()); }
  std::string no_device_reason() const override { return count() > 0 ? "" : "the fake driver is asleep"; }
  DeviceInfo info(int index) const override {
    DeviceInfo info;
    info.device = torch::Device(type_, static_cast<torch::DeviceIndex>(index));
    info.index = index;
    info.name = "Fake " + std::to_string(index);
    info.uuid = "GPU-fake-" + std::to_string(index);
    info.memory = memory(index);
    info.processor_load = devices_.at(static_cast<std::size_t>(index)).processor_load;
    return info;
  }
  DeviceMemory memory(int index) const override {
    const auto& device = devices_.at(static_cast<std::size_t>(index));
    return {device.total_bytes, static_cast<std::int64_t>((1 - device.memory_in_use) * static_cast<double>(device.total_bytes))};
  }

 private:
  std::vector<FakeDevice> devices_;
  c10::DeviceType type_;
  std::string name_;
};

/// Registers a backend while it lives, and gives back the one that was there before.
class Registered {
 public:
  explicit Registered(std::shared_ptr<const DeviceBackend> backend)
      : type_(backend->type()), before_(register_backend(std::move(backend))) {}
  explicit Registered(std::vector<FakeDevice> devices) : Registered(std::make_shared<FakeBackend>(std::move(devices))) {}
  ~Registered() {
    if (before_) register_backend(before_);
    else unregister_backend(type_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  c10::DeviceType type_;
  std::shared_ptr<const DeviceBackend> before_;
};

}  // namespace mpol::testing
