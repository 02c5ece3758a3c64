#include <mpol_cpp/cli/plots/plot_options.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/plots/plot_input.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto color_choices = std::to_array<NamedChoice<ColorChoice>>({{"auto", ColorChoice::automatic},
                                                                        {"linear", ColorChoice::linear},
                                                                        {"power", ColorChoice::power},
                                                                        {"asinh", ColorChoice::asinh},
                                                                        {"symmetric", ColorChoice::symmetric}});
constexpr auto sharing_choices =
    std::to_array<NamedChoice<CellSharing>>({{"dartboard", CellSharing::dartboard}, {"random", CellSharing::random}});

void declare_colors(OptionSet& options, PlotOptions& plot) {
  options.choice(
      "--norm", plot.norm, color_choices,
      "Images: how values become colours; symmetric: blue, white, red about zero; auto: symmetric where negative values reach "
      "half as far as positive ones (residuals, differences) and --lower is not given, else linear",
      Record::result);
  options.number("--gamma", plot.gamma, Range::positive(), "G", "Exponent of --norm power; below 1 lifts what is faint",
                 Record::result);
  options.number("--softening", plot.softening, Range::positive(), "A", "Part of the range below which --norm asinh is linear",
                 Record::result);
  options.number("--lower", plot.lower, Range::any(), "VALUE", "Images: value at the lower end of the colours", Record::result);
  options.number("--upper", plot.upper, Range::any(), "VALUE", "Images: value at the upper end of the colours", Record::result);
  options.number("--half-width", plot.half_width, Range::positive(), "ARCSEC",
                 "Images: show so much to each side of the image's middle", Record::result);
  options.flag("--no-beam", plot.no_beam, "Images: leave the beam out", Record::result);
}

void declare_visibilities(OptionSet& options, PlotOptions& plot) {
  options.text("--channels", plot.data.channels, "LIST", "Channels to draw, from 0, as in 0,3-7; default: all or evenly spaced",
               Record::result);
  options.choice("--uv-unit", plot.data.uv_unit, uv_unit_choices, "Unit of uu and vv; default: as the file says", Record::result);
  options.text("--frequency", plot.data.frequency, "HZ[,HZ...]", "Frequency of the channels", Record::result);
  declare_set(options, plot.data);
  declare_mode(options, plot.data);
  options.integer("--bins", plot.bins, Range::between(1, 100000), "Visibilities: rings of baseline length", Record::result);
  options.number("--cell-size", plot.data.cell_size, Range::positive(), "ARCSEC",
                 "Residuals and split: width of a pixel; default: as mpol inspect suggests", Record::result);
  options.integer("--npix", plot.data.npix, Range::between(2, 65536), "Residuals and split: pixels along each axis, even",
                  Record::result);
  options.choice("--split", plot.split, sharing_choices, "Split: how cells are shared among folds", Record::result);
  options.integer("--folds", plot.folds, Range::between(2, 1000), "Split: number of folds; the first five are drawn",
                  Record::result);
  options.integer("--seed", plot.seed, Range::between(0, 1e15), "Split: of the random choice", Record::result);
}

void check_figure_file(const PlotOptions& options) {
  const auto& out = options.output.out;
  if (out.empty()) throw UsageError(error_text("--out", "missing", "the figure needs a file", "add -o FIGURE.png"));
  const auto refuse = [&out](const std::string& limit, const std::string& remedy) {
    throw FileError(error_text("figure", out.string(), limit, remedy));
  };
  if (out.extension() != ".png") {
    throw UsageError(error_text("--out", out.string(), "figures are PNG files", "let the name end in .png"));
  }
  if (fs::is_directory(out)) refuse("is a folder", "name a file");
  if (fs::exists(out) && !options.output.overwrite) refuse("is there already", "choose another name, or --overwrite");
  if (!fs::is_directory(out.parent_path())) refuse("its folder is not there", "make the folder, or choose another one");
}

void state_meanings(OptionSet& options, const PlotOptions& plot) {
  const auto is = [&plot](std::initializer_list<PlotKind> kinds) {
    return [&plot, kinds = std::vector<PlotKind>(kinds)] {
      return std::find(kinds.begin(), kinds.end(), plot.found.kind) != kinds.end();
    };
  };
  const auto images = is({PlotKind::image, PlotKind::comparison});
  const auto of_visibilities = [&plot,
                                is_one = is({PlotKind::visibilities, PlotKind::uv, PlotKind::residuals, PlotKind::split})] {
    return is_one() && plot.found.file.extension() != ".csv";
  };
  const auto on_grid = [&plot, is_one = is({PlotKind::residuals, PlotKind::split})] {
    return is_one() && plot.found.file.extension() != ".csv";
  };
  options.only({"--norm", "--lower", "--upper", "--half-width"}, "for images", images);
  options.only({"--norm"}, "for one image where it is symmetric",
               [&plot] { return plot.norm != ColorChoice::symmetric || plot.found.kind == PlotKind::image; });
  options.only({"--gamma"}, "with --norm power", [&plot] { return plot.norm == ColorChoice::power; });
  options.only({"--softening"}, "with --norm asinh", [&plot] { return plot.norm == ColorChoice::asinh; });
  options.only({"--no-beam"}, "for one image", is({PlotKind::image}));
  options.only({"--title"}, "for one input", [&plot] { return plot.found.kind != PlotKind::comparison; });
  options.only({"--channels"}, "for images and visibilities",
               [images, of_visibilities] { return images() || of_visibilities(); });
  options.only({"--uv-unit", "--frequency"}, "for visibilities", of_visibilities);
  options.only({"--bins"}, "with --kind visibilities", is({PlotKind::visibilities}));
  options.only({"--cell-size", "--npix"}, "for residuals of visibilities, and with --kind split", on_grid);
  options.only({"--split", "--folds", "--seed"}, "with --kind split", is({PlotKind::split}));
}

}  // namespace

plot::ColorNorm PlotOptions::color_norm() const {
  const auto stretch = norm == ColorChoice::power   ? plot::Stretch::power
                       : norm == ColorChoice::asinh ? plot::Stretch::asinh
                                                    : plot::Stretch::linear;
  return {.stretch = stretch, .gamma = gamma, .softening = softening};
}

void declare(OptionSet& options, PlotOptions& plot) {
  options.app()
      .add_option("INPUT", plot.input,
                  "An image (.fits), visibilities (.npz or a measurement set), a table of mpol (.csv), or the OUT of a run")
      ->type_name("FILE");
  options.app().add_option("SECOND", plot.second, "An image on the same grid to compare with")->type_name("FILE");
  options.choice("--kind", plot.kind, plot_kind_choices, "What to draw; auto: what suits the input", Record::result);
  options.text("--title", plot.title, "TEXT", "Above the figure", Record::result);
  declare_colors(options, plot);
  declare_visibilities(options, plot);
  declare_threads(options, plot.data.threads);
  declare(options, plot.output);
  options.describe("--out", "The figure, a .png file; gnuplot's script and data go to figures/ beside it");
  options.describe("--overwrite", "Replace the figure when it is there already");
  options.describe("--json", "Print what was drawn as JSON on stdout instead of words");
  state_meanings(options, plot);
}

void settle(PlotOptions& options) {
  if (options.input.empty()) {
    throw UsageError(error_text("INPUT", "missing", "there must be something to draw", "name a file or the OUT of a run"));
  }
  options.input = fs::absolute(options.input).lexically_normal();
  if (!options.second.empty()) options.second = fs::absolute(options.second).lexically_normal();
  if (!options.output.out.empty()) options.output.out = fs::absolute(options.output.out).lexically_normal();
  if (options.lower && options.upper && !(*options.lower < *options.upper)) {
    throw UsageError(error_text("--lower", fmt::format("{}", *options.lower),
                                fmt::format("must be below --upper {}", *options.upper), "swap them"));
  }
  if (options.norm == ColorChoice::symmetric && options.lower) {
    throw UsageError(error_text("--lower", fmt::format("{}", *options.lower), "--norm symmetric runs from -upper to upper",
                                "give --upper alone"));
  }
  if (options.data.npix && *options.data.npix % 2 != 0) {
    throw UsageError(error_text("--npix", fmt::format("{}", *options.data.npix), "must be even",
                                fmt::format("use --npix {}", *options.data.npix + 1)));
  }
  parse_channels(options.data.channels);
  check(options.data.set);
  check_figure_file(options);
}

}  // namespace mpol::cli
