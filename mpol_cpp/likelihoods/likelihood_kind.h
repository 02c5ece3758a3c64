#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/fourier/kernel_storage.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The sizes that decide what memory a likelihood takes.
struct LikelihoodSizes {
  std::int64_t npix = 0;                      ///< pixels along each axis of the image
  std::int64_t nchan = 1;                     ///< channels of the images that are fitted
  std::int64_t channels_of_results = 1;       ///< channels of the image in the end, of which these may be a part
  std::int64_t problems = 1;                  ///< leading dimensions
  torch::Dtype dtype = torch::kFloat32;       ///< of the images
  bool on_gpu = false;                        ///< where likelihoods work with other memory
  bool kernels_in_memory = true;              ///< of a normal operator; else in files
  bool gaussian = true;                       ///< the noise
  std::int64_t visibilities = 0;              ///< over all channels, where they are known
  std::int64_t samples_at_once = 0;           ///< that an evaluation works on, in chunks; 0: all
  torch::Dtype data_dtype = torch::kFloat32;  ///< of the data's real and imaginary parts
};

/// What a likelihood takes, bytes.
struct LikelihoodMemory {
  double held = 0;        ///< during the fit
  double making = 0;      ///< at most while it is made
  double ending = 0;      ///< for chi^2 of the visibilities, or the residual at the samples, in the end
  double evaluating = 0;  ///< for an evaluation, a part of `held`
};

/// The data and settings that a likelihood is made of. What is referred to must outlive it.
struct LikelihoodSource {
  const Visibilities& visibilities;                      ///< the samples
  const ChannelMap& channels;                            ///< which data channels feed which image channel
  const GriddedDataset& dataset;                         ///< their cell averages, float64, and the grid
  torch::Dtype dtype;                                    ///< of the fit
  torch::Device device;                                  ///< on which it computes
  KernelStorage kernels = {};                            ///< of a normal operator
  NoiseModel noise = NoiseModel::gaussian();             ///< of the visibilities, of those that go through the samples
  std::optional<VisibilitySamplerOptions> batches = {};  ///< a part of the samples in each evaluation; of the same
  std::optional<ChunkedLikelihoodOptions> chunks = {};   ///< all of them, a chunk at a time; of the same

  const GridCoords& coords() const { return dataset->coords(); }  ///< the grid of the image
};

/// Facts about a likelihood by which library and program choose: its class and a line in all_likelihoods() are all that a new one
/// needs.
struct LikelihoodKind {
  std::string name;                   ///< a word of --likelihood
  std::string help;                   ///< of its option, behind "chi^2"
  bool of_cells = false;              ///< its terms are cell averages, not samples
  bool goes_through_samples = false;  ///< in each evaluation: in batches, in chunks, with other noise, shared by devices
  bool has_kernels = false;           ///< of a normal operator: in files, by rows, summed over ranks
  LikelihoodMemory (*memory)(const LikelihoodSizes& sizes);             ///< an upper bound
  std::shared_ptr<Likelihood> (*make)(const LikelihoodSource& source);  ///< on its device
};

/// All of them, in the order of the help; the first is the usual one.
const std::vector<LikelihoodKind>& all_likelihoods();
/// The one of a name. @throws ValueError that lists all where there is none
const LikelihoodKind& likelihood_kind(const std::string& name);

namespace detail {

/// Bytes of dirty images and residual of samples: fine grids of the images' transform and of the model's, and a block of samples
/// in both.
double residual_bytes(const LikelihoodSizes& sizes);
/// Bytes that predicting all samples takes, block by block: coordinates, points with the records they are sorted in or with model
/// and data; a transform in float64.
double prediction_bytes(const LikelihoodSizes& sizes);

}  // namespace detail
}  // namespace mpol
