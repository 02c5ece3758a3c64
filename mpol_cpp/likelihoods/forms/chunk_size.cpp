#include <mpol_cpp/likelihoods/forms/chunk_size.h>

#include <algorithm>
#include <new>

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/device/load.h>

namespace mpol::losses::detail {
namespace {

constexpr std::int64_t least_chunk = 256;  // samples; that so few do not fit has another reason

double free_bytes(torch::Device device) {
  constexpr double unknown = 0x1p30;
  if (device.is_cpu()) return available_memory().value_or(unknown);
  return static_cast<double>(memory_info(device).free_bytes);
}

}  // namespace

ChunkSize::ChunkSize(std::int64_t nvis, std::int64_t given, double budget)
    : nvis_(nvis), samples_(std::min(given, nvis)), budget_(budget) {
  if (given < 0) throw ValueError(fmt::format("chunk is {}; it must be >= 0 samples", given));
  if (!(budget >= 0)) throw ValueError(fmt::format("memory_budget is {}; it must be >= 0 bytes", budget));
}

bool ChunkSize::choose(torch::Device device, const Needs& needs) {
  if (samples_ > 0) return false;
  const double budget = budget_ > 0 ? budget_ : free_bytes(device) / 2;
  if (needs.whole <= budget) {
    samples_ = nvis_;
    return false;
  }
  samples_ = std::clamp(static_cast<std::int64_t>(budget / needs.per_sample), std::min(nvis_, least_chunk), nvis_);
  log_warning(fmt::format("the visibilities need {} on {} and {} may be taken: steps see all of them, {} at a time",
                          memory_words(needs.whole), device.str(), memory_words(budget), samples_));
  return true;
}

NamedTensors ChunkSize::state() const {
  if (samples_ == 0) return {};
  return {{"chunk", at::scalar_tensor(samples_, torch::kInt64)}};
}

void ChunkSize::load(const NamedTensors& state) {
  if (state.empty()) return;  // of before the first evaluation
  const auto saved = state.find("chunk");
  if (saved == state.end() || state.size() != 1 || saved->second.numel() != 1) {
    throw FileError("the state of a likelihood in chunks is the size of a chunk, alone");
  }
  const auto samples = saved->second.item<std::int64_t>();
  if (samples < 1)
    throw FileError(fmt::format("the state of a likelihood in chunks has a chunk of {}; it must be >= 1", samples));
  samples_ = std::min(samples, nvis_);
}

void ChunkSize::try_out(torch::Device device, const std::function<void()>& work, const std::function<void()>& give_back) {
  for (;;) {
    try {
      return work();
    } catch (const c10::OutOfMemoryError&) {
      give_back();
    } catch (const std::bad_alloc&) {
      give_back();
    }
    halve(device);
  }
}

void ChunkSize::halve(torch::Device device) {
  if (samples_ < 2 * least_chunk) {
    throw DeviceError(fmt::format(
        "device {} is out of memory: not even {} visibilities at a time fit beside the rest of the fit, with {} free; "
        "use a smaller image or fewer channels, or another device",
        device.str(), samples_, memory_words(free_bytes(device))));
  }
  const auto before = samples_;
  samples_ = (samples_ + 1) / 2;
  if (!has_halved_) {
    log_warning(fmt::format("device {} is out of memory with {} visibilities at a time: from now on there are at most {}",
                            device.str(), before, samples_));
  }
  has_halved_ = true;
}

}  // namespace mpol::losses::detail
