#include <mpol_cpp/device/backends/cuda_memory.h>

#ifdef MPOL_WITH_CUDA
#include <string>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <mpol_cpp/core/format.h>
#endif

namespace mpol::detail {

#ifdef MPOL_WITH_CUDA
namespace {

std::string uuid_words(const cudaUUID_t& uuid) {
  std::string words = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) words += '-';
    words += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return words;
}

}  // namespace

DeviceMemory cuda_memory(int index) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(index));
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return {static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)};
}

DeviceInfo cuda_properties(int index) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.device = torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(index));
  info.index = index;
  info.name = properties.name;
  info.uuid = uuid_words(properties.uuid);
  info.pci_id = fmt::format("{:08X}:{:02X}:{:02X}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  info.capability = fmt::format("{}.{}", properties.major, properties.minor);
  return info;
}

int cuda_driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int cuda_runtime_version() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}
#else
DeviceMemory cuda_memory(int) { return {}; }
DeviceInfo cuda_properties(int) { return {}; }
int cuda_driver_version() { return 0; }
int cuda_runtime_version() { return 0; }
#endif

}  // namespace mpol::detail
