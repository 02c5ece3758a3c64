#include <mpol_cpp/device/select.h>

#include <charconv>
#include <cstdlib>

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/cuda_memory.h>

namespace mpol {
namespace {

std::string devices_there() {
  std::string list = "cpu";
  for (int index = 0; index < cuda_device_count(); ++index) list += fmt::format(", cuda:{}", index);
  return list;
}

torch::Device gpu(int index) { return {torch::kCUDA, static_cast<torch::DeviceIndex>(index)}; }

int index_with_most_free_memory() {
  int best = 0;
  for (int index = 1; index < cuda_device_count(); ++index) {
    if (detail::cuda_free_bytes(index) > detail::cuda_free_bytes(best)) best = index;
  }
  return best;
}

torch::Device fall_back(const std::string& wanted, const std::string& reason, Fallback fallback) {
  if (fallback == Fallback::error) {
    throw DeviceError(fmt::format("device {} is not there: {}; devices here: {}", wanted, reason, devices_there()));
  }
  log_warning_once(fmt::format("{}: running on the CPU", reason));
  return torch::kCPU;
}

}  // namespace

DeviceRequest DeviceRequest::parse(std::string_view text) {
  if (text == "auto") return automatic();
  if (text == "cpu") return cpu();
  if (text == "cuda") return cuda();
  if (text == "least-loaded") return least_loaded();
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    int index = -1;
    const auto [end, error] = std::from_chars(text.data() + prefix.size(), text.data() + text.size(), index);
    if (error == std::errc() && end == text.data() + text.size() && index >= 0) return cuda(index);
  }
  throw ValueError(fmt::format("device is '{}'; it must be auto, cpu, cuda, cuda:N or least-loaded", text));
}

int cuda_device_count() {
  if (!at::globalContext().hasCUDA()) return 0;
  const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)].load();
  return guard != nullptr ? static_cast<int>(guard->deviceCount()) : 0;
}

std::string no_gpu_reason() {
  if (cuda_device_count() > 0) return {};
  if (!detail::compiled_with_cuda) return "this build of mpol_cpp has no CUDA";
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) return fmt::format("CUDA_VISIBLE_DEVICES='{}' hides every GPU, or the driver finds none", visible);
  return "the NVIDIA driver finds no usable GPU";
}

torch::Device select_device(const DeviceRequest& request, Fallback fallback) {
  using Kind = DeviceRequest::Kind;
  const int count = cuda_device_count();
  switch (request.kind()) {
    case Kind::cpu:
      return torch::kCPU;
    case Kind::automatic:
      return count > 0 ? gpu(0) : fall_back("auto", no_gpu_reason(), Fallback::warn);
    case Kind::least_loaded:
      return count > 0 ? gpu(index_with_most_free_memory()) : fall_back("least-loaded", no_gpu_reason(), fallback);
    case Kind::cuda:
      break;
  }
  if (request.index() < count) return gpu(request.index());
  const auto wanted = fmt::format("cuda:{}", request.index());
  return fall_back(wanted, count == 0 ? no_gpu_reason() : fmt::format("there are {} GPUs", count), fallback);
}

}  // namespace mpol
