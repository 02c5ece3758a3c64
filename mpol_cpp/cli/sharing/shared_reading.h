#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/visibilities/sent_visibilities.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// How the samples of a run come to its ranks. The first reads all of the data and says on which grid they are imaged; of the
/// others each reads its share of one file of arrays, gets it from the first where the data are anything else, or reads all as
/// well where it needs all: for the folds of a cross-validation, and for the gains of blocks.
///
/// Whoever gets no more than a share waits for the first `--rank-timeout` and as much longer as a slow disk takes for all of the
/// data, until end_patience().
class SharedReading {
 public:
  explicit SharedReading(const ImageOptions& options);

  bool is_of_shares() const { return way_ != Way::all; }  ///< each rank but the first holds no more than it fits
  bool is_from_file() const { return way_ == Way::own; }  ///< which it reads by itself

  /// Whether each rank may read no more than its channels, the first too: nothing that the options ask for looks at all of the
  /// data in one place.
  bool may_be_apart() const { return may_be_apart_; }

  /// The grid that the options ask for, or the first rank has found, where ranks may be apart by what each sees in its channels.
  ChosenGrid grid(ImageOptions& options) const;

  /// What all of the data take, where they come in shares: known of a file before it is read, else once the first has told it.
  const std::optional<DataSize>& size() const { return size_; }
  /// The first rank says what it has read, unless a file says it to all. @param visibilities  looked at on the first alone
  void tell_size(const std::optional<Visibilities>& visibilities);

  /// The first rank sends every other its share, unless they read theirs. @param share_of_rank  nothing for ranks without any
  void send(const Visibilities& visibilities,
            const std::function<std::optional<VisibilityShare>(std::int64_t rank)>& share_of_rank) const;
  /// A rank's share, read by itself, maybe on the way to the grid, or received.
  Visibilities get(const ImageOptions& options, ChosenGrid& grid, const VisibilityShare& share) const;

  /// Waits no longer than usual from here on. @param part  the ranks that take part, where they are not all
  void end_patience(Communicator* part) const;

 private:
  enum class Way { all, own, sent };

  std::optional<Visibilities> read_channels(const ImageOptions& options) const;
  ChosenGrid choose_with_others(ImageOptions& options) const;
  std::optional<Visibilities> look_with_first(const ImageOptions& options) const;

  Communicator::Milliseconds usual_timeout_;
  Way way_ = Way::all;
  std::optional<DataSize> size_;
  bool may_be_apart_ = false;
};

}  // namespace mpol::cli
