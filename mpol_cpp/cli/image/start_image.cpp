#include <mpol_cpp/cli/image/start_image.h>

#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/core/format.h>

#include <ATen/ops/amax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

namespace mpol::cli {
namespace {

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
  if (text.starts_with("base:")) return StartBase{parse_number("start base", text.substr(5), Range::any())};
  if (text.starts_with("flat:")) return StartFlat{parse_number("start flat", text.substr(5), Range::positive())};
  if (text.ends_with(".fits") || text.ends_with(".fit") || text.ends_with(".FITS")) return StartFile{text};
  throw UsageError(error_text("--start", text.empty() ? "(nothing)" : text,
                              "must be auto, base:V, flat:JY_PER_ARCSEC2, dirty or FILE.fits", "choose one of them"));
}

Tensor base_of_image(const Tensor& sky, double floor, const PixelMapping& mapping) {
  const auto image = sky.to(torch::kCPU, torch::kFloat64);
  const auto peak = at::amax(image, {-2, -1}, /*keepdim=*/true);  // (nchan, 1, 1)
  const double weakest = peak.min().item<double>();
  if (!(weakest > 0)) {
    throw DataError(
        error_text("start image", fmt::format("peak {}", weakest), "every channel needs a positive pixel", "start from base:-3"));
  }
  return mapping.inverse(at::maximum(image, floor * peak));
}

BaseCubeOptions start_options(const Start& start, const SkyTarget& target, torch::Dtype dtype, const FitData& data,
                              const PixelMapping& mapping) {
  auto options = BaseCubeOptions(target.coords).nchan(target.nchan).dtype(dtype).pixel_mapping(mapping);
  const auto from_image = [&](const Tensor& sky, double floor) {
    options.base_cube(base_of_image(sky, floor, mapping).to(dtype));
  };
  const auto flat = [&](const Tensor& intensity) { options.start(mapping.inverse(intensity).item<double>()); };
  std::visit(Overloaded{
                 [&](const StartAuto&) { from_image(auto_start(data.dataset), 0); },
                 [&](const StartBase& base) {
                   const auto softplus = softplus_mapping();
                   if (mapping.name == softplus.name) options.start(base.value);
                   else flat(softplus.forward(at::full({}, base.value, torch::kFloat64)));
                 },
                 [&](const StartFlat& start_flat) { flat(at::full({}, start_flat.intensity, torch::kFloat64)); },
                 [&](const StartDirty&) { from_image(dirty_start(data), dirty_floor); },
                 [&](const StartFile& file) { from_image(read_sky(file.path, "--start", target), file_floor); },
             },
             start);
  return options;
}

}  // namespace mpol::cli
