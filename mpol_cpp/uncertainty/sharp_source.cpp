#include <mpol_cpp/uncertainty/sharp_source.h>

#include <algorithm>
#include <cstdlib>

namespace mpol {

bool is_at_its_sharpest(const Tensor& image, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t reach = 3;  // of a Hann kernel, from a source between two pixels
  constexpr double contrast = 10;
  const auto pixels = image.accessor<double, 2>();
  const auto npix = image.size(0);
  const auto each_within = [npix](std::int64_t y, std::int64_t x, std::int64_t distance, const auto& look) {
    for (auto j = std::max<std::int64_t>(y - distance, 0); j <= std::min(y + distance, npix - 1); ++j)
      for (auto i = std::max<std::int64_t>(x - distance, 0); i <= std::min(x + distance, npix - 1); ++i) look(j, i);
  };
  auto y = row, x = column;
  each_within(row, column, 1, [&](std::int64_t j, std::int64_t i) {
    if (pixels[j][i] > pixels[y][x]) y = j, x = i;
  });
  double around = 0;
  each_within(y, x, reach, [&](std::int64_t j, std::int64_t i) {
    if (std::max(std::abs(j - y), std::abs(i - x)) == reach) around = std::max(around, pixels[j][i]);
  });
  return pixels[y][x] > 0 && pixels[y][x] > contrast * around;
}

std::optional<MissedForSharpness> missed_for_sharpness(const Tensor& residual, const Tensor& sky, double threshold,
                                                       const std::function<bool(const MissedForSharpness&)>& refused) {
  constexpr std::int64_t most_places = 256;  // that are looked at
  const auto npix = residual.size(-1);
  const auto flat = residual.flatten();
  const auto above = (flat > threshold).nonzero().squeeze(1);
  const auto [values, order] = flat.index_select(0, above).sort(/*dim=*/0, /*descending=*/true);
  const auto places = above.index_select(0, order);
  const auto value = values.accessor<double, 1>();
  const auto place = places.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < std::min(most_places, places.size(0)); ++i) {
    const MissedForSharpness found{place[i] / (npix * npix), place[i] / npix % npix, place[i] % npix, value[i]};
    if (is_at_its_sharpest(sky[found.channel], found.row, found.column) && !(refused && refused(found))) return found;
  }
  return std::nullopt;
}

}  // namespace mpol
