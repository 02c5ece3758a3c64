#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include <torch/arg.h>

#include <mpol_cpp/datasets/data_residency.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

namespace losses::detail {
class ChunkSize;
struct SkyKind;
struct StagedLikelihood;
}  // namespace losses::detail

/// Options of a ChunkedLikelihood.
struct ChunkedLikelihoodOptions {
  ChunkedLikelihoodOptions() = default;
  TORCH_ARG(NoiseModel, noise) = NoiseModel::gaussian();  ///< of the visibilities
  /// Samples of a channel that are worked on at once; 0: as many as the budget has room for, at the first evaluation.
  TORCH_ARG(std::int64_t, chunk) = 0;
  /// Bytes for chunks where images are; 0: half of the memory that is free there at the first evaluation.
  TORCH_ARG(double, memory_budget) = 0;
  /// Where the visibilities are kept from the beginning. Where the chunk is chosen by the budget and not all of them fit into it,
  /// device becomes host.
  TORCH_ARG(DataResidency, residency) = DataResidency::device;
  /// Folder of the files of DataResidency::disk; empty: one with room for them, as folder_for_arrays() finds it.
  TORCH_ARG(std::filesystem::path, folder) = {};
  TORCH_ARG(NufftOptions, transform) = {};  ///< of the nonuniform transforms
};

/// -2 ln L of all loose visibilities, chunk by chunk: the sums of LooseLikelihood and NoiseLikelihood, to rounding, with the
/// memory of as many samples at a time as a budget holds.
///
/// Where the visibilities are decides speed and memory, and no bit of the result: it may be changed between two evaluations
/// (set_residency, also in a callback of a Trainer).
///
///   device  everything that evaluations need of them is kept where images are: as fast as one piece
///   host    only the samples are kept, in the machine's memory; points are sorted and copied to a GPU when their turn comes,
///           by a thread of its own, while the chunk before is worked on. Two chunks are there at a time
///   disk    the same of files, for more samples than memory holds
///
/// When memory does not suffice after all (c10::OutOfMemoryError), the chunk is halved for good, nothing more is kept on the
/// device, and one warning says so. Sums of other chunks round otherwise: a checkpoint knows the chunk (working_state).
class ChunkedLikelihoodImpl : public Module<ChunkedLikelihoodImpl>, public Likelihood {
 public:
  /// @throws ValueError for a channel that is not there, a chunk or budget < 0; DataError when baselines do not fit the grid;
  ///         FileError where there is no room on disk
  ChunkedLikelihoodImpl(const GridCoords& coords, Visibilities visibilities, ChannelMap channels,
                        ChunkedLikelihoodOptions options = {});
  void reset() override;

  /// Differentiable once; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  /// @throws DeviceError when not even a few samples fit into memory
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return is_quadratic() && typeid(*this) == typeid(ChunkedLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  /// The samples where they are in memory, and what is kept of them on the device.
  std::int64_t memory_bytes() const override;
  bool is_quadratic() const override { return options_.noise().kind == NoiseModel::Kind::gaussian; }
  /// `chunk`: samples of a chunk, () int64, once it is chosen.
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  std::string name() const override;
  std::string obstacle_to_recording() const override {
    return "goes through its visibilities in chunks, which may come from the host";
  }

  /// Samples of a channel in a chunk; 0 before the first evaluation has chosen it.
  std::int64_t chunk() const;
  /// Where the visibilities are now.
  DataResidency residency() const { return residency_; }
  /// Brings them elsewhere, between two evaluations: gives back the device's memory, or the host's too. Values and gradients stay
  /// the same bit for bit. @throws FileError where there is no room on disk
  void set_residency(DataResidency residency);

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;  // of samples
  using Staged = losses::detail::StagedLikelihood;
  using SkyKind = losses::detail::SkyKind;
  using Use = std::function<void(Likelihood& part)>;
  using Evaluate = std::function<Tensor(Likelihood& part, const Tensor& image, Tensor& slope)>;

  /// What is kept on the device, of images of one kind; a copy of the module makes its own.
  struct Kept {
    Kept() = default;
    Kept(const Kept&) {}
    Kept& operator=(const Kept& other) {
      if (&other != this) parts.clear();
      return *this;
    }
    std::map<Range, std::shared_ptr<const Staged>> parts;
    std::shared_ptr<const SkyKind> kind;
  };

  Tensor sum_of_parts(const Tensor& sky, Tensor& gradient, Accumulate accumulate, const Evaluate& evaluate);
  void choose_chunk(const Tensor& sky);
  double bytes_per_sample(const Tensor& sky) const;
  Range range_from(std::int64_t begin) const;
  Staged stage(Range range, const SkyKind& kind) const;
  void for_each_part(const SkyKind& kind, const Use& use);
  void use_kept_parts(const SkyKind& kind, std::int64_t& begin, const Use& use);
  void use_streamed_parts(const SkyKind& kind, std::int64_t& begin, const Use& use) const;

  Visibilities visibilities_;
  ChannelMap channels_;
  ChunkedLikelihoodOptions options_;
  DataResidency residency_;
  std::shared_ptr<losses::detail::ChunkSize> chunk_;
  std::int64_t samples_ = 0;
  double normalizer_ = 0;
  Kept kept_;
};

TORCH_MODULE(ChunkedLikelihood);

}  // namespace mpol
