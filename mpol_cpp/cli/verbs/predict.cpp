#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

struct PredictOptions {
  OutputOptions output;
  DataOptions data;
  std::filesystem::path image, positional_image;
};

void declare(OptionSet& options, PredictOptions& predict) {
  declare(options, predict.data, Computing::in_dtype);
  declare_conjugate(options, predict.data);
  options.app().get_option("--cell-size")->description("Width of a pixel; default: the image's");
  options.app().get_option("--npix")->description("Pixels along each axis, even; default: the image's");
  options.app().get_option("--dtype")->description("Precision of model and residual");
  options.app().add_option("IMAGE", predict.positional_image, "Image or cube in a FITS file")->type_name("FILE");
  options.path("--image", predict.image, "The same as IMAGE", Record::result);
  declare(options, predict.output);
  options.app().get_option("--out")->description("File for the visibilities: .npz");
}

void settle(PredictOptions& predict) {
  settle(predict.data);
  if (!predict.positional_image.empty()) predict.image = predict.positional_image;
  if (predict.image.empty()) {
    throw UsageError(error_text("IMAGE", "missing", "there must be an image to predict from", "name a FITS file"));
  }
  const auto& out = predict.output.out;
  if (out.empty()) throw UsageError(error_text("--out", "missing", "the visibilities need a file", "add -o OUT.npz"));
  if (!predict.output.overwrite && std::filesystem::exists(out)) {
    throw FileError(error_text("--out", out.string(), "is there already", "choose another name or add --overwrite"));
  }
  check_can_write(out);
}

/// The image on its own grid, or on the one that was asked for.
SkyImage read_model(const PredictOptions& predict) {
  auto image = read_sky_image(predict.image, "IMAGE");
  const GridCoords coords(predict.data.cell_size.value_or(image.coords.cell_size()),
                          predict.data.npix.value_or(image.coords.npix()));
  if (coords == image.coords) return image;
  return {regrid(image.cube, image.coords, coords), coords, image.unit, image.header};
}

ChannelMap channels_of(const SkyImage& image, const Visibilities& visibilities, const std::filesystem::path& path) {
  const auto of_image = image.cube.size(0), of_data = visibilities.nchan();
  if (of_image == of_data) return ChannelMap::cube(of_data);
  if (of_image == 1) return ChannelMap::continuum(of_data);
  throw DataError(error_text("IMAGE", path.string(), fmt::format("has {} channels, the data {}", of_image, of_data),
                             "give one channel or as many, or choose --channels"));
}

nlohmann::ordered_json describe_prediction(const PredictOptions& predict, const Visibilities& visibilities, double chi_squared) {
  const auto count = static_cast<double>(visibilities.nchan() * visibilities.nvis());
  return {{"file", predict.output.out.string()},
          {"n_channels", visibilities.nchan()},
          {"n_visibilities", visibilities.nvis()},
          {"chi_squared", chi_squared},
          {"chi_squared_per_visibility", chi_squared / (2 * count)}};
}

int predict_visibilities(PredictOptions& predict, const OptionSet& settings) {
  settle(predict);
  settings.check_meaning();
  listen_to_library("predict", predict.output);
  use_threads(predict.data.threads);
  const auto image = read_model(predict);
  const auto visibilities = read_visibilities(predict.data, image.coords);
  check_grid_holds(visibilities, predict.data, image.coords);
  warn_of_other_centre("IMAGE", predict.image, image, visibilities.observation(), "the data");
  stop_if_requested();

  const auto dtype = c10::toComplexType(predict.data.torch_dtype());
  auto model = torch::zeros({visibilities.nchan(), visibilities.nvis()}, dtype), residual = torch::zeros_like(model);
  double chi_squared = 0;
  losses::for_each_prediction(image.coords, image.cube, visibilities, channels_of(image, visibilities, predict.image),
                              [&](std::int64_t channel, std::int64_t begin, const Tensor& block) {
                                stop_if_requested();
                                const auto part = [&](const Tensor& all) { return all[channel].narrow(0, begin, block.size(0)); };
                                const auto difference = part(visibilities.data()).to(torch::kComplexDouble) - block;
                                chi_squared += (difference.abs().square() * part(visibilities.weights())).sum().item<double>();
                                part(model).copy_(block);
                                part(residual).copy_(difference);
                              });
  io::write_npz(predict.output.out, visibilities, io::Compression::stored, {{"model", model}, {"residual", residual}});

  const auto json = describe_prediction(predict, visibilities, chi_squared);
  if (predict.output.json) fmt::print("{}", summary_text(json));
  else if (!predict.output.quiet) {
    fmt::print("{} channels of {} visibilities; chi^2/(2N) {:.4f}\n{}\n", visibilities.nchan(), visibilities.nvis(),
               json["chi_squared_per_visibility"].get<double>(), predict.output.out.string());
  }
  return exit_done;
}

}  // namespace

Verb add_predict(CLI::App& program) {
  auto* app = program.add_subcommand("predict", "Visibilities of an image at the points of data, and the residual");
  app->footer("Example:\n  mpol predict vis.npz disc/image.fits -o predicted.npz   # uu vv weight data model residual");
  const auto options = std::make_shared<PredictOptions>();
  const auto set = std::make_shared<OptionSet>(*app);
  declare(*set, *options);
  return {app, [options, set] { return predict_visibilities(*options, *set); }};
}

}  // namespace mpol::cli
