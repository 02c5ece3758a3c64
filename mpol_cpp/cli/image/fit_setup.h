#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/memory_estimate.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

// The settings of the command line as the objects of the library.

/// The model on the CPU: grid, channels, start, mask, smoothing.
/// @param data  what `--start auto` and `--start dirty` are made from, and whose phase centre images of files are compared with
GriddedNet make_model(const ImageOptions& options, const FitData& data);

/// What HISTORY says of files that such a model was made from and whose pixels are not the run's.
std::vector<std::string> regridding_words(const ImageOptions& options, const FitData& data);

/// What a likelihood of the program is made of.
struct LikelihoodData {
  const ImageOptions& options;
  const Visibilities& visibilities;
  const ChannelMap& channels;
  const GriddedDataset& dataset;
  torch::Device device;
};

/// A word of --likelihood: all that the program knows of a kind of likelihood.
struct LikelihoodChoice {
  const char* name;
  FitLikelihood value;
  const char* help;       ///< what follows "chi^2"
  LikelihoodKind memory;  ///< as which it takes memory, with Gaussian noise
  std::shared_ptr<Likelihood> (*make)(const LikelihoodData& from);
};

/// All of them, in the order of the help.
const std::vector<LikelihoodChoice>& likelihood_choices();
/// Their words.
const std::vector<NamedChoice<FitLikelihood>>& likelihood_names();
/// The one of this kind. @throws ValueError where there is none
const LikelihoodChoice& likelihood_choice(FitLikelihood likelihood);
/// Its word.
std::string name_of(FitLikelihood likelihood);

/// The likelihood that --likelihood names, in the run's dtype and on its device.
/// @param channels  which data channels feed which image channel
/// @param dataset   float64, on the CPU: the cell averages, and the grid
std::shared_ptr<Likelihood> make_likelihood(const ImageOptions& options, const Visibilities& visibilities,
                                            const ChannelMap& channels, const GriddedDataset& dataset, torch::Device device);

/// The regularisers with a lambda above zero.
std::vector<Term> regularizer_terms(const RegularizerOptions& options);

/// The trainer's options.
/// @param state  the folder for the checkpoints
TrainOptions train_options(const ImageOptions& options, const RunRecord& record, const std::filesystem::path& state);

/// Frequencies of the image channels: the data's, or their mean for one image of several channels; undefined when
/// unknown. (nchan) float64, Hz.
Tensor image_frequencies(const Visibilities& visibilities, std::int64_t image_channels);

}  // namespace mpol::cli
