#include <mpol_cpp/cli/image/image_options.h>

#include <map>
#include <sstream>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/backend.h>

namespace mpol::cli {
namespace {

void declare_regularizers(OptionSet& options, RegularizerOptions& r) {
  const auto strength = [&options](const std::string& name, double& value, const std::string& help) {
    options.number(name, value, Range::not_negative(), "LAMBDA", help, Record::result)->group("Regularisers");
  };
  strength("--sparsity", r.sparsity, "Sum of |I|: few bright pixels");
  strength("--tv", r.tv, "Total variation: sharp edges, flat inside");
  strength("--tsv", r.tsv, "Total squared variation: smooth");
  strength("--entropy", r.entropy, "Entropy relative to a flat prior");
  strength("--tv-channel", r.tv_channel, "Total variation from channel to channel");
  strength("--edge-clamp", r.edge_clamp, "Square of the pixels on the image's edges");
  strength("--psd", r.psd, "Power spectrum of a Gaussian process; needs --psd-length");
  strength("--uv-sparsity", r.uv_sparsity, "Visibilities beyond --uv-sparsity-q-max");
  const auto setting = [&options](const std::string& name, auto& value, const std::string& unit, const std::string& help) {
    options.number(name, value, Range::positive(), unit, help, Record::result)->group("Regularisers");
  };
  setting("--entropy-prior", r.entropy_prior, "JY_PER_ARCSEC2", "Prior intensity of the entropy");
  setting("--entropy-flux", r.entropy_flux, "ZETA", "Total flux by which the entropy is divided");
  setting("--psd-length", r.psd_length, "ARCSEC", "Length scale of the power spectrum");
  setting("--uv-sparsity-q-max", r.uv_sparsity_q_max, "LAMBDA", "Visibilities beyond this baseline are made sparse");
}

void declare_likelihood(OptionSet& options, ImageOptions& image) {
  const auto result = Record::result;
  options.choice("--likelihood", image.likelihood, {"exact", "gridded", "loose"},
                 "How the image is compared with the data: chi^2 of the visibilities themselves, of their cell averages (as "
                 "MPoL), or of the visibilities by nonuniform transforms, whose cost grows with their number",
                 result);
  options.choice("--noise", image.noise, {"gaussian", "student"},
                 "Noise of the visibilities; student: outliers hardly count, needs --likelihood loose", result);
  options.number("--degrees-of-freedom", image.degrees_of_freedom, Range::positive(), "NU", "Of --noise student; default: 4",
                 result);
  options.integer("--batch-size", image.batch_size, Range::between(1, 1e15),
                  "Visibilities of a channel that a step sees, of --likelihood loose; default: all", result);
  options.choice("--sampling", image.sampling, {"random", "compact", "uniform"},
                 "Which visibilities make a batch: any (default), neighbours in the uv plane, or of every baseline length alike",
                 result);
  options.choice("--normalize", image.normalize, {"cells", "visibilities", "none"},
                 "What chi^2 is divided by: twice the occupied cells, twice the visibilities, or 1", result);
  options.choice("--mode", image.mode, {"continuum", "cube"},
                 "One image of all channels, or one per channel; default: a cube when the arrays have channels", result);
  options.choice("--scatter-check", image.scatter_check, {"warn", "error", "off"},
                 "Compare the scatter of the data with their weights", Record::manner);
}

void declare_fit(OptionSet& options, ImageOptions& image) {
  const auto result = Record::result;
  options.choice("--optimizer", image.optimizer, {"auto", "pogm", "adam", "sgd", "lbfgs"},
                 "auto and pogm go on until the fit has converged; auto takes pogm where every term is convex, else adam",
                 result);
  options.number("--tolerance", image.tolerance, Range::between(1e-12, 0.5), "PART",
                 "When a fit has converged: over the second half of its epochs its loss fell by no more than this part of the "
                 "regularisers' value, and the image changed by no more than twenty times this part; default: 0.001",
                 result);
  options.number("--learning-rate", image.learning_rate, Range::positive(), "RATE", "Of adam, sgd and lbfgs; default: 0.3",
                 result);
  options.integer("--epochs", image.epochs, Range::between(1, 1e15),
                  "The most that auto and pogm may take (default: 20000); of adam, sgd and lbfgs exactly this many, without "
                  "--stop-relative (default: 500)",
                  Record::manner);
  options.text("--stop-relative", image.stop_relative, "R[:WINDOW]",
               "Stop when the loss of each of the last WINDOW (10) epochs is within the fraction R of the present one", result);
  options.text("--start", image.start, "START",
               "Start from auto (scaled to the data), base:V (MPoL: base:-3), flat:JY_PER_ARCSEC2, dirty, or FILE.fits", result);
  options.path("--mask", image.mask, "FITS image: pixels that are 0 stay empty", result);
  options.integer("--seed", image.seed, Range::between(0, 9e15), "Seed of whatever is random", result);
  options.flag("--deterministic", image.deterministic,
               "Take only operations that give the same bits each time on the same device, also LibTorch's", Record::result);
  options.choice("--step", image.step, {"auto", "eager", "captured", "fused"}, "How a step is computed", result);
}

/// Whether a regulariser is in the fit, with a strength of its own or one to be guessed.
bool in_fit(const ImageOptions& image, double RegularizerOptions::*strength) {
  return image.regularizers.*strength > 0 || guessed_regularizers(image).*strength > 0;
}

void state_meanings(OptionSet& options, const ImageOptions& image) {
  options.only({"--degrees-of-freedom"}, "with --noise student", [&] { return image.noise == "student"; });
  options.only({"--batch-size"}, "with --likelihood loose", [&] { return image.likelihood == "loose"; });
  options.only({"--tolerance"}, "with --optimizer auto or pogm, without --stop-relative",
               [&] { return choose_optimizer(image).tolerance.has_value(); });
  options.only({"--learning-rate", "--stop-relative", "--step"}, "without --optimizer pogm",
               [&] { return image.optimizer != "pogm"; });
  options.only({"--sampling"}, "with --batch-size", [&] { return image.batch_size.has_value(); });
  options.only({"--kernel-folder"}, "with --likelihood exact", [&] { return image.likelihood == "exact"; });
  options.only({"--overwrite"}, "without --resume", [&] { return !image.resume; });
  options.only({"--entropy-prior", "--entropy-flux"}, "with --entropy",
               [&] { return in_fit(image, &RegularizerOptions::entropy); });
  options.only({"--psd-length"}, "with --psd", [&] { return in_fit(image, &RegularizerOptions::psd); });
  options.only({"--uv-sparsity-q-max"}, "with --uv-sparsity", [&] { return in_fit(image, &RegularizerOptions::uv_sparsity); });
}

}  // namespace

void declare(OptionSet& options, ImageOptions& image) {
  declare(options, image.data, Computing::in_dtype_on_device);
  declare_conjugate(options, image.data);
  declare_likelihood(options, image);
  declare_fit(options, image);
  declare_regularizers(options, image.regularizers);
  options
      .text("--guess-lambda", image.guess_lambda, "NAME[,NAME...]",
            "Guess LAMBDA of these regularisers (tv, ...) from dirty images: an order of magnitude", Record::result)
      ->group("Regularisers");
  declare(options, image.output);
  options.integer("--checkpoint-interval", image.checkpoint_interval, Range::between(1, 1e15),
                  "Epochs between checkpoints; default: every 30 seconds", Record::manner);
  options.integer("--diagnostics-interval", image.diagnostics_interval, Range::between(1, 1e15),
                  "Epochs between figures of how the fit goes, in OUT/diagnostics; default: none", Record::manner);
  options.number("--memory-limit", image.memory_limit, Range::positive(), "GIB",
                 "Refuse a fit that is estimated to need more memory than this; default: what is free", Record::manner);
  options.path(
      "--kernel-folder", image.kernel_folder,
      "Keep the kernels of the exact likelihood (24 bytes a pixel and channel) in files of this folder instead of memory",
      Record::manner);
  options.flag("--split-channels", image.split_channels, "Write image_0000.fits, … instead of cubes", Record::result);
  options.flag("--resume", image.resume, "Continue the run in OUT from its checkpoint", Record::none);
  options.flag("--keep-diverged", image.keep_diverged, "Write the last good image of a fit that diverged", Record::none);
  state_meanings(options, image);
}

RegularizerOptions guessed_regularizers(const ImageOptions& image) {
  auto guessed = image.regularizers;
  const std::map<std::string, double RegularizerOptions::*> strengths = {{"sparsity", &RegularizerOptions::sparsity},
                                                                         {"tv", &RegularizerOptions::tv},
                                                                         {"tsv", &RegularizerOptions::tsv},
                                                                         {"entropy", &RegularizerOptions::entropy},
                                                                         {"tv-channel", &RegularizerOptions::tv_channel},
                                                                         {"edge-clamp", &RegularizerOptions::edge_clamp},
                                                                         {"psd", &RegularizerOptions::psd},
                                                                         {"uv-sparsity", &RegularizerOptions::uv_sparsity}};
  for (const auto& [name, strength] : strengths) guessed.*strength = 0;
  std::istringstream names(image.guess_lambda);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = strengths.find(name);
    if (found == strengths.end()) {
      throw UsageError(error_text("--guess-lambda", name, "is none of the regularisers",
                                  "name sparsity, tv, tsv, entropy, tv-channel, edge-clamp, psd or uv-sparsity"));
    }
    if (image.regularizers.*found->second != 0) {
      throw UsageError(error_text("--guess-lambda", name, fmt::format("given with --{}", name), "leave one of them out"));
    }
    guessed.*found->second = 1;
  }
  return guessed;
}

void settle(ImageOptions& image) {
  settle(image.output);
  settle(image.data);
  const auto chosen = choose_optimizer(image);
  if (!image.epochs) image.epochs = chosen.usual_epochs();
  const auto& r = image.regularizers;
  if (in_fit(image, &RegularizerOptions::psd) && !r.psd_length) {
    throw UsageError(
        error_text("--psd-length", "missing", "--psd needs the length scale of its power spectrum", "add --psd-length ARCSEC"));
  }
  if (in_fit(image, &RegularizerOptions::uv_sparsity) && !r.uv_sparsity_q_max) {
    throw UsageError(error_text("--uv-sparsity-q-max", "missing", "--uv-sparsity needs to know where it begins",
                                "add --uv-sparsity-q-max LAMBDA"));
  }
  if (image.noise != "gaussian" && image.likelihood != "loose") {
    throw UsageError(error_text("--noise", image.noise,
                                fmt::format("the {} likelihood is for Gaussian noise alone", image.likelihood),
                                "add --likelihood loose"));
  }
  if (image.optimizer == "pogm") {
    if (const auto why = obstacle_to_pogm(image); !why.empty())
      throw UsageError(error_text("--optimizer", image.optimizer, why, "leave it out, or choose adam"));
  }
  if (image.batch_size && image.optimizer == "lbfgs") {
    throw UsageError(error_text("--batch-size", fmt::format("{}", *image.batch_size), "L-BFGS compares values of the same data",
                                "add --optimizer adam or leave this out"));
  }
  if (!image.data.more_data.empty() && image.mode == "cube") {
    throw UsageError(
        error_text("--more-data", "given with --mode cube", "several files make one continuum image", "leave one of them out"));
  }
  const auto cuda = find_backend(c10::DeviceType::CUDA);
  if (image.step == "captured" && !(cuda && cuda->compiled_in())) {
    throw UsageError(error_text("--step", image.step, "this build records no CUDA graphs", "use --step auto"));
  }
  parse_stop_relative(image.stop_relative);
  const auto start = parse_start(image.start);
  if (const auto* file = std::get_if<StartFile>(&start))
    image.start = std::filesystem::absolute(file->path).lexically_normal().string();
  for (auto* path : {&image.mask, &image.kernel_folder}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  }
}

StopRelative parse_stop_relative(const std::string& text) {
  if (text.empty()) return {};
  StopRelative stop;
  const auto colon = text.find(':');
  stop.change = parse_number("stop-relative", text.substr(0, colon), Range::positive());
  if (colon != std::string::npos) {
    stop.window = parse_integer("stop-relative", text.substr(colon + 1), Range::between(1, 1e15));
  }
  return stop;
}

}  // namespace mpol::cli
