#include <mpol_cpp/io/visibilities_npz.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>

namespace mpol::io {
namespace {

using Shape = std::vector<std::int64_t>;

/// Reads the arrays of one file, all of them consistent with the shape of its data.
class VisibilityFile {
 public:
  VisibilityFile(const std::filesystem::path& path, const ReadOptions& options) : reader_(path), options_(options) {
    interleaved_ = reader_.contains("data") || !(reader_.contains("data_re") || reader_.contains("data_im"));
    const auto shape = samples_shape(interleaved_ ? "data" : "data_re");
    if (!interleaved_) check_same_shape("data_im", shape);
    nchan_ = shape.size() == 2 ? shape[0] : 1;
    nvis_ = shape.back();
    if (nvis_ == 0 || nchan_ == 0) {
      throw DataError(
          fmt::format("{}: shape {} holds no visibilities; at least one is needed", path.string(), shape_text(shape)));
    }
    for (const char* key : {"uu", "vv", "weight"}) check_goes_with_data(key, shape);
    select_channels();
  }

  Visibilities read() const {
    const auto unit = uv_unit();
    const auto frequencies = selected_frequencies();
    warn_of_low(frequencies);
    auto baselines = read_baselines(unit, frequencies);
    const bool in_metres = baselines.frequencies().defined();
    Visibilities visibilities(std::move(baselines), read_data(), read_weights());
    if (frequencies.defined() && !in_metres) visibilities.set_frequencies(frequencies);
    visibilities.set_observation(read_observation());
    return visibilities;
  }

  UvUnit uv_unit() const {
    if (options_.uv_unit) return *options_.uv_unit;
    if (!reader_.contains("uv_unit")) return UvUnit::lambda;
    try {
      return uv_unit_from_name(reader_.read_text("uv_unit"));
    } catch (const ValueError& error) {
      throw DataError(fmt::format("{}: {}", reader_.where("uv_unit"), error.what()));
    }
  }

 private:
  static void warn_of_low(const Tensor& frequencies) {
    constexpr double lowest = 1e6;  // Hz; the ionosphere lets nothing below through
    if (!frequencies.defined()) return;
    const double smallest = frequencies.min().item<double>();
    if (smallest >= lowest) return;
    log_warning(fmt::format("a frequency is {} Hz, below 1 MHz: is it in GHz? Frequencies are in Hz", smallest));
  }

  Shape samples_shape(const std::string& key) const {
    const auto header = reader_.header(key);
    if (header.is_text() || header.kind == 'b') {
      throw DataError(
          fmt::format("{} has dtype '{}'; numbers are needed: convert it with numpy.astype", reader_.where(key), header.descr));
    }
    if (key != "data" && header.kind == 'c') {
      throw DataError(fmt::format("{} is complex ('{}'); real numbers are needed", reader_.where(key), header.descr));
    }
    if (key == "data" && header.kind != 'c') {
      throw DataError(fmt::format("{} is real ('{}'); complex visibilities are needed, or real data_re and data_im",
                                  reader_.where(key), header.descr));
    }
    if (header.shape.empty() || header.shape.size() > 2) {
      throw ShapeError(
          fmt::format("{} has shape {}; (nvis) or (nchan, nvis) is needed", reader_.where(key), shape_text(header.shape)));
    }
    return header.shape;
  }

  void check_same_shape(const std::string& key, const Shape& data) const {
    const auto shape = samples_shape(key);
    if (shape == data) return;
    throw ShapeError(fmt::format("{} has shape {}, but the data have {}; they must be the same", reader_.where(key),
                                 shape_text(shape), shape_text(data)));
  }

  void check_goes_with_data(const std::string& key, const Shape& data) const {
    const auto shape = samples_shape(key);
    if (shape == data || shape == Shape{data.back()}) return;
    throw ShapeError(fmt::format("{} has shape {}, but the data have {}; {} or {} is needed", reader_.where(key),
                                 shape_text(shape), shape_text(data), shape_text(data), shape_text({data.back()})));
  }

  void select_channels() {
    for (const auto channel : options_.channels) {
      if (channel < 0 || channel >= nchan_) {
        throw ValueError(
            fmt::format("{}: channel {} is not there; the channels are 0 to {}", reader_.path().string(), channel, nchan_ - 1));
      }
    }
    channels_ = options_.channels;
    auto sorted = channels_;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
      throw ValueError(fmt::format("channel {} is selected twice; name each channel once", *twice));
    }
    if (channels_.empty()) {
      channels_.resize(static_cast<std::size_t>(nchan_));
      std::iota(channels_.begin(), channels_.end(), 0);
    }
  }

  std::int64_t selected() const { return static_cast<std::int64_t>(channels_.size()); }

  /// Reads the selected channels of a (nchan, nvis) array, or a whole (nvis) one, into a view.
  void read_samples(const std::string& key, const Tensor& destination) const {
    const auto dimensions = reader_.header(key).shape.size();
    if (dimensions == 2 && !options_.channels.empty()) return reader_.read_rows_into(key, channels_, destination);
    reader_.read_into(key, dimensions == 1 && destination.dim() == 2 ? destination.select(0, 0) : destination);
  }

  torch::ScalarType real_dtype(const std::string& key) const {
    return reader_.header(key).dtype() == torch::kFloat32 ? torch::kFloat32 : torch::kFloat64;
  }

  Tensor allocate(const Shape& shape, torch::ScalarType dtype) const {
    try {
      return at::empty(shape, dtype);
    } catch (const std::exception&) {
      throw FileError(fmt::format("{}: {} {} values are more than this machine's memory takes; select fewer channels",
                                  reader_.path().string(), shape_text(shape), c10::toString(dtype)));
    }
  }

  Tensor read_data() const {
    auto data = read_data_as_written();
    if (options_.conjugate) at::view_as_real(data).select(-1, 1).neg_();
    return data;
  }

  Tensor read_data_as_written() const {
    if (interleaved_) {
      auto data = allocate({selected(), nvis_}, reader_.header("data").dtype());
      read_samples("data", data);
      return data;
    }
    const bool single = real_dtype("data_re") == torch::kFloat32 && real_dtype("data_im") == torch::kFloat32;
    auto data = allocate({selected(), nvis_}, single ? torch::kComplexFloat : torch::kComplexDouble);
    const auto parts = at::view_as_real(data);
    read_samples("data_re", parts.select(-1, 0));
    read_samples("data_im", parts.select(-1, 1));
    return data;
  }

  Tensor read_weights() const {
    auto weights = allocate({selected(), nvis_}, real_dtype("weight"));
    read_samples("weight", weights);
    const bool one_for_all = reader_.header("weight").shape.size() == 1;
    for (std::int64_t row = 1; one_for_all && row < selected(); ++row) weights.select(0, row).copy_(weights.select(0, 0));
    return weights;
  }

  /// u or v: (nvis), or (selected channels, nvis).
  Tensor read_coordinate(const std::string& key) const {
    const bool per_channel = reader_.header(key).shape.size() == 2;
    auto coordinate = allocate(per_channel ? Shape{selected(), nvis_} : Shape{nvis_}, real_dtype(key));
    read_samples(key, coordinate);
    return coordinate;
  }

  Baselines read_baselines(UvUnit unit, const Tensor& frequencies) const {
    if (unit == UvUnit::metres && !frequencies.defined()) {
      throw DataError(
          fmt::format("{}: u and v are in metres, but there is no frequency; add the key `frequency` or give it (--frequency HZ)",
                      reader_.path().string()));
    }
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

  /// (selected channels) Hz, or undefined.
  Tensor selected_frequencies() const {
    Tensor all;
    if (!options_.frequencies.empty()) {
      all = at::tensor(options_.frequencies, torch::kFloat64);
      if (all.size(0) == selected()) return all;
    } else if (const auto* key = frequency_key()) {
      check_frequencies(reader_.header(key).count());  // a size that does not fit is not worth its memory
      all = reader_.read(key).to(torch::kFloat64).reshape({-1});
    } else {
      return {};
    }
    if (all.size(0) == 1) return all.expand({selected()}).contiguous();
    check_frequencies(all.size(0));
    return all.index_select(0, at::tensor(channels_, torch::kInt64));
  }

  void check_frequencies(std::int64_t count) const {
    if (count == 1 || count == nchan_) return;
    throw ShapeError(
        fmt::format("{}: {} frequencies for {} channel(s); one, or one per channel is needed: correct the key `frequency` "
                    "or --frequency",
                    reader_.path().string(), count, nchan_));
  }

  /// `frequency`, else `frequencies`, as MPoL's own files have it, else none.
  const char* frequency_key() const {
    for (const auto* key : {"frequency", "frequencies"}) {
      if (reader_.contains(key)) return key;
    }
    return nullptr;
  }

  std::optional<double> number(const std::string& key) const {
    if (!reader_.contains(key)) return std::nullopt;
    const auto header = reader_.header(key);
    if (header.count() != 1 || header.kind == 'c') {
      throw ShapeError(fmt::format("{} has shape {}; one real number is needed", reader_.where(key), shape_text(header.shape)));
    }
    const auto value = reader_.read(key);
    const auto read = value.item<double>();
    if (!std::isfinite(read))
      throw DataError(fmt::format("{} is {}; it must be finite: correct or leave it out", reader_.where(key), read));
    return read;
  }

  std::string text(const std::string& key) const { return reader_.contains(key) ? reader_.read_text(key) : std::string(); }

  Observation read_observation() const {
    Observation observation;
    observation.right_ascension = number("right_ascension");
    observation.declination = number("declination");
    observation.object = text("object");
    observation.telescope = text("telescope");
    observation.date = text("date");
    observation.rest_frequency = number("rest_frequency");
    observation.spectral_reference = text("spectral_reference");
    return observation;
  }

  NpzReader reader_;
  ReadOptions options_;
  bool interleaved_ = true;
  std::int64_t nchan_ = 0, nvis_ = 0;  // of the file
  std::vector<std::int64_t> channels_;
};

}  // namespace

Visibilities read_npz(const std::filesystem::path& path, const ReadOptions& options) {
  const VisibilityFile file(path, options);
  try {
    return file.read();
  } catch (const DataError& error) {
    const std::string what = error.what();
    throw DataError(what.starts_with(path.string()) ? what : fmt::format("{}: {}", path.string(), what));
  }
}

UvUnit uv_unit_of(const std::filesystem::path& path, const ReadOptions& options) {
  return VisibilityFile(path, options).uv_unit();
}

void write_npz(const std::filesystem::path& path, const Visibilities& visibilities, Compression compression,
               const std::map<std::string, Tensor>& more) {
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
  writer.write(path, compression);
}

}  // namespace mpol::io
