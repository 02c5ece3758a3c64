#include <mpol_cpp/cli/image/start_image.h>

#include <algorithm>
#include <cstddef>

#include <ATen/ops/full.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/models/start_image.h>

namespace mpol::cli {
namespace {

constexpr const char *base_form = "base:", *flat_form = "flat:";
constexpr std::size_t form_size = 5;

constexpr double dirty_floor = 1e-3;  // of the peak
constexpr double file_floor = 1e-7;   // of the peak: what float32 resolves

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Start parse_start(const std::string& text) {
  if (text == "auto") return StartAuto{};
  if (text == "dirty") return StartDirty{};
  const auto number = text.substr(std::min(text.size(), form_size));
  if (text.starts_with(base_form)) return StartBase{parse_number("start base", number, Range::any()), number};
  if (text.starts_with(flat_form)) return StartFlat{parse_number("start flat", number, Range::positive()), number};
  if (text.ends_with(".fits") || text.ends_with(".fit") || text.ends_with(".FITS")) return StartFile{text};
  throw UsageError(error_text("--start", text.empty() ? "(nothing)" : text,
                              "must be auto, base:V, flat:JY_PER_ARCSEC2, dirty or FILE.fits", "choose one of them"));
}

std::string text_of(const Start& start) {
  return std::visit(Overloaded{[](const StartAuto&) { return std::string("auto"); },
                               [](const StartBase& base) { return base_form + base.number; },
                               [](const StartFlat& flat) { return flat_form + flat.number; },
                               [](const StartDirty&) { return std::string("dirty"); },
                               [](const StartFile& file) { return file.path.string(); }},
                    start);
}

BaseCubeOptions start_options(const Start& start, const SkyTarget& target, torch::Dtype dtype, const FitData& data,
                              const PixelMapping& mapping) {
  auto options = BaseCubeOptions(target.coords).nchan(target.nchan).dtype(dtype).pixel_mapping(mapping);
  const auto of_base = [&](const StartBase& base) -> BaseCubeOptions {
    const auto softplus = softplus_mapping();
    if (mapping.name == softplus.name) return options.start(base.value);
    return start_at_intensity(options, softplus.forward(at::full({}, base.value, torch::kFloat64)).item<double>());
  };
  return std::visit(
      Overloaded{
          of_base,
          [&](const StartAuto&) {
            if (mapping.sign == PixelSign::either) return options.start(0);
            return start_at_image(options, auto_start(data.dataset), 0);
          },
          [&](const StartFlat& flat) { return start_at_intensity(options, flat.intensity); },
          [&](const StartDirty&) { return start_at_image(options, dirty_start(data), dirty_floor); },
          [&](const StartFile& file) { return start_at_image(options, read_sky(file.path, "--start", target), file_floor); },
      },
      start);
}

}  // namespace mpol::cli
