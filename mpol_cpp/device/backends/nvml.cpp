#include <mpol_cpp/device/backends/nvml.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace mpol::detail {
namespace {

// The part of NVML's binary interface that is used here. A call returns 0 when it succeeded.
struct NvmlPci {
  std::array<char, 16> short_id;
  unsigned domain, bus, device, vendor, subsystem;
  std::array<char, 32> id;
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUse {
  unsigned processor, memory;  // percent
};
using NvmlHandle = void*;

/// The library while it is open and initialised.
class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto start = function<int()>("nvmlInit_v2");
    ready_ = start != nullptr && start() == 0;
  }
  ~Nvml() {
    if (ready_) call<int()>("nvmlShutdown");
    if (library_ != nullptr) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool ready() const { return ready_; }

  /// Calls a function of the library; false when it is not there or fails.
  template <typename Function, typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto pointer = function<Function>(name);
    return pointer != nullptr && pointer(arguments...) == 0;
  }

 private:
  template <typename Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library_, name));
  }

  void* library_;
  bool ready_ = false;
};

template <std::size_t size>
std::string text_of(const std::array<char, size>& characters) {
  return {characters.begin(), std::find(characters.begin(), characters.end(), '\0')};
}

std::string gpu_text(const Nvml& nvml, const char* function, NvmlHandle gpu) {
  std::array<char, 96> text{};
  const bool known = nvml.call<int(NvmlHandle, char*, unsigned)>(function, gpu, text.data(), static_cast<unsigned>(text.size()));
  return known ? text_of(text) : std::string();
}

NvmlGpu describe_gpu(const Nvml& nvml, NvmlHandle handle) {
  NvmlGpu gpu;
  gpu.name = gpu_text(nvml, "nvmlDeviceGetName", handle);
  gpu.uuid = gpu_text(nvml, "nvmlDeviceGetUUID", handle);
  NvmlPci pci{};
  if (nvml.call<int(NvmlHandle, NvmlPci*)>("nvmlDeviceGetPciInfo_v3", handle, &pci)) gpu.pci_id = text_of(pci.id);
  NvmlMemory memory{};
  if (nvml.call<int(NvmlHandle, NvmlMemory*)>("nvmlDeviceGetMemoryInfo", handle, &memory)) {
    gpu.total_bytes = static_cast<std::int64_t>(memory.total);
    gpu.free_bytes = static_cast<std::int64_t>(memory.free);
  }
  NvmlUse use{};
  if (nvml.call<int(NvmlHandle, NvmlUse*)>("nvmlDeviceGetUtilizationRates", handle, &use))
    gpu.processor_load = use.processor / 100.0;
  return gpu;
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// The index of the one GPU that an entry of CUDA_VISIBLE_DEVICES names.
std::optional<std::size_t> named_gpu(const std::vector<NvmlGpu>& gpus, std::string_view entry) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error == std::errc() && end == entry.data() + entry.size())
    return index < gpus.size() ? std::optional(index) : std::nullopt;
  std::optional<std::size_t> found;
  if (!entry.starts_with("GPU-")) return found;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!same_letters(entry, std::string_view(gpus[i].uuid).substr(0, entry.size()))) continue;
    if (found) return std::nullopt;  // it could be either
    found = i;
  }
  return found;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<NvmlGpu> nvml_gpus() {
  std::vector<NvmlGpu> gpus;
  const Nvml nvml;
  unsigned count = 0;
  if (!nvml.ready() || !nvml.call<int(unsigned*)>("nvmlDeviceGetCount_v2", &count)) return gpus;
  for (unsigned index = 0; index < count; ++index) {
    NvmlHandle handle = nullptr;
    if (nvml.call<int(unsigned, NvmlHandle*)>("nvmlDeviceGetHandleByIndex_v2", index, &handle)) {
      gpus.push_back(describe_gpu(nvml, handle));
    }
  }
  return gpus;
}

std::string nvml_driver() {
  const Nvml nvml;
  std::array<char, 96> text{};
  const bool known = nvml.ready() && nvml.call<int(char*, unsigned)>("nvmlSystemGetDriverVersion", text.data(),
                                                                     static_cast<unsigned>(text.size()));
  return known ? text_of(text) : std::string();
}

std::optional<NvmlGpu> find_gpu(const std::vector<NvmlGpu>& gpus, std::string_view uuid, std::string_view pci_id) {
  for (const auto& gpu : gpus) {
    if (!uuid.empty() && same_letters(gpu.uuid, uuid)) return gpu;
  }
  for (const auto& gpu : gpus) {
    if (!pci_id.empty() && same_letters(gpu.pci_id, pci_id)) return gpu;
  }
  return std::nullopt;
}

std::vector<std::size_t> visible_gpus(const std::vector<NvmlGpu>& gpus, std::optional<std::string_view> visible) {
  std::vector<std::size_t> shown;
  if (!visible) {
    for (std::size_t i = 0; i < gpus.size(); ++i) shown.push_back(i);
    return shown;
  }
  for (std::size_t from = 0; from <= visible->size();) {
    const auto comma = std::min(visible->find(',', from), visible->size());
    const auto gpu = named_gpu(gpus, without_blanks(visible->substr(from, comma - from)));
    if (!gpu || std::find(shown.begin(), shown.end(), *gpu) != shown.end()) break;
    shown.push_back(*gpu);
    from = comma + 1;
  }
  return shown;
}

}  // namespace mpol::detail
