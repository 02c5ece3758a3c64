#include "catch.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/nvml.h>

using namespace mpol;
using namespace mpol::detail;

namespace {

constexpr std::string_view marker = "seen:";

/// What a child process of this program sees with the management library of tests/device/fake_nvml.cpp.
std::string seen_by_child(const std::string& environment) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto command = fmt::format("env {1} LD_LIBRARY_PATH='{0}' '{2}' 'what a child process sees of the GPUs' 2>&1",
                                   MPOL_FAKE_NVML_FOLDER, environment, self);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe != nullptr);
  std::string text;
  for (std::array<char, 256> line{}; std::fgets(line.data(), line.size(), pipe.get()) != nullptr;) text += line.data();
  INFO(command << "\n" << text);
  const auto begin = text.find(marker);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + marker.size(), text.find('\n', begin) - begin - marker.size());
}

NvmlGpu paper_gpu(const std::string& uuid, const std::string& pci_id) {
  NvmlGpu gpu;
  gpu.uuid = uuid;
  gpu.pci_id = pci_id;
  return gpu;
}

}  // namespace

TEST_CASE("what a child process sees of the GPUs", "[.child]") {
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto gpus = nvml_gpus();
  std::string seen(marker);
  for (const auto index : visible_gpus(gpus, variable == nullptr ? std::nullopt : std::optional<std::string_view>(variable))) {
    const auto& gpu = gpus[index];
    seen += fmt::format(" {},{},{},{:.0f}%", gpu.name, gpu.pci_id, gpu.free_bytes >> 30, 100 * gpu.processor_load.value_or(-1));
  }
  fmt::print("{} of {}, driver {}\n", seen, gpus.size(), nvml_driver());
  SUCCEED();
}

TEST_CASE("CUDA_VISIBLE_DEVICES in its four forms shows what CUDA shows", "[device]") {
  const std::string first = " Paper 0,00000000:3B:00.0,8,40%", second = " Paper 1,00000000:3C:00.0,4,-100%";
  const std::string end = " of 2, driver 580.65.06";
  CHECK(seen_by_child("-u CUDA_VISIBLE_DEVICES") == first + second + end);
  CHECK(seen_by_child("CUDA_VISIBLE_DEVICES=1") == second + end);
  CHECK(seen_by_child("CUDA_VISIBLE_DEVICES=-1") == end);
  CHECK(seen_by_child("CUDA_VISIBLE_DEVICES=") == end);
  CHECK(seen_by_child("CUDA_VISIBLE_DEVICES=GPU-b0000000-1111-2222-3333-444444444444,GPU-a0") == second + first + end);
}

TEST_CASE("entries of CUDA_VISIBLE_DEVICES behind one that names no GPU are hidden", "[device][quick]") {
  const std::vector<NvmlGpu> gpus = {paper_gpu("GPU-aa11", "1"), paper_gpu("GPU-aa22", "2"), paper_gpu("GPU-bb33", "3")};
  using List = std::vector<std::size_t>;
  CHECK(visible_gpus(gpus, std::nullopt) == List{0, 1, 2});
  CHECK(visible_gpus(gpus, "2,0") == List{2, 0});
  CHECK(visible_gpus(gpus, " 2 , 1") == List{2, 1});
  CHECK(visible_gpus(gpus, "2,-1,0") == List{2});
  CHECK(visible_gpus(gpus, "1,7,0") == List{1});
  CHECK(visible_gpus(gpus, "GPU-bb,GPU-aa") == List{2});  // the second could be either
  CHECK(visible_gpus(gpus, "GPU-BB33") == List{2});
  CHECK(visible_gpus(gpus, "NoDevFiles").empty());
  CHECK(visible_gpus({}, "0").empty());
}

TEST_CASE("GPUs are matched by UUID before PCI id", "[device][quick]") {
  const std::vector<NvmlGpu> gpus = {paper_gpu("GPU-aa", "0000:3B"), paper_gpu("GPU-bb", "0000:3C")};
  CHECK(find_gpu(gpus, "GPU-bb", "0000:3B")->uuid == "GPU-bb");
  CHECK(find_gpu(gpus, "MIG-1", "0000:3c")->uuid == "GPU-bb");
  CHECK_FALSE(find_gpu(gpus, "GPU-cc", "0000:3D"));
  CHECK_FALSE(find_gpu({paper_gpu("", "")}, "", ""));
}
