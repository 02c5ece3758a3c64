#include <mpol_cpp/cli/memory.h>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/memory_estimate.h>

namespace mpol::cli {
namespace {

OptimizerKind memory_optimizer(const std::string& name) {
  if (name == "lbfgs") return OptimizerKind::lbfgs;
  return name == "sgd" ? OptimizerKind::sgd : OptimizerKind::adam;
}

LikelihoodKind memory_likelihood(const std::string& name) {
  if (name == "exact") return LikelihoodKind::exact;
  return name == "loose" ? LikelihoodKind::loose : LikelihoodKind::gridded;
}

std::string fewer_words(std::int64_t nchan) {
  return nchan == 1 ? "choose a smaller --npix" : "choose a smaller --npix or fewer --channels";
}

std::string size_words(std::int64_t npix, std::int64_t nchan) {
  return nchan == 1 ? fmt::format("{}", npix) : fmt::format("{} with {} channels", npix, nchan);
}

}  // namespace

double fit_memory(const ImageOptions& options, std::int64_t npix, std::int64_t nchan, std::int64_t visibilities,
                  torch::Device device) {
  return estimate_memory(MemorySettings(npix, nchan)
                             .dtype(options.data.torch_dtype())
                             .optimizer(memory_optimizer(options.optimizer))
                             .likelihood(memory_likelihood(options.likelihood))
                             .kernels_in_memory(options.kernel_folder.empty())
                             .on_gpu(device.is_cuda())
                             .visibilities(visibilities))
      .total();
}

double dirty_memory(std::int64_t npix, std::int64_t nchan) { return estimate_dirty_memory(npix, nchan).total(); }

void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan) {
  if (!available || needed <= *available) return;
  throw Error(
      error_text("--npix", size_words(npix, nchan),
                 fmt::format("needs about {} of memory and {} are available", memory_words(needed), memory_words(*available)),
                 fewer_words(nchan)));
}

void check_memory_limit(double needed, double limit, std::int64_t npix, std::int64_t nchan) {
  if (needed <= limit) return;
  throw Error(error_text("--memory-limit", memory_words(limit),
                         fmt::format("--npix {} needs about {} of memory", size_words(npix, nchan), memory_words(needed)),
                         "raise the limit, or " + fewer_words(nchan)));
}

}  // namespace mpol::cli
