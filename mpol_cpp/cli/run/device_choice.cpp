#include <mpol_cpp/cli/run/device_choice.h>

#include <optional>
#include <utility>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/device_list.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/select.h>

namespace mpol::cli {
namespace {

/// The GPU that is this rank's where several ranks want one; nothing where that is no question.
std::optional<torch::Device> device_of_rank(const DeviceRequest& request) {
  const bool any_gpu = request.kind() == DeviceRequest::Kind::accelerator && request.index() <= 0;
  if (ranks()->is_alone() || !(any_gpu || request.kind() == DeviceRequest::Kind::automatic)) return std::nullopt;
  const auto devices = cuda_device_count();
  const auto local = place_of_rank().local_rank;
  if (devices == 0) return std::nullopt;
  if (local >= devices) {
    throw DeviceError(error_text("ranks of a node", fmt::format("rank {} is number {} of its node", ranks()->rank(), local + 1),
                                 fmt::format("the node has {} GPUs", devices),
                                 "start one rank for each GPU, or add --device cpu"));
  }
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local));
}

ChosenDevice asked_for(const std::vector<torch::Device>& all) { return {all.front(), "asked for", all, true}; }

/// Those of a list, or all; how many "all" came to is said, as nobody asked for a number.
ChosenDevice choose_devices(const std::string& text) {
  if (!ranks()->is_alone()) {
    throw UsageError(error_text("--device", text, fmt::format("each of {} ranks takes one device", ranks()->size()),
                                "leave it out, or start one process that takes them all"));
  }
  auto all = select_devices(text);
  if (text != "all") return asked_for(all);
  auto reason = all.front().is_cpu() ? "all: no GPU: " + no_gpu_reason()
                : all.size() == 1    ? "all: there is one GPU with memory free"
                                     : "all with memory free";
  return {all.front(), std::move(reason), std::move(all)};
}

}  // namespace

std::string ChosenDevice::names() const { return device_names(all); }

ChosenDevice choose_device(const std::string& text) {
  if (names_several_devices(text)) return choose_devices(text);
  const auto request = DeviceRequest::parse(text);
  if (const auto own = device_of_rank(request)) return {*own, fmt::format("rank {} of its node", place_of_rank().local_rank)};
  if (request.kind() != DeviceRequest::Kind::automatic) return asked_for({select_device(request, Fallback::error)});
  const auto no_gpu = no_gpu_reason();
  if (!no_gpu.empty()) return {torch::kCPU, "no GPU: " + no_gpu};
  return {select_device(request, Fallback::error), "the first GPU with memory free"};
}

ChosenDevice choose_one_device(const std::string& text) {
  if (names_several_devices(text)) {
    throw UsageError(
        error_text("--device", text, "names several devices, and this verb computes on one", "name one, such as cuda:0"));
  }
  return choose_device(text);
}

}  // namespace mpol::cli
