#include <mpol_cpp/io/visibilities_npz.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/channel_values.h>
#include <mpol_cpp/io/visibility_arrays.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::io {
namespace {

using Shape = std::vector<std::int64_t>;

/// Reads the samples of one file.
class WholeArrays {
 public:
  WholeArrays(const VisibilityArrays& arrays, const ArrayRoom& room) : arrays_(arrays), reader_(arrays.reader()), room_(room) {}

  Visibilities read() const {
    const auto frequencies = arrays_.frequencies();
    auto baselines = read_baselines(arrays_.uv_unit(), frequencies);
    const bool in_metres = baselines.frequencies().defined();
    Visibilities visibilities(std::move(baselines), read_data(), read_weights());
    if (frequencies.defined() && !in_metres) visibilities.set_frequencies(frequencies);
    visibilities.set_observation(arrays_.observation());
    return visibilities;
  }

 private:
  std::int64_t selected() const { return static_cast<std::int64_t>(arrays_.channels().size()); }

  /// Reads the selected channels of a (nchan, nvis) array, or a whole (nvis) one, into a view.
  void read_samples(const std::string& key, const Tensor& destination) const {
    const bool by_channel = arrays_.by_channel(key);
    if (arrays_.options().samples) return read_part(key, destination);
    if (by_channel && !arrays_.options().channels.empty()) return reader_.read_rows_into(key, arrays_.channels(), destination);
    reader_.read_into(key, !by_channel && destination.dim() == 2 ? destination.select(0, 0) : destination);
  }

  /// The same of the samples that are wanted.
  void read_part(const std::string& key, const Tensor& destination) const {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    ChannelValues values(reader_, key, arrays_.nvis_of_file());
    const auto rows = destination.dim() == 2 ? destination : destination.unsqueeze(0);
    const auto read_row = [&](std::int64_t channel, const Tensor& row) {
      for (std::int64_t done = 0; done < row.size(0); done += most) {
        const auto count = std::min(most, row.size(0) - done);
        row.narrow(0, done, count).copy_(values.next(channel, arrays_.first_sample() + done, count));
      }
    };
    if (!arrays_.by_channel(key)) return read_row(0, rows.select(0, 0));
    for (std::int64_t row = 0; row < rows.size(0); ++row)
      read_row(arrays_.channels()[static_cast<std::size_t>(row)], rows.select(0, row));
  }

  Tensor allocate(const Shape& shape, torch::Dtype dtype) const {
    try {
      return room_.empty(shape, dtype);
    } catch (const FileError&) {
      throw;
    } catch (const std::exception&) {
      throw FileError(fmt::format("{}: {} {} values are more than this machine's memory takes; select fewer channels",
                                  reader_.path().string(), shape_text(shape), c10::toString(dtype)));
    }
  }

  Tensor read_data() const {
    auto data = read_data_as_written();
    if (arrays_.options().conjugate) at::view_as_real(data).select(-1, 1).neg_();
    return data;
  }

  Tensor read_data_as_written() const {
    auto data = allocate({selected(), arrays_.nvis()}, arrays_.data_dtype());
    if (arrays_.has_complex_data()) {
      read_samples("data", data);
      return data;
    }
    const auto parts = at::view_as_real(data);
    read_samples("data_re", parts.select(-1, 0));
    read_samples("data_im", parts.select(-1, 1));
    return data;
  }

  Tensor read_weights() const {
    auto weights = allocate({selected(), arrays_.nvis()}, arrays_.real_dtype("weight"));
    read_samples("weight", weights);
    const bool one_for_all = !arrays_.by_channel("weight");
    for (std::int64_t row = 1; one_for_all && row < selected(); ++row) weights.select(0, row).copy_(weights.select(0, 0));
    return weights;
  }

  /// u or v: (nvis), or (selected channels, nvis).
  Tensor read_coordinate(const std::string& key) const {
    auto coordinate =
        allocate(arrays_.by_channel(key) ? Shape{selected(), arrays_.nvis()} : Shape{arrays_.nvis()}, arrays_.real_dtype(key));
    read_samples(key, coordinate);
    return coordinate;
  }

  Baselines read_baselines(UvUnit unit, const Tensor& frequencies) const {
    auto u = read_coordinate("uu");
    auto v = read_coordinate("vv");
    if (u.dim() != v.dim()) {
      throw ShapeError(fmt::format("{}: uu has shape {} and vv {}; they must be the same", reader_.path().string(),
                                   shape_text(u.sizes().vec()), shape_text(v.sizes().vec())));
    }
    if (unit == UvUnit::metres && u.dim() == 1) return Baselines::in_metres(std::move(u), std::move(v), frequencies);
    for (auto* coordinate : {&u, &v}) {
      if (unit == UvUnit::klambda) coordinate->mul_(1000.0);
      if (unit != UvUnit::metres) continue;
      for (std::int64_t channel = 0; channel < selected(); ++channel) {
        coordinate->select(0, channel).mul_(units::metres_to_lambda(1, frequencies[channel].item<double>()));
      }
    }
    return Baselines::in_lambda(std::move(u), std::move(v));
  }

  const VisibilityArrays& arrays_;
  const NpzReader& reader_;
  const ArrayRoom& room_;
};

}  // namespace

Visibilities read_arrays(const VisibilityArrays& arrays, const ArrayRoom& room) {
  try {
    return WholeArrays(arrays, room).read();
  } catch (const DataError& error) {
    const std::string what = error.what(), path = arrays.reader().path().string();
    throw DataError(what.starts_with(path) ? what : fmt::format("{}: {}", path, what));
  }
}

Visibilities read_npz(const std::filesystem::path& path, const ReadOptions& options, const ArrayRoom& room) {
  return read_arrays(VisibilityArrays(path, options), room);
}

UvUnit uv_unit_of(const std::filesystem::path& path, const ReadOptions& options) {
  return VisibilityArrays(path, options).uv_unit();
}

void write_npz(const std::filesystem::path& path, const Visibilities& visibilities, Compression compression,
               const std::map<std::string, Tensor>& more) {
  if (const auto& center = visibilities.observation().center; center != SkyOffset()) {
    throw DataError(
        fmt::format("the phases of the visibilities are turned to {} of their phase centre, which an archive does not "
                    "say: turn them back with with_centre()",
                    offset_text(center)));
  }
  NpzWriter writer;
  const auto& baselines = visibilities.baselines();
  writer.add("uu", baselines.u());
  writer.add("vv", baselines.v());
  writer.add("weight", visibilities.weights());
  writer.add("data", visibilities.data());
  for (const auto& [key, array] : more) writer.add(key, array);
  if (visibilities.frequencies().defined()) writer.add("frequency", visibilities.frequencies());
  writer.add_text("uv_unit", std::string(name_of(baselines.frequencies().defined() ? UvUnit::metres : UvUnit::lambda)));
  const auto& observation = visibilities.observation();
  const auto add_number = [&](const char* key, const std::optional<double>& value) {
    if (value) writer.add(key, at::scalar_tensor(*value, torch::kFloat64));
  };
  const auto add_text = [&](const char* key, const std::string& value) {
    if (!value.empty()) writer.add_text(key, value);
  };
  add_number("right_ascension", observation.right_ascension);
  add_number("declination", observation.declination);
  add_text("object", observation.object);
  add_text("telescope", observation.telescope);
  add_text("date", observation.date);
  add_number("rest_frequency", observation.rest_frequency);
  add_text("spectral_reference", observation.spectral_reference);
  if (observation.stokes != Stokes::i) writer.add_text("stokes", to_string(observation.stokes));
  writer.write(path, compression);
}

}  // namespace mpol::io
