#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

namespace mpol {

/// Memory of one device, bytes.
struct DeviceMemory {
  std::int64_t total_bytes = 0;  ///< of the device, whoever uses it
  std::int64_t free_bytes = 0;   ///< that nobody uses at the moment
};

/// What is known of one accelerator device. Texts are empty where the driver does not say.
struct DeviceInfo {
  torch::Device device = torch::kCPU;    ///< as tensors know it
  int index = 0;                         ///< among the visible devices of its backend, as in cuda:INDEX
  std::string name;                      ///< "NVIDIA H200"
  std::string uuid;                      ///< "GPU-8f6d…"
  std::string pci_id;                    ///< "00000000:3B:00.0"
  std::string driver;                    ///< version of the driver
  std::string capability;                ///< compute capability, "9.0"
  DeviceMemory memory;                   ///< when it was asked for
  std::optional<double> processor_load;  ///< fraction of time at work, 0 to 1; empty where nobody measures it
};

/// What the selection of devices knows of one kind of device: CUDA, the CPU, and what LibTorch's accelerator interface says of
/// others (XPU, ROCm, MPS, a PrivateUse1 of one's own). One that knows more of such a device takes the place of the latter once
/// it is registered, everywhere: selection, memory, information, command line.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual std::string name() const = 0;              ///< as in --device: "cuda"
  virtual c10::DeviceType type() const = 0;          ///< LibTorch's name of it
  virtual bool compiled_in() const = 0;              ///< this build has code for it
  virtual int count() const = 0;                     ///< devices that can compute, 0 without a driver
  virtual std::string no_device_reason() const = 0;  ///< why count() is 0, in words
  virtual DeviceInfo info(int index) const = 0;      ///< index < count()
  virtual DeviceMemory memory(int index) const = 0;  ///< index < count()
};

/// Makes a backend known, before those that are, or in place of the one of the same type.
/// @return the one that it replaces, or nothing
/// @throws ValueError for a null pointer
std::shared_ptr<const DeviceBackend> register_backend(std::shared_ptr<const DeviceBackend> backend);
/// Forgets the backend of a type; the CPU's stays. @return it, or nothing
std::shared_ptr<const DeviceBackend> unregister_backend(c10::DeviceType type);

/// All backends, the CPU's last.
std::vector<std::shared_ptr<const DeviceBackend>> device_backends();
/// The backend of a type, or nothing.
std::shared_ptr<const DeviceBackend> find_backend(c10::DeviceType type);

namespace detail {
std::shared_ptr<const DeviceBackend> make_cuda_backend();
std::shared_ptr<const DeviceBackend> make_cpu_backend();
/// Makes backends of the other accelerators that LibTorch has, from what its own interface says of each. Memory that it does not
/// know is 0, so that automatic requests pass it over.
std::vector<std::shared_ptr<const DeviceBackend>> make_accelerator_backends();
}  // namespace detail

}  // namespace mpol
