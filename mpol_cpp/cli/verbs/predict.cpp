#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/blocks_table.h>
#include <mpol_cpp/cli/output/points_table.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/io/measurement_set/model_column.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp predict_help = {
    "predict", "Visibilities of an image at the points of data, and the residual",
    "Example:\n  mpol predict vis.npz disc/image.fits -o predicted.npz   # uu vv weight data model residual\n"
    "  mpol predict obs.ms disc/image.fits --column MODEL_DATA"};

struct PredictOptions {
  OutputOptions output;
  DataOptions data;
  std::filesystem::path image, positional_image;
  std::filesystem::path gains;          ///< blocks.csv
  std::filesystem::path points;         ///< points.csv
  std::string column, residual_column;  ///< of a measurement set, to write

  bool writes_columns() const { return !column.empty() || !residual_column.empty(); }
};

void declare(OptionSet& options, PredictOptions& predict) {
  declare(options, predict.data, Computing::in_dtype, "--data-column");
  declare_conjugate(options, predict.data);
  declare_mode(options, predict.data);
  options.text("--column", predict.column, "NAME", "Measurement set: column to write the model into, such as MODEL_DATA",
               Record::result);
  options.text("--residual-column", predict.residual_column, "NAME", "Measurement set: column to write data minus model into",
               Record::result);
  options.only({"--column", "--residual-column"}, "with one measurement set as DATA",
               [&predict] { return io::is_measurement_set(predict.data.data) && predict.data.more_data.empty(); });
  options.path("--gains", predict.gains,
               "blocks.csv of mpol image --fit-blocks: take the gains of its blocks out of the data first", Record::result);
  options.only({"--gains"}, "without --column and --residual-column: DATA of a set keep the gains of their blocks",
               [&predict] { return !predict.writes_columns(); });
  options.path("--points", predict.points, "points.csv of mpol image --points: add its point sources to the model",
               Record::result);
  options.describe("--cell-size", "Width of a pixel; default: the image's");
  options.describe("--npix", "Pixels along each axis, even; default: the image's");
  options.describe("--dtype", "Precision of model and residual");
  options.app().add_option("IMAGE", predict.positional_image, "Image or cube in a FITS file")->type_name("FILE");
  options.path("--image", predict.image, "The same as IMAGE", Record::result);
  declare(options, predict.output);
  options.describe("--out", "File for the visibilities: .npz");
}

void settle(PredictOptions& predict) {
  settle(predict.data);
  if (!predict.positional_image.empty()) predict.image = predict.positional_image;
  if (predict.image.empty()) {
    throw UsageError(error_text("IMAGE", "missing", "there must be an image to predict from", "name a FITS file"));
  }
  const auto& out = predict.output.out;
  if (out.empty() && predict.writes_columns()) {
    if (predict.column == predict.residual_column) {
      throw UsageError(error_text("--residual-column", predict.residual_column, "is the model's column too", "name another one"));
    }
    return;
  }
  if (out.empty()) {
    throw UsageError(
        error_text("--out", "missing", "the visibilities need a file", "add -o OUT.npz, or --column of a measurement set"));
  }
  if (!predict.output.overwrite && std::filesystem::exists(out)) {
    throw FileError(error_text("--out", out.string(), "is there already", "choose another name or add --overwrite"));
  }
  check_can_write(out);
}

/// Takes the gains of blocks out of the data, and keeps what tells the blocks apart.
/// @return  the arrays that tell it, for the file
std::map<std::string, Tensor> take_gains(const PredictOptions& predict, const NamedGains& gains, Visibilities& visibilities) {
  if (gains.names.empty()) return {};
  const auto& origins = *predict.data.origins;
  const auto blocks = blocks_of(origins, gains.kinds(), 1);
  const auto bytes = static_cast<double>(visibilities.data().nbytes() + visibilities.weights().nbytes());
  visibilities = calibrated(visibilities, blocks, gains.of(blocks), room_beside(visibilities, bytes));
  std::map<std::string, Tensor> arrays;
  if (origins.windows.defined()) arrays["block"] = origins.windows[0];
  if (origins.observations.defined()) arrays["observation"] = origins.observations[0];
  return arrays;
}

/// The image on its own grid, or on the one that was asked for.
SkyImage read_model(const PredictOptions& predict) {
  if (SkyCube(predict.image, "IMAGE", {}, SkyUnit::as_written, SkyFrame::own).image().is_divided_by_beam) {
    throw DataError(error_text("IMAGE", predict.image.string(), "has the primary beam taken out, data are of the sky times it",
                               "give the image that mpol pbcor was given, or have that back with its --mode multiply"));
  }
  auto image = read_sky_image(predict.image, "IMAGE", SkyUnit::brightness, SkyFrame::own);
  const GridCoords coords(predict.data.cell_size.value_or(image.coords.cell_size()),
                          predict.data.npix.value_or(image.coords.npix()));
  if (coords == image.coords) return image;
  return {regrid(image.cube, image.coords, coords), coords, image.unit, image.header, image.pixels};
}

ChannelMap channels_of(const SkyImage& image, const Visibilities& visibilities, const std::filesystem::path& path) {
  const auto of_image = image.cube.size(0), of_data = visibilities.nchan();
  if (of_image == of_data) return ChannelMap::cube(of_data);
  if (of_image == 1) return ChannelMap::continuum(of_data);
  throw DataError(error_text("IMAGE", path.string(), fmt::format("has {} channels, the data {}", of_image, of_data),
                             "give one channel or as many, or choose --channels"));
}

/// Visibilities of an image as they are about the phase centre, from those about its own middle.
Tensor about_phase_center(const Tensor& values, const SkyImage& image, const Tensor& u, const Tensor& v) {
  const auto& center = image.center();
  if (center == SkyOffset()) return values;
  return values * displacement_phase(u, v, at::tensor({center.east, center.north}, torch::kFloat64));
}

/// Parallel hands of a set are given the model, and cross hands none: that of Stokes I alone.
void check_suits_columns(const PredictOptions& predict, const SkyImage& image) {
  const auto stokes = image.header.observation().stokes;
  if (!predict.writes_columns() || stokes == Stokes::i) return;
  throw DataError(error_text("IMAGE", predict.image.string(),
                             fmt::format("is of {}, and columns of a set take a model of Stokes I", stokes_text(stokes)),
                             "give an image of Stokes I, or -o OUT.npz instead of --column and --residual-column"));
}

/// Adds point sources to visibilities of an image channel about the phase centre.
void add_points(const std::vector<PointComponent>& points, std::size_t channel, const Tensor& u, const Tensor& v,
                Tensor& values) {
  for (const auto& point : points)
    values = values + point.flux[point.flux.size() == 1 ? 0 : channel] * point_visibilities(point, u, v);
}

/// The point sources of a file, of as many channels as the image. @throws DataError for others
std::vector<PointComponent> read_points(const PredictOptions& predict, const SkyImage& image) {
  if (predict.points.empty()) return {};
  auto points = read_points_csv(predict.points, {});
  const auto nchan = image.cube.size(0);
  for (const auto& point : points) {
    if (static_cast<std::int64_t>(point.flux.size()) == nchan) continue;
    throw DataError(error_text("--points", predict.points.string(),
                               fmt::format("has sources of {} channels, the image {}", point.flux.size(), nchan),
                               "give points.csv of the same run as the image"));
  }
  return points;
}

/// Image channel for a frequency: the only one, or that of the data's channels nearest to it.
std::int64_t image_channel(const SkyImage& image, const Visibilities& visibilities, double frequency) {
  if (image.cube.size(0) == 1 || !visibilities.frequencies().defined()) return 0;
  return (visibilities.frequencies() - frequency).abs().argmin().item<std::int64_t>();
}

/// Writes model and residual into the set. Points beyond the image's uv range, which only flagged data have, are 0.
void write_columns(const PredictOptions& predict, const SkyImage& image, const std::vector<PointComponent>& points,
                   const Visibilities& visibilities) {
  const auto& data = predict.data;
  const auto phases = data.conjugate ? io::SetPhases::as_written : io::SetPhases::conjugated;
  auto set = library_options(data.set, data.channels, phases);
  std::int64_t beyond = 0;
  const auto model = [&](const Tensor& u, const Tensor& v, double frequency) {
    stop_if_requested();
    const double reach = image.coords.max_uv() * (1 - 1.0 / static_cast<double>(image.coords.npix()));
    const auto inside = (u.abs() < reach).logical_and(v.abs() < reach);
    const auto known = inside.nonzero().flatten();
    auto values = torch::zeros({u.size(0)}, torch::kComplexDouble);
    beyond += u.size(0) - known.size(0);
    if (known.size(0) == 0) return values;
    const auto channel = image_channel(image, visibilities, frequency);
    const auto own_u = u.index_select(0, known), own_v = v.index_select(0, known);
    auto shown =
        about_phase_center(losses::predicted_block(image.coords, image.cube[channel], own_u, own_v), image, own_u, own_v);
    add_points(points, static_cast<std::size_t>(channel), own_u, own_v, shown);
    values.index_put_({known}, shown);
    return values;
  };
  const auto written = io::write_model_columns(data.data, {predict.column, predict.residual_column, std::move(set)}, model);
  for (const auto& name : {predict.column, predict.residual_column}) {
    if (!name.empty()) tell(fmt::format("written     {} of {} rows", name, written.rows));
  }
  for (const auto& name : written.kept_as) tell(fmt::format("kept        what was there before, as {}", name));
  if (beyond > 0)
    log_warning(fmt::format("{} flagged samples lie beyond the uv range of the image; the model is 0 there", beyond));
}

nlohmann::ordered_json describe_prediction(const PredictOptions& predict, const Visibilities& visibilities, double chi_squared) {
  const auto count = static_cast<double>(visibilities.nchan() * visibilities.nvis());
  nlohmann::ordered_json json = {{"file", predict.output.out.string()},
                                 {"n_channels", visibilities.nchan()},
                                 {"n_visibilities", visibilities.nvis()},
                                 {"chi_squared", chi_squared},
                                 {"chi_squared_per_visibility", chi_squared / (2 * count)}};
  if (predict.output.out.empty()) json["file"] = nullptr;
  if (predict.writes_columns()) json["columns"] = {{"model", predict.column}, {"residual", predict.residual_column}};
  return json;
}

std::string words_of(const PredictOptions& predict, const nlohmann::ordered_json& prediction) {
  const auto text =
      fmt::format("{} channels of {} visibilities; chi^2/(2N) {:.4f}\n", prediction["n_channels"].get<std::int64_t>(),
                  prediction["n_visibilities"].get<std::int64_t>(), prediction["chi_squared_per_visibility"].get<double>());
  return predict.output.out.empty() ? text : text + predict.output.out.string() + "\n";
}

int predict_visibilities(PredictOptions& predict, const OptionSet& settings) {
  settle(predict);
  begin_verb(settings, predict.output);
  use_threads(predict.data.threads);
  const auto gains = predict.gains.empty() ? NamedGains() : read_blocks_csv(predict.gains);
  if (!gains.names.empty()) predict.data.origins = std::make_shared<DataOrigins>();
  const auto image = read_model(predict);
  const auto points = read_points(predict, image);
  check_suits_columns(predict, image);
  auto visibilities = read_visibilities(predict.data, image.coords);
  check_grid_holds(visibilities, predict.data, image.coords);
  warn_of_other_center("IMAGE", predict.image, image, visibilities.observation(), "the data");
  warn_of_other_stokes("IMAGE", predict.image, image, visibilities.observation(), "the data");
  auto arrays = take_gains(predict, gains, visibilities);
  stop_if_requested();

  const auto dtype = c10::toComplexType(predict.data.dtype);
  const auto count = visibilities.nchan() * visibilities.nvis();
  const auto room = room_beside(visibilities, 2.0 * static_cast<double>(count) * static_cast<double>(c10::elementSize(dtype)));
  auto model = room.empty({visibilities.nchan(), visibilities.nvis()}, dtype).zero_();
  auto residual = room.empty(model.sizes(), dtype).zero_();
  double chi_squared = 0;
  losses::for_each_prediction(image.coords, image.cube, visibilities, channels_of(image, visibilities, predict.image),
                              [&](std::int64_t channel, std::int64_t begin, const Tensor& turned) {
                                stop_if_requested();
                                const auto [u, v] = visibilities.baselines().block(channel, begin, begin + turned.size(0));
                                auto block = about_phase_center(turned, image, u, v);
                                add_points(points, image.cube.size(0) == 1 ? 0 : static_cast<std::size_t>(channel), u, v, block);
                                const auto part = [&](const Tensor& all) { return all[channel].narrow(0, begin, block.size(0)); };
                                const auto difference = part(visibilities.data()).to(torch::kComplexDouble) - block;
                                chi_squared += (difference.abs().square() * part(visibilities.weights())).sum().item<double>();
                                part(model).copy_(block);
                                part(residual).copy_(difference);
                              });
  if (predict.writes_columns()) write_columns(predict, image, points, visibilities);
  arrays["model"] = model, arrays["residual"] = residual;
  if (!predict.output.out.empty()) io::write_npz(predict.output.out, visibilities, io::Compression::stored, arrays);
  const auto json = describe_prediction(predict, visibilities, chi_squared);
  return end_verb(predict.output, summary_text(json), words_of(predict, json));
}

}  // namespace

Verb add_predict(CLI::App& program) { return add_verb<PredictOptions>(program, predict_help, predict_visibilities); }

}  // namespace mpol::cli
