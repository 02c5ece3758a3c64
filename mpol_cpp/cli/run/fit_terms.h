#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/first_look.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/distributed/device_group.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/term.h>

namespace mpol::cli {

/// What the regularizers of a fit are weighed by, and where it is told.
struct TermWeighing {
  const ImageOptions& options;
  FitData data;  ///< those that a search, a bound or a guess needs
  GridCoords coords;
  NoiseUnit noise;
  FitSize size;
  std::shared_ptr<Likelihood> likelihood;  ///< of the fit
  torch::Device device;                    ///< of a cross-validation's fits
  std::filesystem::path state;             ///< the folder in which a cross-validation is kept
  std::shared_ptr<Communicator> ranks;     ///< that share its folds; empty: this one alone
  DeviceGroup* devices;                    ///< the same of devices of this process
  RunRecord& record;
  ImageSummary& summary;  ///< knows what a first look has shown; gets lambdas, scan and the scan's seconds
};

/// The regularizers that were given a weight, in units of noise or as a number, those whose weight is to be guessed, and those
/// that cross-validation weighs: not the last ones when that was interrupted, which summary.scan tells. Says what each came to.
std::vector<Term> weigh_terms(const TermWeighing& with);

/// The terms that the first rank has weighed, on all. @param weighed  looked at on the first alone
std::vector<Term> terms_of_first(const ImageOptions& options, std::vector<Term> weighed);

/// Whether weights that nobody gave are to follow what a convex fit of Gaussian noise shows of noise and source: one of
/// visibilities, as what averages of cells leave is also what they lose.
bool weights_follow_fit(const ImageOptions& options);
/// Whether each channel of a cube has the weights, of those that nobody gave, which suit it: in a convex fit in which none joins
/// channels.
bool weighs_channels(const ImageOptions& options, std::int64_t nchan);
/// How data are looked at before they are fitted. @param normalizer  of the fit
Looking looking(const ImageOptions& options, std::int64_t nchan, double normalizer);
/// The same terms for what a first fit has shown: weights that nobody gave are set anew.
/// @param signal_to_noise  peak_signal_to_noise(), by the weights of the data
/// @param signals          of each channel, where they have weights of their own
std::vector<Term> terms_for_traits(std::vector<Term> terms, const ImageOptions& options, double signal_to_noise,
                                   const std::vector<ChannelSignal>& signals, const FitTraits& traits);
/// What the first rank knows of the signal in each channel, on all. @param known  looked at on the first alone
std::vector<ChannelSignal> signals_of_first(const std::vector<ChannelSignal>& known);
/// A term of a cube in which some channels have the weights of another one.
Term with_channels_of(const Term& term, const Term& other, const Share& channels);
/// Tells of the weights that were set anew, in the place of those before.
void note_terms_anew(const std::vector<Term>& terms, const TermWeighing& with);

/// What a dry run says of weights in units of noise, and of those that are yet to be searched.
std::vector<Choice> lambda_choices(const ImageOptions& options, const FirstLook& look, const NoiseUnit& noise,
                                   const GridCoords& coords);

}  // namespace mpol::cli
