#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/types.h>

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::losses::detail {

/// The images that a likelihood is made ready for.
struct SkyKind {
  torch::Device device = torch::kCPU;
  torch::Dtype dtype = torch::kFloat32;

  static SkyKind of(const Tensor& sky) { return {sky.device(), sky.scalar_type()}; }
  bool operator==(const SkyKind&) const = default;
};

/// The likelihood of some samples, ready for images of a kind: points sorted, data where the images are.
struct StagedLikelihood {
  std::shared_ptr<Likelihood> likelihood;
  std::optional<c10::Event> ready;  // of a GPU: when what was copied there is there
  /// Keeps what was made in another stream until this one has used it too.
  std::function<void(c10::Stream stream)> keep_for;
};

/// Makes it, on any thread; on a GPU through pinned memory and on a stream beside the one that steps are taken in.
StagedLikelihood stage_likelihood(const GridCoords& coords, Visibilities samples, const ChannelMap& channels,
                                  const NoiseModel& noise, const NufftOptions& options, const SkyKind& kind);

/// From now on it is used by the stream of the calling thread.
void take_over(const StagedLikelihood& staged, torch::Device device);

}  // namespace mpol::losses::detail
