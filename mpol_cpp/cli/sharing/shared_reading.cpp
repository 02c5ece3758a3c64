#include <mpol_cpp/cli/sharing/shared_reading.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

/// A slow disk reads so many bytes a second.
constexpr double slowest_reading = 1e7;

/// Bytes of all files of the data, as far as they can be asked: reading says what is wrong with them.
double bytes_of_files(const DataOptions& data) {
  auto paths = more_files(data);
  paths.push_back(data.data);
  double bytes = 0;
  std::error_code error;
  const auto add = [&](const std::filesystem::path& file) {
    const auto size = std::filesystem::file_size(file, error);
    if (!error) bytes += static_cast<double>(size);
  };
  for (const auto& path : paths) {
    if (!std::filesystem::is_directory(path, error)) {
      add(path);
      continue;
    }
    for (std::filesystem::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code gone;
      if (entry->is_regular_file(gone)) add(entry->path());
    }
  }
  return bytes;
}

}  // namespace

SharedReading::SharedReading(const ImageOptions& options) : usual_timeout_(ranks()->timeout()) {
  const bool shares_folds = !options.regularizers.searched.empty() && options.shard != Shard::none;
  if (ranks()->is_alone() || options.dry_run || shares_folds || options.data.origins) return;
  size_ = arrays_size(options.data);
  way_ = size_ ? Way::own : Way::sent;
  const double seconds = (size_ ? size_->bytes : bytes_of_files(options.data)) / slowest_reading;
  ranks()->set_timeout(usual_timeout_ + Communicator::Milliseconds(static_cast<std::int64_t>(1e3 * seconds)));
}

ChosenGrid SharedReading::grid(ImageOptions& options) const {
  auto& data = options.data;
  data.memory_for_samples = memory_for_samples(options);
  if (!is_of_shares()) return choose_grid(data);
  if (ranks()->is_first()) {
    auto grid = choose_grid(data);
    const auto& [east, north] = grid.center;
    numbers_of_first<4>({grid.coords.cell_size(), static_cast<double>(grid.coords.npix()), east, north});
    return grid;
  }
  const auto [cell_size, npix, east, north] = numbers_of_first<4>({});
  return chosen_elsewhere(data, GridCoords(cell_size, static_cast<std::int64_t>(npix)), {east, north});
}

void SharedReading::tell_size(const std::optional<Visibilities>& visibilities) {
  if (way_ != Way::sent) return;
  std::array<double, 3> numbers{};
  if (ranks()->is_first()) {
    const auto bytes = memory_of_samples(*visibilities) + disk_of_samples(*visibilities);
    numbers = {static_cast<double>(visibilities->nchan()), static_cast<double>(visibilities->nvis()), bytes};
  }
  numbers = numbers_of_first(numbers);
  size_ = {static_cast<std::int64_t>(numbers[0]), static_cast<std::int64_t>(numbers[1]), numbers[2]};
}

void SharedReading::send(const Visibilities& visibilities,
                         const std::function<std::optional<VisibilityShare>(std::int64_t rank)>& share_of_rank) const {
  for (std::int64_t other = 1; way_ == Way::sent && other < ranks()->size(); ++other) {
    if (const auto share = share_of_rank(other)) send_visibilities(visibilities, *share, other, *ranks());
  }
}

Visibilities SharedReading::get(const ImageOptions& options, const ChosenGrid& grid, const VisibilityShare& share) const {
  if (way_ == Way::sent) {  // checked by the first
    return receive_visibilities(0, *ranks(), [&](double bytes) {
      const auto channels = share.channels.empty() ? size_->nchan : std::ssize(share.channels);
      return room_for_samples(bytes, channels, options.data.memory_for_samples);
    });
  }
  auto own = grid.read_share(options.data, share);
  check_grid_holds(own, options.data, grid.coords);
  check_representable(own.data(), own.weights(), options.data.dtype);
  return own;
}

void SharedReading::end_patience(Communicator* part) const {
  if (!is_of_shares()) return;
  ranks()->set_timeout(usual_timeout_);
  if (part != nullptr) part->set_timeout(usual_timeout_);
}

}  // namespace mpol::cli
