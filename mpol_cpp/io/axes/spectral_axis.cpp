#include <mpol_cpp/io/axes/spectral_axis.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/io/axes/fits_axes.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::io {
namespace {

/// Frequencies count as evenly spaced when none is off by more than this part of a channel.
constexpr double even_spacing_tolerance = 1e-3;

}  // namespace

Tensor checked_frequencies(const Tensor& frequencies, std::int64_t nchan) {
  if (!frequencies.defined()) return frequencies;
  const auto checked = frequencies.detach().to(torch::kCPU, torch::kFloat64).reshape({-1}).contiguous();
  if (checked.size(0) != nchan) {
    throw ShapeError(fmt::format("{} frequencies for {} channel(s); one per channel is needed", checked.size(0), nchan));
  }
  check_positive(checked, "frequency");
  return checked;
}

SpectralAxis spectral_axis_of(const Tensor& frequencies) {
  if (!frequencies.defined()) return SpectralAxis::channel;
  const auto count = frequencies.size(0);
  if (count == 1) return SpectralAxis::frequency;
  const auto* f = frequencies.const_data_ptr<double>();
  const double step = (f[count - 1] - f[0]) / static_cast<double>(count - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!(std::abs(f[i] - (f[0] + static_cast<double>(i) * step)) < even_spacing_tolerance * std::abs(step)))
      return SpectralAxis::channel_with_table;
  }
  return SpectralAxis::frequency;
}

void write_spectral_axis(HeaderWriter& header, SpectralAxis kind, const Tensor& frequencies) {
  constexpr int number = axis_number(ImageAxis::channel);
  if (kind != SpectralAxis::frequency) return header.axis(number, "CHANNEL", 1, 0, 1, nullptr);
  const auto count = frequencies.size(0);
  const auto* f = frequencies.const_data_ptr<double>();
  // The width of a single channel is not known; one Hz keeps the axis regular.
  const double step = count > 1 ? (f[count - 1] - f[0]) / static_cast<double>(count - 1) : 1.0;
  header.axis(number, "FREQ", 1, f[0], step, "Hz");
}

void write_frequencies(FitsHandle& file, const Tensor& frequencies) {
  create_table(file, "FREQUENCIES", frequencies.size(0), {{"CHANNEL", "1J", ""}, {"FREQUENCY", "1D", "Hz"}});
  reserve_checksums(file);
  for (std::int64_t channel = 0; channel < frequencies.size(0); ++channel) {
    write_number(file, 1, channel, static_cast<double>(channel));
    write_number(file, 2, channel, frequencies.const_data_ptr<double>()[channel]);
  }
  file.check("writing the table FREQUENCIES");
  write_checksums(file);
}

void warn_of_uneven_frequencies() {
  log_warning(
      "the frequencies of the channels are not evenly spaced: the third axis of FITS cubes counts channels, and their table "
      "FREQUENCIES holds the frequencies");
}

}  // namespace mpol::io
