#include <mpol_cpp/likelihoods/staged_likelihood.h>

#include <utility>

#include <mpol_cpp/device/device_iterator.h>
#include <mpol_cpp/device/streams.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>

namespace mpol::losses::detail {

StagedLikelihood stage_likelihood(const GridCoords& coords, Visibilities samples, const ChannelMap& channels,
                                  const NoiseModel& noise, const NufftOptions& options, const SkyKind& kind) {
  const torch::NoGradGuard no_grad;
  const mpol::detail::BatchStager stager(kind.device);
  stager.stage(samples);  // before what is made of them, in the same stream
  StagedLikelihood staged;
  staged.ready = stager.put_aside([&] {
    const auto make = [&](auto likelihood) {
      likelihood->to(kind.device);
      likelihood->prepare(kind.dtype);
      staged.likelihood = likelihood.ptr();
      staged.keep_for = [held = likelihood.ptr()](c10::Stream stream) { held->keep_for(stream); };
    };
    if (noise.kind == NoiseModel::Kind::gaussian) make(LooseLikelihood(coords, samples, channels, options));
    else make(NoiseLikelihood(coords, samples, channels, noise, options));
  });
  return staged;
}

void take_over(const StagedLikelihood& staged, torch::Device device) {
  if (!staged.ready) return;
  const auto stream = mpol::detail::current_stream(device);
  staged.ready->block(stream);
  staged.keep_for(stream);
}

}  // namespace mpol::losses::detail
