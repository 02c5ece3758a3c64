#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/memory_estimate.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

// The settings of the command line as the objects of the library.

/// The model on the CPU: grid, channels, start, mask, smoothing.
/// @param data   what `--start auto` and `--start dirty` are made from, and whose phase centre images of files are compared with
/// @param place  of its channels in the cubes that files hold
GriddedNet make_model(const ImageOptions& options, const FitData& data, const PlaceInCube& place = {});

/// What HISTORY says of files that such a model was made from and whose pixels are not the run's.
std::vector<std::string> regridding_words(const ImageOptions& options, const SkyTarget& target);

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
Tensor image_frequencies(const DataOutline& data, std::int64_t image_channels);

}  // namespace mpol::cli
