#include <mpol_cpp/cli/sharing/shared_reading.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/cli/image/first_look.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/cli/sharing/sharding.h>
#include <mpol_cpp/distributed/sum_visited.h>
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

/// Whether what the options ask for is a sum over channels, which ranks share.
bool sums_over_channels(const ImageOptions& options, const DataSize& size) {
  if (options.likelihood_kind().of_cells || !options.is_gaussian() || !options.guess_lambda.empty()) return false;
  if (options.data.set.averages() || size.in_parts || options.mode == ImageMode::continuum) return false;
  return choose_sharding(options, {.npix = 0, .nchan = size.nchan, .samples = size.samples}, ranks()->size()).shard ==
         Shard::channels;
}

/// What the first rank asks the others for while it chooses a grid: sums for the image of a wide field about a place, until there
/// are no pixels.
struct AskedLook {
  double cell_size = 0;
  std::int64_t npix = 0;
  SkyOffset center;

  /// That of the first rank, on all.
  AskedLook of_first() const {
    const auto [cells, pixels, east, north] =
        numbers_of_first<4>({cell_size, static_cast<double>(npix), center.east, center.north});
    return {cells, static_cast<std::int64_t>(pixels), {east, north}};
  }
};

/// The sums of all ranks. @param own  data about the place that is looked at; nothing where this rank has none
WideMap map_of_ranks(const GridCoords& coords, const std::optional<Visibilities>& own) {
  auto image = own ? wide_image(coords, *own) : WideImage(coords);
  sum_visited(*ranks(), [&image](const auto& visit) { image.visit_sums(visit); });
  return image.map();
}

/// The channels of all ranks, as the first sees them.
class ChannelsOfRanks final : public GridData {
 public:
  explicit ChannelsOfRanks(std::optional<Visibilities> own)
      : own_(std::move(own)), known_(outline_of_ranks(&own_.value(), *ranks()).value()) {}

  FieldView view() const override {
    return {known_.first, known_.second, [this](const GridCoords& coords) {
              AskedLook{coords.cell_size(), coords.npix(), center_}.of_first();
              return map_of_ranks(coords, own_);
            }};
  }
  void turn(const SkyOffset& center) override {
    center_ = center;
    own_ = turned(std::move(*own_), center);
  }
  std::optional<Visibilities> take() override { return std::move(own_); }

 private:
  std::optional<Visibilities> own_;
  std::pair<DataOutline, UvSummary> known_;
  SkyOffset center_;
};

}  // namespace

SharedReading::SharedReading(const ImageOptions& options) : usual_timeout_(ranks()->timeout()) {
  const bool shares_folds = !options.regularizers.searched.empty() && options.shard != Shard::none;
  if (ranks()->is_alone() || options.dry_run || shares_folds || options.data.origins) return;
  size_ = arrays_size(options.data);
  way_ = size_ ? Way::own : Way::sent;
  may_be_apart_ = size_ && sums_over_channels(options, *size_);
  const double seconds = (size_ ? size_->bytes : bytes_of_files(options.data)) / slowest_reading;
  ranks()->set_timeout(usual_timeout_ + Communicator::Milliseconds(static_cast<std::int64_t>(1e3 * seconds)));
}

ChosenGrid SharedReading::grid(ImageOptions& options) const {
  auto& data = options.data;
  data.memory_for_samples = memory_for_samples(options);
  if (!is_of_shares()) return choose_grid(data);
  if (ranks()->is_first()) {
    auto grid = may_be_apart_ ? choose_with_others(options) : choose_grid(data);
    const auto& [east, north] = grid.center;
    numbers_of_first<4>({grid.coords.cell_size(), static_cast<double>(grid.coords.npix()), east, north});
    return grid;
  }
  std::optional<Visibilities> own;
  if (may_be_apart_ && !is_given(data)) own = look_with_first(options);
  const auto [cell_size, npix, east, north] = numbers_of_first<4>({});
  auto grid = chosen_elsewhere(data, GridCoords(cell_size, static_cast<std::int64_t>(npix)), {east, north});
  if (own) grid.visibilities = own->observation().center == grid.center ? std::move(own) : turned(std::move(*own), grid.center);
  return grid;
}

/// This rank's channels of all; nothing where it has none.
std::optional<Visibilities> SharedReading::read_channels(const ImageOptions& options) const {
  const auto share = share_of(size_->nchan, ranks()->rank(), ranks()->size());
  if (share.is_empty()) return std::nullopt;
  std::vector<std::int64_t> channels(static_cast<std::size_t>(share.size()));
  std::iota(channels.begin(), channels.end(), share.begin);
  return read_share(options.data, {.channels = std::move(channels)});
}

/// By the first rank.
ChosenGrid SharedReading::choose_with_others(ImageOptions& options) const {
  if (is_given(options.data)) return choose_grid(options.data);
  auto grid = choose_grid(options.data, [&] { return std::make_unique<ChannelsOfRanks>(read_channels(options)); });
  AskedLook().of_first();
  return grid;
}

/// By the others: what the first asks for. @return this rank's channels, about the place that was looked at last
std::optional<Visibilities> SharedReading::look_with_first(const ImageOptions& options) const {
  auto own = read_channels(options);
  outline_of_ranks(own ? &*own : nullptr, *ranks());
  for (auto look = AskedLook().of_first(); look.npix > 0; look = AskedLook().of_first()) {
    if (own && own->observation().center != look.center) own = turned(std::move(*own), look.center);
    map_of_ranks(GridCoords(look.cell_size, look.npix), own);
  }
  return own;
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

Visibilities SharedReading::get(const ImageOptions& options, ChosenGrid& grid, const VisibilityShare& share) const {
  if (way_ == Way::sent) {  // checked by the first
    return receive_visibilities(0, *ranks(), [&](double bytes) {
      const auto channels = share.channels.empty() ? size_->nchan : std::ssize(share.channels);
      return room_for_samples(bytes, channels, options.data.memory_for_samples);
    });
  }
  auto own = grid.visibilities ? std::move(*grid.visibilities) : grid.read_share(options.data, share);
  grid.visibilities.reset();
  check_representable(own.data(), own.weights(), options.data.dtype);
  return own;
}

void SharedReading::end_patience(Communicator* part) const {
  if (!is_of_shares()) return;
  ranks()->set_timeout(usual_timeout_);
  if (part != nullptr) part->set_timeout(usual_timeout_);
}

}  // namespace mpol::cli
