#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/nan_to_num.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/any_fits.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/plot/terminal_picture.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp show_help = {
    "show", "Show an image in the terminal",
    "Example:\n  mpol show disc/image.fits\n  mpol show disc/residual.fits --format blocks --width 60"};

/// How an image is drawn in a terminal.
enum class PictureFormat { blocks, text, sixel, kitty };
/// Nothing is as the terminal says.
constexpr auto format_choices = std::to_array<NamedChoice<std::optional<PictureFormat>>>({{"auto", std::nullopt},
                                                                                          {"blocks", PictureFormat::blocks},
                                                                                          {"text", PictureFormat::text},
                                                                                          {"sixel", PictureFormat::sixel},
                                                                                          {"kitty", PictureFormat::kitty}});
constexpr auto shown_color_choices = std::to_array<NamedChoice<ColorChoice>>({{"auto", ColorChoice::automatic},
                                                                              {"linear", ColorChoice::linear},
                                                                              {"asinh", ColorChoice::asinh},
                                                                              {"symmetric", ColorChoice::symmetric}});

struct ShowOptions {
  std::filesystem::path image, positional_image;
  std::optional<PictureFormat> format;
  ColorChoice norm = ColorChoice::automatic;
  std::optional<std::int64_t> channel, width;
  bool json = false;
};

void declare(OptionSet& options, ShowOptions& show) {
  options.app().add_option("IMAGE", show.positional_image, "FITS image or cube")->type_name("FILE");
  options.path("--image", show.image, "The same as IMAGE", Record::none);
  options.choice(
      "--format", show.format, format_choices,
      "Half blocks in 24-bit colors, characters without, or the graphics of terminals that have them; auto: as the terminal says",
      Record::none);
  options.choice(
      "--norm", show.norm, shown_color_choices,
      "How values become colors; auto: symmetric where negative values reach half as far as positive ones, else linear",
      Record::none);
  options.integer("--channel", show.channel, Range::between(0, 1e9), "Of a cube, from 0; default: the middle one", Record::none);
  options.integer("--width", show.width, Range::between(1, 4000),
                  "Columns, or pixels of sixel and kitty; default: the terminal's", Record::none);
  options.flag("--json", show.json, "Print size, unit and range as JSON on stdout instead", Record::none);
  options.only({"--format", "--norm", "--width"}, "without --json", [&show] { return !show.json; });
}

/// The columns of the terminal on stdout; 80 where there is none.
std::int64_t terminal_columns() {
  winsize size = {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What the terminal says of itself; characters where stdout is none, or NO_COLOR asks for none.
PictureFormat format_of_terminal() {
  if (::isatty(STDOUT_FILENO) == 0 || !variable("NO_COLOR").empty()) return PictureFormat::text;
  const auto terminal = variable("TERM"), program = variable("TERM_PROGRAM");
  if (terminal == "xterm-kitty" || terminal == "xterm-ghostty" || !variable("KITTY_WINDOW_ID").empty())
    return PictureFormat::kitty;
  if (terminal.find("sixel") != std::string::npos || terminal.starts_with("foot") || terminal == "mlterm" || program == "WezTerm")
    return PictureFormat::sixel;
  return PictureFormat::blocks;
}

/// The image with that many columns at most, means over what falls together; North up, East left.
plot::TerminalPicture picture_of(const Tensor& image, std::int64_t columns, ColorChoice norm) {
  const bool fits = image.size(1) <= columns;
  const auto rows =
      std::max<std::int64_t>(1, fits ? image.size(0)
                                     : std::llround(static_cast<double>(image.size(0)) * static_cast<double>(columns) /
                                                    static_cast<double>(image.size(1))));
  const auto small = fits ? image : at::adaptive_avg_pool2d(image.unsqueeze(0), {rows, columns})[0];
  const auto values = small.flip(0).contiguous();
  const double high = values.max().item<double>(), low = values.min().item<double>();
  const bool symmetric = norm == ColorChoice::symmetric || (norm == ColorChoice::automatic && -low > 0.5 * high);
  const auto scale = symmetric ? plot::ColorScale::diverging : plot::ColorScale::sequential;
  const auto ends = plot::panel_style(values, scale);
  plot::ColorNorm stretch;
  if (norm == ColorChoice::asinh) stretch.stretch = plot::Stretch::asinh;
  const auto table = plot::color_table(scale);
  plot::TerminalPicture picture{values.size(1), values.size(0), {}};
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double place = plot::color_place(values.const_data_ptr<double>()[i], ends.lower, ends.upper, stretch, scale);
    picture.pixels.push_back(table[static_cast<std::size_t>(std::clamp(place * 255, 0.0, 255.0))]);
  }
  return picture;
}

std::string drawn(const plot::TerminalPicture& picture, PictureFormat format) {
  switch (format) {
    case PictureFormat::kitty:
      return plot::kitty_graphics(picture);
    case PictureFormat::sixel:
      return plot::sixels(picture);
    case PictureFormat::blocks:
      return plot::half_blocks(picture);
    case PictureFormat::text:
      break;
  }
  return plot::characters(picture);
}

int show(ShowOptions& options, const OptionSet& settings) {
  settings.check_meaning();
  if (!options.positional_image.empty()) options.image = options.positional_image;
  if (options.image.empty())
    throw UsageError(error_text("IMAGE", "missing", "there must be an image to show", "name a FITS file"));
  const auto read = io::read_any_fits(options.image);
  const auto& fits = read.image;
  const auto channels = fits.cube.size(0), channel = options.channel.value_or(channels / 2);
  if (channel >= channels) {
    throw UsageError(error_text("--channel", fmt::format("{}", channel),
                                fmt::format("the file has channels 0 to {}", channels - 1), "name one of them"));
  }
  const auto image = at::nan_to_num(fits.cube[channel].to(torch::kFloat64), 0.0, 0.0, 0.0);
  const double peak = image.max().item<double>(), least = image.min().item<double>();
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"file", options.image.string()}, {"channels", channels}, {"channel", channel}, {"rows", image.size(0)},
        {"columns", image.size(1)},       {"unit", fits.unit},    {"largest", peak},    {"least", least}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return exit_done;
  }
  const auto format = options.format ? *options.format : format_of_terminal();
  const bool in_pixels = format == PictureFormat::kitty || format == PictureFormat::sixel;
  const auto columns = options.width.value_or(in_pixels ? 8 * terminal_columns() : terminal_columns());
  fmt::print("{}", drawn(picture_of(image, std::min<std::int64_t>(columns, in_pixels ? 800 : 400), options.norm), format));
  fmt::print("{}, channel {} of {}: {} to {} {}, {:.4g}\" wide\n", options.image.filename().string(), channel, channels,
             fmt::format("{:.3g}", least), fmt::format("{:.3g}", peak), fits.unit,
             (read.lattice ? read.lattice->width() : fits.cell_size) * static_cast<double>(image.size(1)));
  if (read.lattice) fmt::print("its pixels are oblong or turned: it is drawn as they lie in the file\n");
  return exit_done;
}

}  // namespace

Verb add_show(CLI::App& program) { return add_verb<ShowOptions>(program, show_help, show); }

}  // namespace mpol::cli
