#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/first_look.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/cli/run/device_choice.h>
#include <mpol_cpp/cli/run/device_team.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/cli/sharing/shared_reading.h>
#include <mpol_cpp/cli/sharing/channel_groups.h>
#include <mpol_cpp/cli/sharing/channel_part.h>
#include <mpol_cpp/cli/sharing/sharding.h>
#include <mpol_cpp/likelihoods/shared/ranked_likelihood.h>
#include <mpol_cpp/likelihoods/shared/slab_likelihood.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/train/memory_estimate.h>

namespace mpol::cli {

/// What a run of `mpol image` fits: its grid and device, the samples, their cells and the likelihood made of them, and which
/// ranks or devices hold which share. In this order: read_and_share, average_and_make_likelihood.
class RunData {
 public:
  /// Chooses grid and device. @param summary  gets the seconds of reading and gridding, and the scatter
  RunData(ImageOptions& options, ImageSummary& summary);

  /// @throws mpol::Error where a fit of so many channels needs more than there is, or --memory-limit allows
  void check_memory_for(FitChannels channels);
  /// Whether errors that nobody asked for have room in memory beside the fit, that of its device too; if so, the estimate has
  /// them from now on.
  bool make_room_for_usual_errors();
  /// For a fit that ran out of memory though the estimate said that it would not.
  Error out_of_memory() const;

  /// Reads all samples.
  void read();
  /// The same, by the first of several ranks, which decides what they or the devices share, and tells them and people.
  /// @param before  how many channels the run to resume has at a time, 0: all; nothing without one
  /// @param decided  called as soon as it is known who reads what
  void read_and_share(Agreement& sharing, std::optional<std::int64_t> before, const std::function<void()>& decided);
  /// Waits for what the first rank decides, and gets this one's share. @return whether there is anything to do for it
  /// @param decided  called as soon as it is known who reads what
  bool get_share(const std::function<void()>& decided);
  /// Whether ranks share the folds of a cross-validation.
  bool shares_folds() const;
  /// From here on ranks wait for each other no longer than usual: see SharedReading.
  void end_patience() const { reading_.end_patience(part_.has_work() ? part_.ranks().get() : nullptr); }
  /// Averages the samples in cells, where this rank needs them, and makes the likelihood of what it fits, unless there are
  /// several groups of channels.
  void average_and_make_likelihood();
  /// Groups of channels that are fitted one after another, with hold_group(): one of all, whose likelihood is there, or several.
  const ChannelGroups& groups() const { return groups_; }
  /// Makes the likelihoods of a group of several, in the place of those of the group before.
  void hold_group(const Share& group);
  /// Whether each step of the first rank asks the others for their rows or samples.
  bool is_served_by_ranks() const { return sharding_.shard == Shard::rows || shares_samples(); }
  void serve() const;    ///< what the first rank asks for, until it releases this one
  void release_ranks();  ///< lets those go that serve the first, or wait to help it

  /// The part of the fit that this rank makes by itself.
  PartToFit own_part() const;
  /// All data; of ranks that have read no more than their channels, these.
  FitData fit_data() const;
  /// Whether all ranks, the first too, have read no more than their channels, and so look at the data together.
  bool looks_at_own_channels() const { return reads_own_channels_; }
  /// What the data say before a fit: on the first rank, or where each has all of them. Sums over ranks where these look together.
  FirstLook first_look() const;
  /// What weights of regularizers are measured by. @param weights  the sum over all data
  NoiseUnit noise(double weights) const { return noise_unit(coords_, weights, nchan_of_image(), size_.normalizer); }
  /// Dirty images and all that goes with them, of ranks that fit channels and are all here with the model of their own: on the
  /// first, and where it looks at no parts of the data apart. @param sky  of own_part(), (nchan, npix, npix)
  std::optional<DirtyProducts> products_of_ranks(const Tensor& sky) const;
  /// Whether the other ranks, which share samples of the exact likelihood, wait for the end of the first one's fit, to make
  /// these images with it.
  bool shares_products() const;
  /// By the first: the same of these ranks, at most once; nothing where it looks at parts of the data apart, which it does alone.
  /// @param sky  (nchan, npix, npix)
  std::optional<DirtyProducts> products_with_others(const Tensor& sky);
  /// By the others: their part of it, or nothing, as the first says, whenever that is.
  void help_with_products();
  /// The fitted dirty beam of each channel of a cube, none where that of one is no ellipse; on all ranks, which must all be here
  /// where they share channels.
  std::vector<Beam> beams_of_channels() const;
  /// chi^2 of the loose visibilities and a sky (nchan, npix, npix), Jy/arcsec^2, whatever the likelihood of the fit is.
  double chi_squared_of_visibilities(const Tensor& sky) const;

  const ChosenGrid& chosen_grid() const { return grid_; }
  const GridCoords& coords() const { return coords_; }
  /// The image of the run.
  SkyTarget target() const { return {coords_, nchan_of_image(), outline_->observation}; }
  /// Whether pixels may be negative, where nobody said so and they may; once the samples are read.
  const std::optional<Choice>& chosen_sign() const { return chosen_sign_; }
  const ChosenDevice& chosen_device() const { return chosen_; }
  torch::Device device() const { return device_; }  ///< that does what one does alone
  Visibilities& visibilities() { return *visibilities_; }
  const Visibilities& visibilities() const { return *visibilities_; }
  const DataOutline& outline() const { return *outline_; }  ///< of all data, on the first rank
  const UvSummary& uv() const { return uv_; }               ///< the same of their baselines
  const std::shared_ptr<Likelihood>& likelihood() const { return likelihood_; }
  const FitSize& size() const { return size_; }
  const Sharding& sharding() const { return sharding_; }
  const ChannelPart& channel_part() const { return part_; }
  DeviceTeam* team() { return team_ ? &*team_ : nullptr; }  ///< null where one device makes the run
  const MemoryEstimate& estimate() const { return estimate_; }
  bool weights_are_doubted() const { return weights_are_doubted_; }  ///< in words, before the fit

 private:
  FitChannels held_channels(std::int64_t at_once) const;  // in one memory, of a group
  MemoryEstimate estimate_for(FitChannels channels) const;
  double room() const;  // for the fit and its samples, bytes
  void choose_groups(std::optional<std::int64_t> before);
  void tell_groups() const;
  bool shares_samples() const;  // whether ranks go through samples of their own in each step
  std::int64_t nchan_of_image() const { return options_.mode == ImageMode::continuum ? 1 : nchan_of_data(); }
  std::int64_t nchan_of_data() const { return reading_.size() ? reading_.size()->nchan : visibilities_->nchan(); }
  std::int64_t nvis_of_data() const { return reading_.size() ? reading_.size()->samples : visibilities_->nvis(); }
  void decide_shares(Agreement& sharing, std::optional<std::int64_t> before);
  void hold_own_channels();
  void know_all_by_channels();
  /// What --sign auto comes to.
  void choose_sign();
  void take_own_samples();
  std::optional<VisibilityShare> share_of_rank(std::int64_t rank) const;
  void take_share(const VisibilityShare& share);
  Visibilities channels(const Share& wanted) const;
  std::shared_ptr<RankedLikelihoodImpl> likelihood_of_ranks() const;
  std::optional<ProductFrame> ask_for_products(const std::optional<ProductFrame>& frame);
  std::optional<DirtyProducts> products_in(const ProductFrame& frame, Tensor sky) const;
  void average();
  void make_likelihood_of_fit();
  FitSize size_of_fit() const;
  FitSize size_of_data() const;
  FitSize summed(const FitSize& own) const;
  void check_scatter();

  ImageOptions& options_;
  ImageSummary& summary_;
  SharedReading reading_;
  ChosenGrid grid_;
  GridCoords coords_;
  ChosenDevice chosen_;
  std::optional<Choice> chosen_sign_;
  torch::Device device_ = chosen_.device;
  MemoryEstimate estimate_;
  std::optional<double> free_;  // when the estimate was made, bytes
  std::int64_t nchan_ = 1;      // that it is for
  ChannelGroups groups_;

  std::optional<Visibilities> visibilities_;
  std::optional<DataOutline> outline_;
  UvSummary uv_;
  bool reads_own_channels_ = false;
  std::optional<Visibilities> own_samples_;  // of this rank, where they share them
  std::vector<std::int64_t> held_channels_;  // of the data, in visibilities_; empty: all
  ChannelMap channels_;
  GriddedDataset dataset_{nullptr};
  Sharding sharding_;                                        // of the ranks
  ChannelPart part_;                                         // this rank's channels, where they share them
  std::int64_t first_held_ = 0;                              // of the group of channels that is held
  std::optional<DeviceTeam> team_;                           // of several devices of this process
  std::shared_ptr<SlabOperator> slabs_;                      // this rank's rows, where they share them
  std::shared_ptr<SlabLikelihoodImpl> slab_likelihood_;      // of the first rank with all of them
  std::shared_ptr<RankedLikelihoodImpl> ranked_likelihood_;  // where ranks share the samples in each step
  std::shared_ptr<Likelihood> likelihood_;                   // of what this rank fits; empty where it fits nothing
  FitSize size_;
  bool weights_are_doubted_ = false;
  bool others_wait_ = false;  // to help with products
};

}  // namespace mpol::cli
