#include <mpol_cpp/ops/gpu/first_use.h>

#include <map>
#include <mutex>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::ops {

bool trusted_on(torch::Device device, const std::string& kernels, const std::function<bool(torch::Device)>& agrees) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, bool> known;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace({device.str(), kernels}, false);
  if (!is_new) return place->second;
  place->second = agrees(device);
  if (!place->second) {
    log_warning(fmt::format("on {} the kernels of {} differ from LibTorch's operations, which are used instead: please report it",
                            device.str(), kernels));
  }
  return place->second;
}

}  // namespace mpol::ops
