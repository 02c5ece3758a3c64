#include <mpol_cpp/cli/sharing/sharding.h>

#include <algorithm>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/device_list.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::cli {
namespace {

/// Why ranks cannot share the samples, once or in each step; empty where they can.
std::string obstacle_to_visibilities(const ImageOptions& options) {
  if (options.likelihood_kind().has_kernels) return {};
  if (!options.likelihood_kind().goes_through_samples)
    return fmt::format("the {} likelihood is one of cells, not of samples", options.likelihood);
  const auto optimizer = choose_optimizer(options).kind;
  if (optimizer == OptimizerKind::lbfgs || optimizer == OptimizerKind::admm)
    return fmt::format("{} needs the whole likelihood on one rank", to_string(optimizer));
  if (options.batch_size) return "--batch-size draws from all samples";
  if (!options.regularizers.searched.empty()) return "a search of weights makes likelihoods of its own, of whole folds";
  if (options.chi2_bound) return "--chi2-bound needs the whole likelihood on one rank";
  if (!options.structures.empty()) return "--test-structure needs the whole fit on one rank";
  return {};
}

double bytes_of_image(const ImageOptions& options, const ImageSize& size) {
  return static_cast<double>(size.npix * size.npix * size.nchan) * static_cast<double>(c10::elementSize(options.data.dtype));
}

/// Why it does not pay to share the samples in each step, unless that is asked for; empty where it does.
std::string loss_by_visibilities(const ImageOptions& options, const ImageSize& size, std::int64_t ranks,
                                 const std::optional<SharedStep>& step) {
  if (!options.likelihood_kind().goes_through_samples) return {};
  if (!step) {
    if (size.samples >= size.npix * size.npix) return {};
    return fmt::format("to exchange {} pixels in each step takes longer than to go through {} samples of a channel",
                       size.npix * size.npix, size.samples);
  }
  constexpr double ms = 1e3;
  const double alone = step->samples * step->seconds_of_sample;
  const double saved = alone * (1 - 1 / static_cast<double>(ranks));
  const double exchange = step->exchange.seconds_of_both(bytes_of_image(options, size));
  if (exchange < saved) return {};
  return fmt::format(
      "to exchange {} pixels in each step takes {:.2g} ms, at {} a second, longer than the {:.2g} ms that it saves to share "
      "{:.0f} samples",
      size.npix * size.npix * size.nchan, ms * exchange, memory_words(step->exchange.bytes_per_second), ms * saved,
      step->samples);
}

/// Why ranks cannot hold rows of the exact likelihood; empty where they can.
std::string obstacle_to_rows(const ImageOptions& options) {
  if (!options.likelihood_kind().has_kernels)
    return fmt::format("the {} likelihood has no transforms of the image that rows are shared of", options.likelihood);
  if (!options.regularizers.searched.empty()) return "a search of weights makes likelihoods of its own, of whole images";
  const auto optimizer = choose_optimizer(options).kind;
  if (optimizer == OptimizerKind::lbfgs || optimizer == OptimizerKind::admm)
    return fmt::format("{} needs the whole likelihood on one rank", to_string(optimizer));
  if (options.chi2_bound) return "--chi2-bound needs the whole likelihood on one rank";
  if (!options.structures.empty()) return "--test-structure needs the whole fit on one rank";
  if (!options.kernel_folder.empty()) return "--kernel-folder is for kernels of whole images";
  if (options.data.device != "cpu") return fmt::format("ranks exchange rows on the CPU, not on {}", options.data.device);
  return {};
}

/// Why devices of one process cannot share the samples in each step; empty where they can.
std::string obstacle_to_samples_of_devices(const ImageOptions& options) {
  if (!options.likelihood_kind().goes_through_samples)
    return fmt::format("a step of the {} likelihood does not go through the samples", options.likelihood);
  if (options.batch_size || options.in_chunks) return "--batch-size takes a part of the samples at a time";
  return {};
}

/// Why it does not pay to share channels, unless that is asked for; empty where it does.
std::string loss_by_channels(const ImageOptions& options) {
  const auto term = joining_term(options);
  if (term.empty()) return {};
  const auto devices = select_devices(options.data.device);
  if (!std::all_of(devices.begin(), devices.end(), [](torch::Device device) { return device.is_cpu(); }))
    return fmt::format("{} joins channels, for which {} has kernels only where all are", term, options.data.device);
  if (is_proximal(choose_optimizer(options).kind)) return {};
  return fmt::format("{} joins channels, and {} would exchange them in steps by LibTorch's autograd", term,
                     to_string(choose_optimizer(options).kind));
}

std::string reason_for_channels(const ImageOptions& options) {
  const auto term = joining_term(options);
  return term.empty() ? "no term joins channels" : fmt::format("{} looks at those of the neighbors", term);
}

UsageError refusal(const ImageOptions& options, const std::string& why, const char* remedy) {
  return UsageError(error_text("--shard", choice_name(options.shard, shard_choices), why, remedy));
}

}  // namespace

double seconds_of_sample(torch::Device device, torch::Dtype dtype, std::int64_t threads) {
  const bool narrow = dtype == torch::kFloat32;
  constexpr double on_gpu = 4e-10, on_gpu_wide = 1e-9, of_thread = 8e-9, of_thread_wide = 4e-8;
  if (device.is_cuda()) return narrow ? on_gpu : on_gpu_wide;
  return (narrow ? of_thread : of_thread_wide) / static_cast<double>(threads);
}

bool weighs_exchange(const ImageOptions& options) {
  return !options.shard && options.likelihood_kind().goes_through_samples && obstacle_to_visibilities(options).empty();
}

std::string joining_term(const ImageOptions& options) {
  for (const auto kind : all_regularizers()) {
    if (regularizer_of(kind).joins_channels && in_fit(options, kind)) return option_of(kind);
  }
  return {};
}

std::string obstacle_to_channels(const ImageOptions& options, std::int64_t nchan) {
  if (nchan < 2) return "the image has one channel";
  const auto optimizer = choose_optimizer(options).kind;
  if (optimizer == OptimizerKind::lbfgs || optimizer == OptimizerKind::admm)
    return fmt::format("{} takes all channels together", to_string(optimizer));
  if (options.batch_size) return "--batch-size draws samples of all channels together";
  if (options.chi2_bound) return "--chi2-bound is for all channels together";
  if (options.keep_samples) return "--keep-samples needs the whole fit in one place";
  if (const auto term = joining_term(options); asks_for_samples(options) && !term.empty())
    return fmt::format("--samples needs all channels in one place, as {} joins them", term);
  if (!options.structures.empty()) return "--test-structure needs the whole fit in one place";
  if (options.diagnostics_interval) return "--diagnostics-interval shows the whole cube";
  if (options.tensorboard) return "--tensorboard tells the flux of the whole cube";
  return {};
}

Sharding choose_sharding(const ImageOptions& options, const ImageSize& size, std::int64_t ranks,
                         const std::optional<SharedStep>& step) {
  if (ranks == 1 || options.shard == Shard::none) return {Shard::none, "asked for"};
  auto channels = obstacle_to_channels(options, size.nchan);
  auto visibilities = obstacle_to_visibilities(options);
  if (options.shard == Shard::channels) {
    if (!channels.empty()) throw refusal(options, channels, "take --shard visibilities or none");
    return {Shard::channels, "asked for"};
  }
  if (options.shard == Shard::visibilities) {
    if (!visibilities.empty())
      throw refusal(options, visibilities, "take --likelihood exact or leave that out, or take --shard none");
    return {Shard::visibilities, "asked for"};
  }
  if (options.shard == Shard::rows) {
    if (const auto rows = obstacle_to_rows(options); !rows.empty())
      throw refusal(options, rows, "leave that out, or take another --shard");
    return {Shard::rows, "asked for"};
  }
  if (channels.empty()) channels = loss_by_channels(options);
  if (channels.empty()) return {Shard::channels, reason_for_channels(options)};
  if (visibilities.empty()) visibilities = loss_by_visibilities(options, size, ranks, step);
  if (visibilities.empty()) return {Shard::visibilities, channels};
  return {Shard::none, fmt::format("{}, and {}", channels, visibilities)};
}

Sharding choose_sharding_of_devices(const ImageOptions& options, std::int64_t nchan) {
  if (options.shard == Shard::none) return {Shard::none, "asked for"};
  if (options.shard == Shard::rows)
    throw refusal(options, "processes share rows, started by mpirun, srun or torchrun, not devices of one", "leave it out");
  auto channels = obstacle_to_channels(options, nchan);
  const auto samples = obstacle_to_samples_of_devices(options);
  if (options.shard == Shard::channels) {
    if (!channels.empty()) throw refusal(options, channels, "leave it out");
    return {Shard::channels, "asked for"};
  }
  if (options.shard == Shard::visibilities) {
    if (!samples.empty()) throw refusal(options, samples, "leave it out");
    return {Shard::visibilities, "asked for"};
  }
  if (channels.empty()) channels = loss_by_channels(options);
  if (channels.empty()) return {Shard::channels, reason_for_channels(options)};
  if (samples.empty()) return {Shard::visibilities, channels};
  return {Shard::none, fmt::format("{}, and {}", channels, samples)};
}

std::string plan_words(const Sharding& sharding, const ImageOptions& options, const ImageSize& size, std::int64_t ranks) {
  const auto [npix, nchan, samples] = size;
  const auto pixels = static_cast<double>(npix * npix), channels = static_cast<double>(nchan);
  const double image = bytes_of_image(options, size);
  const auto range = [&](std::int64_t count) {
    const auto most = share_of(count, 0, ranks).size(), fewest = share_of(count, ranks - 1, ranks).size();
    return most == fewest ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most);
  };
  switch (sharding.shard) {
    case Shard::none:
      return fmt::format("{} ranks: the first does all ({})", ranks, sharding.reason);
    case Shard::visibilities: {
      if (options.likelihood_kind().goes_through_samples) {
        return fmt::format(
            "{} ranks share visibilities ({}): {} of {} samples a channel each, an image of {} sent to all and a gradient summed "
            "in a step; the first holds the image and makes the fit",
            ranks, sharding.reason, range(samples), samples, memory_words(image));
      }
      const double kernels = channels * (2.0 * static_cast<double>(npix * (npix + 1)) * 8 + pixels * 12 + 8);
      return fmt::format(
          "{} ranks share visibilities ({}): {} of {} samples a channel each, {} summed over ranks once; the first makes "
          "the fit",
          ranks, sharding.reason, range(samples), samples, memory_words(kernels));
    }
    case Shard::rows: {
      const double slab = channels * pixels * 24 / static_cast<double>(ranks);
      const double of_step = channels * pixels * (16 + 2 * 16) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
      return fmt::format(
          "{} ranks share rows ({}): {} of {} each with {} of kernels and dirty vector, {} exchanged in a step; the first holds "
          "the image and makes the fit",
          ranks, sharding.reason, range(npix), npix, memory_words(slab), memory_words(of_step));
    }
    case Shard::channels: {
      const bool joins = !joining_term(options).empty();
      return fmt::format("{} ranks share channels ({}): {} of {} each, {} an epoch; {} of image gathered once", ranks,
                         sharding.reason, range(nchan), nchan,
                         joins ? "their first and last ones exchanged several times" : "some dozens of numbers",
                         memory_words(image));
    }
  }
  return {};
}

}  // namespace mpol::cli
