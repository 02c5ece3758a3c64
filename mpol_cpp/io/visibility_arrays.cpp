#include <mpol_cpp/io/visibility_arrays.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::io {
namespace {

void warn_of_low(const Tensor& frequencies) {
  constexpr double lowest = 1e6;  // Hz; the ionosphere lets nothing below through
  if (!frequencies.defined()) return;
  const double smallest = frequencies.min().item<double>();
  if (smallest >= lowest) return;
  log_warning(fmt::format("a frequency is {} Hz, below 1 MHz: is it in GHz? Frequencies are in Hz", smallest));
}

}  // namespace

VisibilityArrays::VisibilityArrays(const std::filesystem::path& path, ReadOptions options)
    : reader_(path, options.checksums), options_(std::move(options)) {
  interleaved_ = reader_.contains("data") || !(reader_.contains("data_re") || reader_.contains("data_im"));
  const auto shape = samples_shape(interleaved_ ? "data" : "data_re");
  if (!interleaved_) check_same_shape("data_im", shape);
  nchan_ = shape.size() == 2 ? shape[0] : 1;
  nvis_ = shape.back();
  if (nvis_ == 0 || nchan_ == 0) {
    throw DataError(fmt::format("{}: shape {} holds no visibilities; at least one is needed", path.string(), shape_text(shape)));
  }
  for (const char* key : {"uu", "vv", "weight"}) check_goes_with_data(key, shape);
  select_channels();
  select_samples();
}

UvUnit VisibilityArrays::uv_unit() const {
  if (options_.uv_unit) return *options_.uv_unit;
  if (!reader_.contains("uv_unit")) return UvUnit::lambda;
  try {
    return uv_unit_from_name(reader_.read_text("uv_unit"));
  } catch (const ValueError& error) {
    throw DataError(fmt::format("{}: {}", reader_.where("uv_unit"), error.what()));
  }
}

VisibilityArrays::Shape VisibilityArrays::samples_shape(const std::string& key) const {
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

void VisibilityArrays::check_same_shape(const std::string& key, const Shape& data) const {
  const auto shape = samples_shape(key);
  if (shape == data) return;
  throw ShapeError(fmt::format("{} has shape {}, but the data have {}; they must be the same", reader_.where(key),
                               shape_text(shape), shape_text(data)));
}

void VisibilityArrays::check_goes_with_data(const std::string& key, const Shape& data) const {
  const auto shape = samples_shape(key);
  if (shape == data || shape == Shape{data.back()}) return;
  throw ShapeError(fmt::format("{} has shape {}, but the data have {}; {} or {} is needed", reader_.where(key), shape_text(shape),
                               shape_text(data), shape_text(data), shape_text({data.back()})));
}

void VisibilityArrays::select_channels() {
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

void VisibilityArrays::select_samples() {
  std::tie(begin_, end_) = options_.samples.value_or(std::pair<std::int64_t, std::int64_t>(0, nvis_));
  if (begin_ >= 0 && begin_ < end_ && end_ <= nvis_) return;
  throw ValueError(fmt::format("{}: samples [{}, {}) of a channel were asked for; there are [0, {})", reader_.path().string(),
                               begin_, end_, nvis_));
}

Tensor VisibilityArrays::frequencies() const {
  auto frequencies = selected_frequencies();
  warn_of_low(frequencies);
  if (uv_unit() == UvUnit::metres && !frequencies.defined()) {
    throw DataError(
        fmt::format("{}: u and v are in metres, but there is no frequency; add the key `frequency` or give it (--frequency HZ)",
                    reader_.path().string()));
  }
  return frequencies;
}

torch::Dtype VisibilityArrays::real_dtype(const std::string& key) const {
  return reader_.header(key).dtype() == torch::kFloat32 ? torch::kFloat32 : torch::kFloat64;
}

torch::Dtype VisibilityArrays::data_dtype() const {
  if (interleaved_) return reader_.header("data").dtype();
  const bool single = real_dtype("data_re") == torch::kFloat32 && real_dtype("data_im") == torch::kFloat32;
  return single ? torch::kComplexFloat : torch::kComplexDouble;
}

bool VisibilityArrays::by_channel(const std::string& key) const { return reader_.header(key).shape.size() == 2; }

double VisibilityArrays::bytes() const {
  const auto nvis = static_cast<double>(this->nvis()), nchan = static_cast<double>(channels_.size());
  double bytes = nvis * nchan * static_cast<double>(c10::elementSize(data_dtype()) + c10::elementSize(real_dtype("weight")));
  for (const char* key : {"uu", "vv"}) {
    bytes += nvis * (by_channel(key) ? nchan : 1) * static_cast<double>(c10::elementSize(real_dtype(key)));
  }
  return bytes;
}

Tensor VisibilityArrays::selected_frequencies() const {
  Tensor all;
  if (!options_.frequencies.empty()) {
    all = at::tensor(options_.frequencies, torch::kFloat64);
    if (all.size(0) == std::ssize(channels_)) return all;
  } else if (const auto* key = frequency_key()) {
    check_frequencies(reader_.header(key).count());  // a size that does not fit is not worth its memory
    all = reader_.read(key).to(torch::kFloat64).reshape({-1});
  } else {
    return {};
  }
  if (all.size(0) == 1) return all.expand({std::ssize(channels_)}).contiguous();
  check_frequencies(all.size(0));
  return all.index_select(0, at::tensor(channels_, torch::kInt64));
}

void VisibilityArrays::check_frequencies(std::int64_t count) const {
  if (count == 1 || count == nchan_) return;
  throw ShapeError(
      fmt::format("{}: {} frequencies for {} channel(s); one, or one per channel is needed: correct the key `frequency` "
                  "or --frequency",
                  reader_.path().string(), count, nchan_));
}

/// `frequency`, else `frequencies`, as MPoL's own files have it, else none.
const char* VisibilityArrays::frequency_key() const {
  for (const auto* key : {"frequency", "frequencies"}) {
    if (reader_.contains(key)) return key;
  }
  return nullptr;
}

std::optional<double> VisibilityArrays::number(const std::string& key) const {
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

std::string VisibilityArrays::text(const std::string& key) const {
  return reader_.contains(key) ? reader_.read_text(key) : std::string();
}

Stokes VisibilityArrays::stokes() const {
  if (!reader_.contains("stokes")) return Stokes::i;
  try {
    return stokes_from_name(reader_.read_text("stokes"));
  } catch (const ValueError& error) {
    throw DataError(fmt::format("{}: {}", reader_.where("stokes"), error.what()));
  }
}

Observation VisibilityArrays::observation() const {
  Observation observation;
  observation.right_ascension = number("right_ascension");
  observation.declination = number("declination");
  observation.object = text("object");
  observation.telescope = text("telescope");
  observation.date = text("date");
  observation.rest_frequency = number("rest_frequency");
  observation.spectral_reference = text("spectral_reference");
  observation.stokes = stokes();
  return observation;
}

}  // namespace mpol::io
