#include <mpol_cpp/io/readers/array_reader.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/complex.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/channel_values.h>
#include <mpol_cpp/io/visibility_arrays.h>

namespace mpol::io {
namespace {

constexpr std::int64_t block_samples = std::int64_t{1} << 18;

class ArrayReader final : public VisibilityReader {
 public:
  ArrayReader(const std::filesystem::path& path, const ReadOptions& options)
      : arrays_(path, options), u_(of("uu")), v_(of("vv")), weights_(of("weight")) {
    if (arrays_.has_complex_data()) {
      data_.push_back(of("data"));
    } else {
      for (const char* key : {"data_re", "data_im"}) data_.push_back(of(key));
    }
    shape_.observation = arrays_.observation();
    add_windows();
  }

  const ReaderShape& shape() const override { return shape_; }
  const DroppedSamples& dropped() const override { return dropped_; }

  std::optional<RowBlock> next() override {
    if (window_ == shape_.windows.size()) return std::nullopt;
    const auto count = std::min(block_samples, arrays_.nvis() - begin_);
    auto block = read(shape_.windows[window_].channels.front(), count);
    begin_ += count;
    if (begin_ == arrays_.nvis()) {
      begin_ = 0;
      if (++window_ == shape_.windows.size() && !arrays_.options().samples) finish();
    }
    return block;
  }

 private:
  ChannelValues of(const char* key) const { return {arrays_.reader(), key, arrays_.nvis_of_file()}; }

  void add_windows() {
    const auto frequencies = arrays_.frequencies();
    const auto unit = arrays_.uv_unit();
    for (std::size_t i = 0; i < arrays_.channels().size(); ++i) {
      ReaderWindow window;
      window.id = arrays_.channels()[i];
      window.rows = arrays_.nvis();
      window.channels = {window.id};
      if (frequencies.defined()) window.frequencies = frequencies.narrow(0, static_cast<std::int64_t>(i), 1);
      const double scale = unit == UvUnit::klambda  ? 1000
                           : unit == UvUnit::metres ? units::metres_to_lambda(1, window.frequencies.item<double>())
                                                    : 1;
      window.wavelengths_per_unit = {scale};
      window.frame = shape_.observation.spectral_reference;
      shape_.windows.push_back(std::move(window));
    }
  }

  RowBlock read(std::int64_t channel, std::int64_t count) {
    const auto values = [&](ChannelValues& of_array) { return of_array.next(channel, arrays_.first_sample() + begin_, count); };
    const auto real = [&](ChannelValues& of_array) {
      auto read = values(of_array);
      return read.scalar_type() == torch::kFloat32 ? read : read.to(torch::kFloat64);
    };
    RowBlock block;
    block.window = static_cast<std::int64_t>(window_);
    block.u = values(u_).to(torch::kFloat64);
    block.v = values(v_).to(torch::kFloat64);
    auto weights = real(weights_);
    Tensor data;
    if (arrays_.has_complex_data()) {
      data = values(data_.front());
    } else {
      const auto parts = c10::toRealValueType(arrays_.data_dtype());
      const auto first = values(data_.front()).to(parts);
      data = at::complex(first, values(data_.back()).to(parts));
    }
    if (arrays_.options().conjugate) data = data.conj().resolve_conj();
    leave_out(block.u.isfinite() & block.v.isfinite() & data.isfinite(), weights, data);
    block.data = data.unsqueeze(1);
    block.weights = weights.unsqueeze(1);
    return block;
  }

  /// Gives samples that do not count the weight and the value 0.
  void leave_out(const Tensor& finite, Tensor& weights, Tensor& data) {
    const auto weighs = (weights > 0).logical_or(weights.isnan());
    const auto good = finite & weights.isfinite() & weighs;
    const auto count = good.numel(), kept = good.sum().item<std::int64_t>();
    if (kept == count) return;
    const auto without = count - weighs.sum().item<std::int64_t>();
    dropped_.without_weight += without;
    dropped_.not_finite += count - kept - without;
    weights.masked_fill_(good.logical_not(), 0);
    data.masked_fill_(good.logical_not(), 0);
  }

  void finish() {
    for (auto* values : {&u_, &v_, &weights_}) values->finish();
    for (auto& values : data_) values.finish();
  }

  VisibilityArrays arrays_;
  ChannelValues u_, v_, weights_;
  std::vector<ChannelValues> data_;
  ReaderShape shape_;
  DroppedSamples dropped_;
  std::size_t window_ = 0;
  std::int64_t begin_ = 0;
};

}  // namespace

std::unique_ptr<VisibilityReader> open_npz(const std::filesystem::path& path, const ReadOptions& options) {
  return std::make_unique<ArrayReader>(path, options);
}

}  // namespace mpol::io
