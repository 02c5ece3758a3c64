#include <mpol_cpp/device/chunks.h>

#include <algorithm>

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/device/load.h>

namespace mpol {
namespace {

std::string estimate_words(const ChunkOptions& options, std::int64_t items) {
  if (options.bytes_per_item() <= 0) return {};
  return fmt::format(", estimated at {},", memory_words(options.bytes_per_item() * static_cast<double>(items)));
}

[[noreturn]] void refuse_chunk(const ChunkOptions& options, std::int64_t items) {
  const auto free = static_cast<double>(memory_info(options.device()).free_bytes);
  throw DeviceError(
      fmt::format("device {} is out of memory: {} {} at once{} do not fit, nor did twice as many; {} are free; use a smaller "
                  "chunk, a smaller "
                  "image or fewer channels, or another device",
                  options.device().str(), items, options.items(), estimate_words(options, items), memory_words(free)));
}

}  // namespace

std::int64_t chunk_within(double budget_bytes, double bytes_per_item) {
  if (!(bytes_per_item > 0)) throw ValueError(fmt::format("bytes_per_item is {}; it must be > 0", bytes_per_item));
  if (!(budget_bytes >= bytes_per_item)) {
    throw ValueError(fmt::format("a memory budget of {} holds not even one item of {}: raise it", memory_words(budget_bytes),
                                 memory_words(bytes_per_item)));
  }
  constexpr double most = 1e18;
  return static_cast<std::int64_t>(std::min(most, budget_bytes / bytes_per_item));
}

void for_each_chunk(std::int64_t count, const ChunkOptions& options,
                    const std::function<void(std::int64_t, std::int64_t)>& function) {
  if (options.chunk() < 1) throw ValueError(fmt::format("chunk is {}; it must be at least 1", options.chunk()));
  std::int64_t chunk = options.chunk();
  bool halved = false;
  for (std::int64_t begin = 0; begin < count;) {
    const auto end = std::min(count, begin + chunk);
    try {
      function(begin, end);
      begin = end;
    } catch (const c10::OutOfMemoryError&) {
      if (halved || end - begin < 2) refuse_chunk(options, end - begin);
      chunk = (end - begin + 1) / 2;
      halved = true;
    }
  }
}

Tensor value_and_gradient_in_chunks(const Tensor& x, Tensor& gradient, std::int64_t count, const ChunkOptions& options,
                                    const std::function<Tensor(const Tensor&, std::int64_t, std::int64_t)>& part) {
  const auto leaf = x.detach().set_requires_grad(true);
  auto sum = at::zeros({}, x.options().dtype(torch::kFloat64));
  auto total = at::zeros_like(leaf.detach());
  for_each_chunk(count, options, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoGradMode with_gradient(true);
    const auto value = part(leaf, begin, end);
    const auto derivative = torch::autograd::grad({value}, {leaf})[0];
    const at::NoGradGuard no_gradient;
    total += derivative;  // nothing is added before everything of the chunk is known
    sum += value.detach();
  });
  gradient = total;
  return sum;
}

}  // namespace mpol
