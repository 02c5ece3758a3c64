#pragma once

#include <string>
#include <string_view>

#include <torch/types.h>

#include <mpol_cpp/device/backends/backend.h>

namespace mpol {

/// What is done when there is no device to choose, for an automatic request or the least loaded one. A device that is asked for
/// by name and is not there is always an error.
enum class Fallback {
  warn,   ///< take the CPU and say so once
  error,  ///< throw DeviceError with the list of devices that are there
};

/// Which device is wanted.
class DeviceRequest {
 public:
  /// Ways to choose.
  enum class Kind {
    automatic,    ///< as automatic()
    cpu,          ///< the CPU
    accelerator,  ///< one by its type and index
    least_loaded  ///< as least_loaded()
  };

  /// The default device if one was set, else the first GPU that has memory free, else the CPU.
  static DeviceRequest automatic() { return {Kind::automatic, c10::DeviceType::CPU, -1}; }
  /// The machine's processor, and its memory.
  static DeviceRequest cpu() { return {Kind::cpu, c10::DeviceType::CPU, 0}; }
  /// One by its index among the visible ones.
  static DeviceRequest cuda(int index = 0) { return accelerator(c10::DeviceType::CUDA, index); }
  /// A device of a registered backend.
  static DeviceRequest accelerator(c10::DeviceType type, int index = 0) { return {Kind::accelerator, type, index}; }
  /// The GPU that is least loaded, as select_device_by_load() finds it.
  static DeviceRequest least_loaded() { return {Kind::least_loaded, c10::DeviceType::CPU, -1}; }
  /// "auto", "cpu", "least-loaded", "cuda", "cuda:N", or NAME and NAME:N of another registered backend.
  /// @throws ValueError for anything else
  static DeviceRequest parse(std::string_view text);

  Kind kind() const { return kind_; }             ///< how the device is chosen
  c10::DeviceType type() const { return type_; }  ///< of an accelerator; CPU for the others
  int index() const { return index_; }            ///< of an accelerator; -1 where the device is chosen later

 private:
  DeviceRequest(Kind kind, c10::DeviceType type, int index) : kind_(kind), type_(type), index_(index) {}
  Kind kind_;
  c10::DeviceType type_;
  int index_;
};

/// The device for a request. Where an automatic one finds no GPU with memory free, or one for the least loaded no GPU,
/// Fallback::warn gives the CPU and says so once per process, with the reason; Fallback::error throws.
/// @throws DeviceError as above, and for a named device that is not there; the message lists the devices that are
torch::Device select_device(const DeviceRequest& request = DeviceRequest::automatic(), Fallback fallback = Fallback::warn);

/// @throws DeviceError, listing the devices that are there, unless one can compute or hold tensors: the CPU, Meta, or a usable
///         device of a registered backend
void check_device(torch::Device device);

/// Makes automatic requests give this device, in the whole process. @throws DeviceError when it is not there
void set_default_device(torch::Device device);
/// Makes automatic requests choose again.
void reset_default_device();

/// Whether this build has code for a type of device.
bool compiled_in(c10::DeviceType type);
/// Whether a device of the type is there to compute with.
bool functional(c10::DeviceType type);

/// A GPU with less free memory is busy: an automatic request passes it over. A context alone takes about as much.
inline constexpr std::int64_t least_free_bytes = std::int64_t{512} << 20;

/// Usable CUDA devices, 0 without any.
int cuda_device_count();
/// Why an automatic request gives the CPU: "this build has no CUDA", …; empty when it gives a GPU.
std::string no_gpu_reason();

}  // namespace mpol
