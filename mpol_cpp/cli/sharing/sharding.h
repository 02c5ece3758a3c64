#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/distributed/exchange_speed.h>

namespace mpol::cli {

/// A choice and why, in words.
struct Sharding {
  Shard shard = Shard::none;
  std::string reason;
};

/// What an image and its data are as large as.
struct ImageSize {
  std::int64_t npix, nchan;
  std::int64_t samples;  ///< visibilities of a channel
};

/// What it costs to share samples in each step, and what it saves.
struct SharedStep {
  ExchangeSpeed exchange;        ///< of ranks, measured
  double samples = 0;            ///< of all channels
  double seconds_of_sample = 0;  ///< that a rank takes to go through one: seconds_of_sample()
};

/// Seconds in which a rank goes through a sample of the loose likelihood and back, as docs/performance.md has them, to one digit.
/// @param threads  of the rank, where it has no GPU
double seconds_of_sample(torch::Device device, torch::Dtype dtype, std::int64_t threads);

/// Whether choose_sharding() goes by what an exchange takes.
bool weighs_exchange(const ImageOptions& options);

/// The option of a regularizer in the fit that looks at several channels at once; empty where there is none.
std::string joining_term(const ImageOptions& options);

/// Why ranks cannot share the channels of a cube, which are not fitted one after another either; empty where they can.
/// @param nchan  of the image
std::string obstacle_to_channels(const ImageOptions& options, std::int64_t nchan);

/// What --shard asks for, or the first of channels and visibilities that nothing speaks against. Rows are taken where they are
/// asked for: where one rank has room they only cost messages. Samples of the loose likelihood are taken by themselves where a
/// step takes less time so, or, where that is not known, there are at least as many as pixels.
/// @param ranks  how many there are
/// @param step   of samples that are shared, where it is known
/// @throws UsageError where what is asked for does not go with the other options
Sharding choose_sharding(const ImageOptions& options, const ImageSize& size, std::int64_t ranks,
                         const std::optional<SharedStep>& step = std::nullopt);

/// What devices of this process share: the channels of a cube where its fit allows it, else the samples of the loose likelihood
/// in each step, else no more than the folds of a cross-validation.
/// @param nchan  of the image
/// @throws UsageError where --shard asks for what they do not share
Sharding choose_sharding_of_devices(const ImageOptions& options, std::int64_t nchan);

/// One line for people: who holds what, and what is sent.
std::string plan_words(const Sharding& sharding, const ImageOptions& options, const ImageSize& size, std::int64_t ranks);

}  // namespace mpol::cli
