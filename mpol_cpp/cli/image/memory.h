#pragma once

#include <cstdint>
#include <optional>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/train/memory_estimate.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Channels that a fit has in memory.
struct FitChannels {
  std::int64_t at_once;  ///< in one memory
  std::int64_t all = 0;  ///< of the cube whose results they are a part of; 0: these
};

/// What of samples decides the memory of a fit.
struct SampleSizes {
  std::int64_t count;                    ///< of all channels
  double bytes;                          ///< that they take in memory
  torch::Dtype dtype = torch::kFloat32;  ///< of their real and imaginary parts

  static SampleSizes of(const Visibilities& visibilities);
};

/// Peak memory of a fit from its options and sizes alone; without those of samples where they are not known yet.
MemoryEstimate fit_memory(const ImageOptions& options, std::int64_t npix, FitChannels channels,
                          const std::optional<SampleSizes>& samples, torch::Device device);

/// What samples of the errors take beside the fit, in float32, and what their fits and maps do.
/// @param is_usual  nobody asked for them, so that there are fewer maps
MemoryPart memory_of_errors(std::int64_t samples, std::int64_t npix, FitChannels channels, bool is_usual);

/// What a fit with these options, which must stay where they are, leaves of the memory that is available, or allowed, to samples.
SampleMemory memory_for_samples(const ImageOptions& options);

/// What --batch-size auto may take for chunks of visibilities beside the rest of the fit, bytes: half of what is free on the
/// device, or of what --memory-limit leaves there.
double memory_for_chunks(const ImageOptions& options, const GriddedDataset& dataset, const Visibilities& visibilities,
                         torch::Device device);

/// Peak memory of making dirty images, bytes, from their sizes alone.
double dirty_memory(std::int64_t npix, std::int64_t nchan);

/// @throws mpol::Error naming both numbers when `needed` bytes cannot be had
void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan);

/// The same against what --memory-limit allows, bytes.
void check_memory_limit(double needed, double limit, std::int64_t npix, std::int64_t nchan);

/// For a fit that ran out of memory though the estimate said that it would not: what was estimated, what was free when it
/// began, what to change.
Error out_of_memory(const MemoryEstimate& estimate, std::optional<double> free, const ImageOptions& options, std::int64_t npix,
                    std::int64_t nchan);

}  // namespace mpol::cli
