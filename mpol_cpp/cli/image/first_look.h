#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <mpol_cpp/analysis/dirty_products.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/visibilities/data_outline.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol::cli {

/// The weights of all samples, Jy^-2.
struct WeightSummary {
  double sum = 0, least = 0, largest = 0;
};

/// What data say before anything is fitted to them.
struct FirstLook {
  DirtyPeaks peaks;                    ///< of the channel with the most signal
  std::vector<ChannelSignal> signals;  ///< of each channel, where they are looked at apart
  WeightSummary weights;
};

/// How data are looked at.
struct Looking {
  bool either_sign;   ///< sources may be negative
  bool at_channels;   ///< at each of them
  double normalizer;  ///< of the fit
};

/// Looks at all data.
FirstLook look_at(const FitData& data, const Looking& how);
/// The same of channels that the ranks have, one after the other in their order; on the first, which must have some.
/// @param own  data of this rank's channels; null where it has none
FirstLook look_at(const FitData* own, const Looking& how, Communicator& ranks);

/// What is known of the channels of all ranks, and of their baselines; on the first, which must have some, and nothing on the
/// others.
/// @param own  this rank's; null where it has none
std::optional<std::pair<DataOutline, UvSummary>> outline_of_ranks(const Visibilities* own, Communicator& ranks);

/// The scatter in the cells of all ranks, on all. @param own  of this rank; its tensors undefined where it has none
Scatter scatter_of_ranks(const CellStatistics& own, Communicator& ranks);

}  // namespace mpol::cli
