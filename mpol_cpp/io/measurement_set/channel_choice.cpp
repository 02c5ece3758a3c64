#include <mpol_cpp/io/measurement_set/channel_choice.h>

#include <algorithm>
#include <numeric>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::io {
namespace {

void check_numbers(const std::vector<std::int64_t>& numbers, std::int64_t count, std::int64_t window) {
  auto sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw ValueError(fmt::format("channel {} is selected twice; name each channel once", *twice));
  }
  for (const auto number : sorted) {
    if (number >= 0 && number < count) continue;
    throw ValueError(
        fmt::format("channel {} is not there; those of spectral window {} are 0 to {}: correct --channels, or choose "
                    "windows that have it (--spw)",
                    number, window, count - 1));
  }
}

bool lies_in(double value, const std::pair<double, double>& range) {
  return value >= std::min(range.first, range.second) && value <= std::max(range.first, range.second);
}

}  // namespace

double radio_velocity(double frequency, double rest_frequency) {
  return units::speed_of_light * (1 - frequency / rest_frequency);
}

std::vector<std::int64_t> chosen_channels(const std::vector<double>& frequencies, const ChannelChoice& choice,
                                          std::int64_t window, std::optional<double> rest_frequency) {
  const auto count = static_cast<std::int64_t>(frequencies.size());
  check_numbers(choice.numbers, count, window);
  auto chosen = choice.numbers;
  if (chosen.empty()) {
    chosen.resize(frequencies.size());
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  const auto frequency = [&](std::int64_t channel) { return frequencies[static_cast<std::size_t>(channel)]; };
  if (choice.frequency_range) {
    std::erase_if(chosen, [&](std::int64_t channel) { return !lies_in(frequency(channel), *choice.frequency_range); });
  }
  if (choice.velocity_range) {
    const auto rest = choice.rest_frequency ? choice.rest_frequency : rest_frequency;
    if (!rest) throw DataError("velocities need the line's rest frequency, which the set does not have; add --rest-frequency HZ");
    std::erase_if(chosen, [&](std::int64_t channel) {
      return !lies_in(radio_velocity(frequency(channel), *rest), *choice.velocity_range);
    });
  }
  std::sort(chosen.begin(), chosen.end(), [&](std::int64_t a, std::int64_t b) { return frequency(a) < frequency(b); });
  return chosen;
}

}  // namespace mpol::io
