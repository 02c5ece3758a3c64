#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// The sizes that decide what memory a fit takes.
struct MemorySettings {
  /// Sizes of an image; all else begins with its default.
  MemorySettings(std::int64_t npix, std::int64_t nchan) : npix_(npix), nchan_(nchan) {}
  /// Pixels along each axis of the image.
  TORCH_ARG(std::int64_t, npix);
  /// Channels of the image.
  TORCH_ARG(std::int64_t, nchan);
  TORCH_ARG(std::int64_t, channels_of_cube) = 0;              ///< where the fit has some of its channels at a time; 0: nchan
  TORCH_ARG(std::int64_t, problems) = 1;                      ///< leading dimensions: folds, lambdas
  TORCH_ARG(torch::Dtype, dtype) = torch::kFloat32;           ///< of the model
  TORCH_ARG(OptimizerKind, optimizer) = OptimizerKind::adam;  ///< of the fit, whose state is counted
  TORCH_ARG(std::int64_t, more_duals) = 0;                    ///< of proximal maps, beside those of total variation
  TORCH_ARG(LikelihoodKind, likelihood) = GriddedLikelihoodImpl::kind();  ///< that the model is fitted by
  TORCH_ARG(bool, gaussian) = true;                                       ///< the noise of that likelihood
  TORCH_ARG(bool, kernels_in_memory) = true;                              ///< of the exact likelihood; else in files
  TORCH_ARG(bool, on_gpu) = false;                                        ///< where likelihoods work with other memory
  TORCH_ARG(std::int64_t, visibilities) = 0;              ///< behind the likelihood, over all channels, where they are known
  TORCH_ARG(std::int64_t, samples_at_once) = 0;           ///< that a loose or noise likelihood works on, in chunks; 0: all
  TORCH_ARG(double, data_bytes) = 0;                      ///< of the visibilities as they are held, where they are known
  TORCH_ARG(torch::Dtype, data_dtype) = torch::kFloat32;  ///< of their real and imaginary parts
  TORCH_ARG(std::int64_t, epochs) = 500;                  ///< that the fit may take
  TORCH_ARG(std::int64_t, columns) = 8;                   ///< of the loss history: total, nll, terms…
};

/// One entry of an estimate.
struct MemoryPart {
  std::string name;  ///< in words, as the log has it
  double bytes;      ///< at the peak
};

/// What a fit takes at its peak, bytes.
struct MemoryEstimate {
  std::vector<MemoryPart> parts;  ///< things that are there at the same time
  double total() const;           ///< sum of the parts, bytes
  /// "2.1 GiB (image and its gradient 1.9 GiB, program 160 MiB)", the largest part first.
  std::string words() const;
};

/// Peak memory of a fit and its results, from sizes alone: nothing is allocated. It is an upper bound for every kind of
/// step, and the dirty images of the results are in it.
/// @throws ValueError unless npix, nchan and problems are positive and the dtype is float32 or float64
MemoryEstimate estimate_memory(const MemorySettings& settings);

/// Peak memory of making dirty images and beams, bytes.
MemoryEstimate estimate_dirty_memory(std::int64_t npix, std::int64_t nchan);

}  // namespace mpol
