#include "catch.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/gnuplot.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/summary_figure.h>

#include "binned_amplitudes.h"
#include "compare.h"
#include "figure_folder.h"
#include "picture.h"
#include "random.h"

using namespace mpol;
using namespace mpol::plot;
using namespace mpol::testing;

namespace {

bool alike(Rgb a, Rgb b) {
  constexpr int tolerance = 12;
  return std::abs(a.red - b.red) < tolerance && std::abs(a.green - b.green) < tolerance && std::abs(a.blue - b.blue) < tolerance;
}

Rgb pixel(const Picture& picture, std::int64_t column, std::int64_t row) {
  const auto* p = picture.pixels.data() + 3 * (row * picture.width + column);
  return {p[0], p[1], p[2]};
}

/// Where the image lies in a picture whose sky is mostly dark, and where its brightest colour is, in shares of it.
struct Found {
  double left = 0, right = 0, top = 0, bottom = 0;
  double bright_across = 0, bright_down = 0;
  std::int64_t bright_pixels = 0;
};

Found look(const Picture& picture) {
  const auto table = color_table(ColorScale::sequential);
  std::vector<std::int64_t> dark(static_cast<std::size_t>(picture.width)), dark_rows(static_cast<std::size_t>(picture.height));
  for (std::int64_t row = 0; row < picture.height; ++row)
    for (std::int64_t column = 0; column < picture.width; ++column)
      dark[static_cast<std::size_t>(column)] += alike(pixel(picture, column, row), table.front());
  Found found;
  const auto is_sky = [&](std::int64_t column) { return dark[static_cast<std::size_t>(column)] > picture.height / 2; };
  std::int64_t first = 0, last = picture.width - 1;
  while (first < picture.width && !is_sky(first)) ++first;
  while (last > first && !is_sky(last)) --last;
  for (std::int64_t row = 0; row < picture.height; ++row)
    for (std::int64_t column = first; column <= last; ++column)
      dark_rows[static_cast<std::size_t>(row)] += alike(pixel(picture, column, row), table.front());
  std::int64_t top = 0, bottom = picture.height - 1;
  const auto is_row = [&](std::int64_t row) { return dark_rows[static_cast<std::size_t>(row)] > (last - first) / 2; };
  while (top < picture.height && !is_row(top)) ++top;
  while (bottom > top && !is_row(bottom)) --bottom;
  double across = 0, down = 0;
  for (auto row = top; row <= bottom; ++row) {
    for (auto column = first; column <= last; ++column) {
      if (!alike(pixel(picture, column, row), table.back())) continue;
      across += static_cast<double>(column);
      down += static_cast<double>(row);
      ++found.bright_pixels;
    }
  }
  const auto count = static_cast<double>(found.bright_pixels);
  found.left = static_cast<double>(first), found.right = static_cast<double>(last + 1);
  found.top = static_cast<double>(top), found.bottom = static_cast<double>(bottom + 1);
  found.bright_across = (across / count + 0.5 - found.left) / (found.right - found.left);
  found.bright_down = (down / count + 0.5 - found.top) / (found.bottom - found.top);
  return found;
}

/// A dark sky with a bright square of 6 x 6 pixels whose middle lies at the given offsets.
Tensor square_at(const GridCoords& coords, double east, double north) {
  const double half = 3 * coords.cell_size();
  const auto inside = ((coords.sky_x() - east).abs() < half).logical_and((coords.sky_y() - north).abs() < half);
  return inside.to(torch::kFloat64);
}

/// Collects the library's warnings.
class Warnings {
 public:
  Warnings() {
    before_ = set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::warning) texts_.emplace_back(text);
    });
  }
  ~Warnings() { set_log_sink(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  LogSink before_;
  std::vector<std::string> texts_;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a source in the North-East is drawn up and left", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 64);
  const double east = 0.925, north = 0.525;
  REQUIRE(write_figure(folder / "image.png", image_page(square_at(coords, east, north), coords)));

  const auto picture = read_png(folder / "image.png");
  CHECK(picture.width == 900);
  CHECK(picture.height == 760);
  const auto found = look(picture);
  REQUIRE(found.bright_pixels > 100);
  const auto [left, right, south, top] = coords.img_ext();
  CHECK(found.bright_across == Approx((left - east) / (left - right)).margin(0.006));
  CHECK(found.bright_down == Approx((top - north) / (top - south)).margin(0.006));
  CHECK((found.right - found.left) / (found.bottom - found.top) == Approx(1).margin(0.01));
  CHECK(found.right - found.left > 450);
}

TEST_CASE("gnuplot's script and data stay beside the figure and draw it again", "[plot]") {
  const auto gnuplot = find_gnuplot();
  REQUIRE(gnuplot);
  const FigureFolder folder;
  const GridCoords coords(0.05, 32);
  const auto image = random_image(coords, 1, torch::kFloat32, 3);
  write_figure(folder / "image.png", image_page(image, coords));
  const auto figures = folder / "figures";
  CHECK(std::filesystem::file_size(figures / "image_1.f32") == 32 * 32 * 4);
  CHECK(files_in(figures) == 3);
  Gnuplot again(*gnuplot);
  again.send(fmt::format("cd {}\nload 'image.gp'\nprint 'done'\n", quoted(figures.string())));
  REQUIRE_FALSE(again.wait_for("done", 60));
  CHECK(read_png(figures / "image.png").pixels == read_png(folder / "image.png").pixels);

  // Rows of the data go from South to North, each from West to East.
  std::vector<float> values(32 * 32);
  std::ifstream(figures / "image_1.f32", std::ios::binary).read(reinterpret_cast<char*>(values.data()), 32 * 32 * 4);
  CHECK(values[0] == image[0][0][31].item<float>());
  CHECK(values[31] == image[0][0][0].item<float>());
}

TEST_CASE("without gnuplot there are scripts and data, and a warning", "[plot]") {
  const FigureFolder folder;
  const OnlyPath nothing(folder.path());
  const Warnings warnings;
  const GridCoords coords(0.05, 32);
  const auto image = random_image(coords, 1, torch::kFloat64, 4);
  CHECK_FALSE(find_gnuplot());
  CHECK_FALSE(write_figure(folder / "image.png", image_page(image, coords)));
  CHECK_FALSE(write_figure(folder / "image.png", image_page(image, coords)));  // one warning is enough
  CHECK(files_in(folder.path()) == 1);                                         // figures/
  CHECK(std::filesystem::exists(folder / "figures" / "image.gp"));
  CHECK(files_in(folder / "figures") == 3);
  REQUIRE(warnings.texts().size() == 1);
  CHECK_THAT(warnings.texts().front(), ContainsSubstring("gnuplot is not on PATH"));
}

TEST_CASE("a gnuplot that fails, lies or hangs leaves no figure, with the reason in a warning", "[plot]") {
  // The words by which a figure is said to be there are the last command of each.
  const std::string obey = "while IFS= read -r line; do case $line in 'print '*) eval echo \"${line#print }\";; esac; done";
  const auto [commands, reason] =
      GENERATE_COPY(table<std::string, std::string>({{"echo 'line 3: out of ink' >&2; exit 4", "out of ink"},
                                                     {obey, "complete picture"},
                                                     {"exit 0", "ended with 0"},
                                                     {"while :; do :; done", "more than 1 s"},
                                                     {"kill -9 $$", "signal 9"}}));
  INFO(commands);
  const FigureFolder folder, programs;
  write_gnuplot(programs.path(), commands);
  const OnlyPath path(programs.path());
  const Warnings warnings;
  const GridCoords coords(0.05, 32);
  const auto page = image_page(random_image(coords, 1, torch::kFloat64, 5), coords);
  FigureWriter writer(Scripts::keep, 1);
  writer.add(folder / "image.png", page);
  writer.add(folder / "second.png", page);
  CHECK_FALSE(writer.finish());
  CHECK(files_in(folder.path()) == 1);
  CHECK(files_in(folder / "figures") == 5);  // two scripts, two images, colours; nothing half-drawn
  REQUIRE(warnings.texts().size() == 1);
  CHECK_THAT(warnings.texts().front(), ContainsSubstring(reason));
  CHECK(writer.finish());  // of nothing
}

TEST_CASE("a figure that gnuplot cannot draw does not take others with it", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 32);
  const auto page = image_page(random_image(coords, 1, torch::kFloat64, 5), coords);
  const Warnings warnings;
  FigureWriter writer;
  writer.add(folder / "good.png", page);
  std::filesystem::create_directories(folder / "other" / "figures");
  const auto blocked = folder / "other" / "bad.png";
  writer.add(blocked, page);
  writer.add(folder / "last.png", page);
  // A script that is gone before gnuplot reads it, or was drawn already: either is right for the others.
  std::filesystem::remove(script_of(blocked));
  writer.finish();
  CHECK(read_png(folder / "good.png").width == 900);
  CHECK(read_png(folder / "last.png").width == 900);
}

TEST_CASE("titles and paths are only text", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 32);
  ImageFigureOptions options;
  options.title = "it's'; system(\"touch pwned\") # \\ `touch pwned` $(touch pwned) {/=40 _a^b}\n!touch pwned\n";
  options.unit = "Jy'\n!touch pwned\n";
  CHECK(write_figure(folder / "a 'b' $(c).png", image_page(random_image(coords, 1, torch::kFloat64, 6), coords, options)));
  CHECK_FALSE(std::filesystem::exists(folder / "pwned"));
  CHECK_FALSE(std::filesystem::exists(folder / "figures" / "pwned"));
  CHECK(read_png(folder / "a 'b' $(c).png").width == 900);
}

TEST_CASE("of a long cube evenly spaced channels are shown, and the page says which", "[plot]") {
  CHECK(shown_channels(1, 12) == std::vector<std::int64_t>{0});
  CHECK(shown_channels(5, 12) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(shown_channels(101, 5) == std::vector<std::int64_t>{0, 25, 50, 75, 100});
  CHECK(shown_channels(7, 1) == std::vector<std::int64_t>{3});
  CHECK_THROWS_AS(shown_channels(7, 0), ValueError);

  const FigureFolder folder;
  const GridCoords coords(0.05, 16);
  ImageFigureOptions options;
  for (int channel = 0; channel < 20; ++channel) options.frequencies.push_back(230e9 + 1e6 * channel);
  write_figure(folder / "cube.png", image_page(random_image(coords, 20, torch::kFloat32, 7), coords, options));
  const auto script = text_of(folder / "figures" / "cube.gp");
  CHECK_THAT(script, ContainsSubstring("channel 0, 230 GHz"));
  CHECK_THAT(script, ContainsSubstring("channel 19, 230.019 GHz"));
  CHECK_THAT(script, ContainsSubstring("12 of 20 channels"));
  CHECK(std::filesystem::exists(folder / "figures" / "cube_12.f32"));
  CHECK_FALSE(std::filesystem::exists(folder / "figures" / "cube_13.f32"));
}

TEST_CASE("a summary page shows what it is given", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 32);
  SummaryFigure summary(coords);
  summary.title = "a run";
  summary.model = random_image(coords, 3, torch::kFloat32, 8);
  summary.dirty = summary.residual = normal({3, 32, 32}, torch::kFloat32, 9);
  summary.beam = Beam{0.3, 0.2, 0.5};
  summary.baselines =
      Baselines::in_lambda(1e5 * normal({3, 30000}, torch::kFloat32, 10), 1e5 * normal({3, 30000}, torch::kFloat32, 11));
  summary.amplitude_q = {1e4, 2e4, 3e4};
  summary.amplitude_data = {1, 0.3, 0};
  summary.amplitude_model = {1, 0.4, 0.2};
  summary.loss_names = {"total", "nll"};
  summary.loss_history = {{100, 10, 5, NAN}, {90, 9, 4, -1}};
  const auto in_jy = std::get<ImagePanel>(summary_page(summary).panels.at(2));
  CHECK(in_jy.unit == "Jy/beam");
  summary.noise = {9, 0.25, 9};
  const auto in_noise = std::get<ImagePanel>(summary_page(summary).panels.at(2));
  CHECK(in_noise.unit == "σ of noise, 0.25 Jy/beam");
  CHECK(in_noise.upper == Approx(4 * in_jy.upper));
  CHECK(in_noise.lower == -in_noise.upper);
  CHECK(relative_error(in_noise.values, in_jy.values * 4) < 1e-12);
  REQUIRE(write_figure(folder / "summary.png", summary_page(summary)));
  auto picture = read_png(folder / "summary.png");
  CHECK(picture.width == 3 * 620);
  CHECK(picture.height == 2 * 520 + 44);

  summary.dirty = summary.residual = Tensor();
  summary.baselines.reset();
  summary.amplitude_q.clear();
  write_figure(folder / "summary.png", summary_page(summary));
  picture = read_png(folder / "summary.png");
  CHECK(picture.width == 2 * 620);
  CHECK(picture.height == 520 + 44);
}

TEST_CASE("amplitudes in rings: noise added to the power is taken away again", "[plot][quick]") {
  const auto q = uniform({200000}, torch::kFloat64, 12) * 100;
  const auto weights = torch::full({200000}, 4.0, torch::kFloat64);
  const auto noise = normal({200000}, torch::kComplexDouble, 13) * std::sqrt(0.5);  // variance 1/4 in each part: w = 4
  const auto data = 0.3 + noise;
  const auto kept = binned_amplitudes(q, data, weights, NoiseBias::keep, 10);
  const auto subtracted = binned_amplitudes(q, data, weights, NoiseBias::subtract, 10);
  REQUIRE(kept.q.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(kept.q[i] == Approx(10 * static_cast<double>(i) + 5).margin(0.2));
    CHECK(kept.amplitude[i] == Approx(std::sqrt(0.09 + 0.5)).margin(0.02));
    CHECK(subtracted.amplitude[i] == Approx(0.3).margin(0.03));
  }
  CHECK(binned_amplitudes(q.narrow(0, 0, 0), data.narrow(0, 0, 0), weights.narrow(0, 0, 0), NoiseBias::keep).q.empty());
  CHECK_THROWS_AS(binned_amplitudes(q, data, weights.narrow(0, 0, 5), NoiseBias::keep), ShapeError);
}

TEST_CASE("images without meaning are refused, and nothing is left behind", "[plot][quick]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 32);
  CHECK_THROWS_AS(write_figure(folder / "x.png", image_page(torch::zeros({16, 16}), coords)), ShapeError);
  CHECK_THROWS_AS(write_figure(folder / "x.png", image_page(Tensor(), coords)), ShapeError);
  CHECK_THROWS_AS(write_figure(folder / "no" / "x.png", image_page(torch::zeros({32, 32}), coords)), FileError);
  CHECK_THROWS_AS(write_figure(folder / "x.png", Page()), ValueError);
  CHECK_THROWS_AS(write_figure(folder / "x.png", summary_page(SummaryFigure(coords))), ValueError);
  CHECK(files_in(folder.path()) == 0);

  // All equal, or not finite: drawn all the same.
  CHECK_NOTHROW(write_figure(folder / "x.png", image_page(torch::zeros({32, 32}), coords)));
  CHECK_NOTHROW(write_figure(folder / "x.png", image_page(torch::full({32, 32}, NAN), coords)));
}
