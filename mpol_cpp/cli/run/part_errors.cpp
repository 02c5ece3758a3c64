#include <mpol_cpp/cli/run/part_errors.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::cli {
namespace {

/// chi^2/(2 N) over the visibilities of a part's own channels, whatever the likelihood of the fit is.
double reduced_of_visibilities(const ImageOptions& options, const PartToFit& part, const Tensor& sky) {
  const auto& data = part.data;
  const bool is_of_fit = !options.likelihood_kind().of_cells && options.is_gaussian();
  const double chi_squared = is_of_fit ? part.likelihood->chi_squared(sky).item<double>()
                                       : losses::loose_chi_squared(data.coords(), sky, data.visibilities, data.channels);
  return chi_squared / (2.0 * static_cast<double>(part.likelihood->visibilities_count()));
}

/// Those of a part, of which there is one for all, or one for each channel of the cube.
std::vector<Beam> beams_of_part(const std::vector<Beam>& all, const PartToFit& part) {
  if (all.size() <= 1) return all;
  const auto begin = all.begin() + part.place.first;
  return {begin, begin + part.data.channels.nchan()};
}

/// The numbers of channels as rows: those of their maps and of their noise.
Tensor rows_of(PartErrors& errors) {
  std::vector<std::vector<double>> columns;
  errors.maps.visit_numbers([&](const std::vector<double>& numbers) { columns.push_back(numbers); });
  auto& of_samples = columns.emplace_back();
  for (const auto& noise : errors.noise) of_samples.push_back(noise.of_samples);
  auto& shared = columns.emplace_back();
  for (const auto& noise : errors.noise) shared.push_back(noise.shared);
  auto rows =
      at::empty({static_cast<std::int64_t>(errors.noise.size()), static_cast<std::int64_t>(columns.size())}, torch::kFloat64);
  auto values = rows.accessor<double, 2>();
  for (std::int64_t row = 0; row < rows.size(0); ++row) {
    for (std::int64_t column = 0; column < rows.size(1); ++column)
      values[row][column] = columns[static_cast<std::size_t>(column)][static_cast<std::size_t>(row)];
  }
  return rows;
}

void put_rows(const Tensor& rows, PartErrors& errors) {
  const auto column = [&](std::int64_t number) {
    const auto values = rows.select(1, number).contiguous();
    return std::vector<double>(values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
  };
  std::int64_t number = 0;
  errors.maps.visit_numbers([&](std::vector<double>& numbers) { numbers = column(number++); });
  const auto of_samples = column(number), shared = column(number + 1);
  errors.noise.clear();
  for (std::size_t channel = 0; channel < of_samples.size(); ++channel)
    errors.noise.push_back({.of_samples = of_samples[channel], .shared = shared[channel]});
}

constexpr const char* rows_name = "numbers";

/// Says of which fit kept errors are.
Metadata fit_of(const ImageOptions& options, std::int64_t epochs) {
  return {{"samples", fmt::format("{}", options.samples.value_or(0))}, {"epochs", fmt::format("{}", epochs)}};
}

/// The errors of the channels of all ranks on the first, nothing on the others.
PartErrors gathered(PartErrors own, Communicator& ranks) {
  own.maps.visit_maps([&](const char*, Tensor& map) {
    if (map.defined()) map = ranks.gather(map);
  });
  const auto rows = ranks.gather(rows_of(own));
  if (!ranks.is_first()) return {};
  put_rows(rows, own);
  return own;
}

}  // namespace

PartErrors errors_of_part(const ImageOptions& options, const PartToFit& part, const FittedPart& fitted,
                          const std::vector<Beam>& beams) {
  const torch::NoGradGuard no_gradient;
  const auto& objective = fitted.objective.value();
  const auto sky = fitted.model.ptr()->make_sky();
  const auto draws = options.samples ? NoiseDraws::of_samples : NoiseDraws::of_cells;
  const auto noise = measured_noise(options, part.data, fitted.model, objective, reduced_of_visibilities(options, part, sky),
                                    SharedErrors::twice, draws);
  const auto samples =
      sample_errors(options, part.data, fitted.model, objective, noise.factor(), fitted.result.epochs, part.place.first);
  PartErrors own{samples.maps(sky.to(torch::kCPU, torch::kFloat64), part.data.coords(), beams_of_part(beams, part)), {}};
  own.noise.assign(static_cast<std::size_t>(sky.size(0)), noise);
  return part.ranks ? gathered(std::move(own), *part.ranks) : own;
}

void keep_errors(const std::filesystem::path& state, PartErrors errors, const ImageOptions& options, std::int64_t epochs) {
  NamedTensors tensors{{rows_name, rows_of(errors)}};
  errors.maps.visit_maps([&](const char* name, const Tensor& map) {
    if (map.defined()) tensors[name] = map;
  });
  write_safetensors(state / group_errors_name, tensors, fit_of(options, epochs));
}

std::optional<PartErrors> kept_errors(const std::filesystem::path& state, const ImageOptions& options, std::int64_t epochs) {
  const auto path = state / group_errors_name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  SafetensorsFile file;
  try {
    file = read_safetensors(path);
  } catch (const FileError& error) {
    log_warning(fmt::format("{}: the errors of these channels are sampled anew", error.what()));
    return std::nullopt;
  }
  for (const auto& [key, value] : fit_of(options, epochs)) {
    if (file.metadata[key] != value) return std::nullopt;
  }
  PartErrors errors;
  const auto rows = file.tensors[rows_name];
  if (!rows.defined() || rows.dim() != 2 || rows.size(1) != rows_of(errors).size(1)) return std::nullopt;  // of another version
  errors.maps.visit_maps([&](const char* name, Tensor& map) { map = file.tensors[name]; });
  put_rows(rows, errors);
  return errors;
}

void CubeErrors::add(PartErrors part, std::int64_t first) {
  noise_.insert(noise_.end(), part.noise.begin(), part.noise.end());
  maps_.put_channels(std::move(part.maps), first, nchan_);
}

MappedErrors CubeErrors::mapped(const ImageOptions& options) && {
  return {std::move(maps_), options.samples.value_or(usual_samples), noise().factor(), !options.samples};
}

}  // namespace mpol::cli
