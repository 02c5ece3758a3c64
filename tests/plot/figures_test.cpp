#include "catch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include <ATen/ops/allclose.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/figures/comparison_figure.h>
#include <mpol_cpp/plot/figures/coverage_figure.h>
#include <mpol_cpp/plot/figures/error_figure.h>
#include <mpol_cpp/plot/figures/filter_figure.h>
#include <mpol_cpp/plot/gnuplot_script.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/plot/panel_geometry.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/polar_figure.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/plot/figures/scan_figure.h>
#include <mpol_cpp/plot/figures/split_figure.h>
#include <mpol_cpp/plot/figures/training_figure.h>
#include <mpol_cpp/plot/figures/visibility_figure.h>

#include "figure_folder.h"
#include "picture.h"
#include "random.h"

using namespace mpol;
using namespace mpol::plot;
using namespace mpol::testing;

namespace {

std::string script_in(const FigureFolder& folder, const std::string& stem) {
  std::ifstream file(script_of(folder / (stem + ".png")), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A point source to the East of the phase centre with noise of the given weight.
Visibilities point_source(std::int64_t nvis, double east, double weight, std::uint64_t seed) {
  const auto u = (uniform({nvis}, torch::kFloat64, seed) - 0.5) * 4e5,
             v = (uniform({nvis}, torch::kFloat64, seed + 1) - 0.5) * 4e5;
  const auto phase = -2 * units::pi * u * east * units::arcsec;
  const auto noise = normal({nvis}, torch::kComplexDouble, seed + 2) * std::sqrt(2 / weight);
  return {Baselines::in_lambda(u, v), at::polar(torch::ones_like(u), phase) + noise,
          torch::full({nvis}, weight, torch::kFloat64)};
}

}  // namespace

TEST_CASE("a colour norm keeps the ends, grows, and treats both signs alike", "[plot][quick]") {
  const auto stretch = GENERATE(Stretch::linear, Stretch::power, Stretch::asinh);
  const ColorNorm norm{.stretch = stretch, .gamma = 0.4, .softening = 0.05};
  CHECK(color_place(-2, -2, 6, norm, ColorScale::sequential) == 0);
  CHECK(color_place(6, -2, 6, norm, ColorScale::sequential) == Approx(1));
  CHECK(color_place(-9, -2, 6, norm, ColorScale::sequential) == 0);
  CHECK(color_place(9, -2, 6, norm, ColorScale::sequential) == Approx(1));
  CHECK(std::isnan(color_place(NAN, -2, 6, norm, ColorScale::sequential)));
  double before = -1;
  for (int quarter = -8; quarter <= 24; ++quarter) {
    const double place = color_place(quarter / 4.0, -2, 6, norm, ColorScale::sequential);
    CHECK(place > before);
    before = place;
  }
  CHECK(color_place(0, -3, 3, norm, ColorScale::diverging) == Approx(0.5));
  for (const double value : {0.01, 0.7, 2.9, 5.0}) {
    const double up = color_place(value, -3, 3, norm, ColorScale::diverging);
    CHECK(up + color_place(-value, -3, 3, norm, ColorScale::diverging) == Approx(1));
    CHECK(up > 0.5);
  }
  // The definitions themselves.
  CHECK(color_place(0.25, 0, 1, {.stretch = Stretch::power, .gamma = 0.5}, ColorScale::sequential) == Approx(0.5));
  CHECK(color_place(0.1, 0, 1, {.stretch = Stretch::asinh, .softening = 0.02}, ColorScale::sequential) ==
        Approx(std::asinh(5.0) / std::asinh(50.0)));
}

TEST_CASE("ticks of a stretched bar are round, apart, and include zero", "[plot][quick]") {
  const ColorNorm norm{.stretch = Stretch::asinh, .softening = 0.02};
  const double lower = GENERATE(0.0, -3.7e-5, -80.0), upper = GENERATE(9.3e-5, 41.0);
  if (-lower > upper) return;
  const auto place = [&](double value) { return color_place(value, lower, upper, norm, ColorScale::sequential); };
  const auto ticks = stretched_ticks(lower, upper, place, 0.08);
  REQUIRE(ticks.size() >= 3);
  bool zero = false;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    CHECK(ticks[i].value >= lower);
    CHECK(ticks[i].value <= upper);
    zero = zero || ticks[i].label == "0";
    if (i > 0) CHECK(place(ticks[i].value) - place(ticks[i - 1].value) >= 0.08);
  }
  CHECK(zero);
}

TEST_CASE("gnuplot stretches colours as colour bars say", "[plot]") {
  const auto norm = GENERATE(ColorNorm{.stretch = Stretch::power, .gamma = 0.5}, ColorNorm{.stretch = Stretch::asinh});
  const auto scale = GENERATE(ColorScale::sequential, ColorScale::diverging);
  const FigureFolder folder;
  const GridCoords coords(0.1, 2);
  ImageFigureOptions options;
  options.norm = norm;
  options.scale = scale;
  options.lower = -1, options.upper = 1;
  options.scale_bar = ScaleBar{0.01, ""};
  const auto image = torch::tensor({{0.05, 0.05}, {0.05, 0.05}}, torch::kFloat64);
  const auto table = color_table(scale);
  const auto expected = table[static_cast<std::size_t>(std::lround(color_place(0.05, -1, 1, norm, scale) * 255))];
  REQUIRE(write_figure(folder / "image.png", image_page(image, coords, options)));
  const auto picture = read_png(folder / "image.png");
  const auto* middle = picture.pixels.data() + 3 * ((picture.height / 2) * picture.width + 2 * picture.width / 5);
  INFO(int(middle[0]) << " " << int(middle[1]) << " " << int(middle[2]));
  CHECK(std::abs(middle[0] - expected.red) <= 3);
  CHECK(std::abs(middle[1] - expected.green) <= 3);
  CHECK(std::abs(middle[2] - expected.blue) <= 3);
}

TEST_CASE("a cropped panel shows the same sky at the same place", "[plot][quick]") {
  const GridCoords coords(0.1, 32);
  ImagePanel panel;
  panel.values = coords.sky_x();
  panel.extent = coords.img_ext();
  crop(panel, 0.45);
  REQUIRE(panel.values.sizes() == torch::IntArrayRef({9, 9}));
  const double width = (panel.extent[1] - panel.extent[0]) / 9;
  for (std::int64_t column = 0; column < 9; ++column) {
    const double east = panel.extent[0] + (static_cast<double>(column) + 0.5) * width;
    CHECK(panel.values[0][column].item<double>() == Approx(east).margin(1e-6));
    CHECK(std::abs(east) <= 0.45);
  }
  CHECK(panel.extent[3] - panel.extent[2] == Approx(0.9));
  ImagePanel whole;
  whole.values = coords.sky_x();
  whole.extent = coords.img_ext();
  CHECK_NOTHROW(crop(whole, 100));
  CHECK(whole.values.size(0) == 32);
  whole.extent = {1.0, 0.5, 0.5, 1.0};
  CHECK_THROWS_AS(crop(whole, 0.1), ValueError);
}

TEST_CASE("each channel of a cube's figure has its own beam", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.1, 32);
  ImageFigureOptions options;
  options.beams = {{0.3, 0.2, 0.1}, {0.8, 0.5, 0.1}};
  write_figure(folder / "cube.png", image_page(random_image(coords, 2, torch::kFloat32, 1), coords, options));
  const auto script = script_in(folder, "cube");
  const auto outline = [&script](std::size_t from) {
    const auto begin = script.find("polygon from", from);
    REQUIRE(begin != std::string::npos);
    return script.substr(begin, script.find('\n', begin) - begin);
  };
  CHECK(outline(0) != outline(script.find("polygon") + 1));
  options.beams.pop_back();
  CHECK_THROWS_AS(write_figure(folder / "cube.png", image_page(random_image(coords, 2, torch::kFloat32, 1), coords, options)),
                  ShapeError);
}

TEST_CASE("a cube's figure shows the channels that are asked for", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.05, 16);
  ImageFigureOptions options;
  options.channels = {4, 1};
  write_figure(folder / "cube.png", image_page(random_image(coords, 6, torch::kFloat32, 1), coords, options));
  const auto script = script_in(folder, "cube");
  CHECK_THAT(script, ContainsSubstring("channel 4"));
  CHECK_THAT(script, ContainsSubstring("channel 1"));
  CHECK_THAT(script, !ContainsSubstring("channel 0"));
  options.channels = {6};
  CHECK_THROWS_AS(write_figure(folder / "cube.png", image_page(random_image(coords, 6, torch::kFloat32, 1), coords, options)),
                  ValueError);
}

TEST_CASE("binned visibilities: amplitude without its noise bias, phase, and errors that hold", "[plot][quick]") {
  const double east = 0.05, weight = 4;
  const auto bins = binned_visibilities(point_source(200000, east, weight, 21), 8);
  REQUIRE(bins.q.size() == 8);
  double chi_squared = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(bins.amplitude[i] == Approx(1).margin(6 * bins.amplitude_error[i]));
    chi_squared += std::pow((bins.amplitude[i] - 1) / bins.amplitude_error[i], 2);
    CHECK(bins.amplitude_error[i] < 0.02);
  }
  CHECK(chi_squared < 25);  // 7 degrees of freedom
  CHECK(chi_squared > 0.5);
  // The source lies in the East: u and its phase average out over a ring, but a source at the phase centre has phase 0.
  const auto centered = binned_visibilities(point_source(200000, 0, weight, 22), 8);
  for (std::size_t i = 0; i < 7; ++i) CHECK(centered.phase[i] == Approx(0).margin(5 * centered.phase_error[i]));

  // One sample and its Hermitian partner give the same, whichever half was observed.
  const auto one = [](double sign) {
    const auto u = torch::tensor({3e4 * sign}, torch::kFloat64), v = torch::tensor({4e4 * sign}, torch::kFloat64);
    const auto data = at::complex(torch::tensor({3.0}, torch::kFloat64), torch::tensor({sign * 3.0}, torch::kFloat64));
    return binned_visibilities({Baselines::in_lambda(u, v), data, torch::full({1}, 1e4, torch::kFloat64)}, 1);
  };
  CHECK(one(1).phase[0] == Approx(45));
  CHECK(one(-1).phase[0] == Approx(45));
  CHECK(one(1).q[0] == Approx(5e4));
  CHECK_THROWS_AS(binned_visibilities(point_source(10, 0, 1, 23), 0), ValueError);
}

TEST_CASE("a model is drawn with its own amplitudes and phases, however faint beside the noise", "[plot][quick]") {
  const auto noisy = point_source(4000, 0, 1e-2, 31);  // of 1 Jy, sigma is 10 Jy
  const auto model = Visibilities(
      noisy.baselines(), at::polar(torch::full_like(noisy.weights(), 2), torch::ones_like(noisy.weights())), noisy.weights());
  VisibilityFigureOptions options;
  options.model = model;
  const auto page = visibility_page(noisy, options);
  const auto& amplitude = std::get<CurvePanel>(page.panels[1]).curves.back();
  REQUIRE(amplitude.label == "model");
  CHECK(amplitude.y.size() > 30);
  for (const double y : amplitude.y) CHECK(y == Approx(2));
  for (const double y : std::get<CurvePanel>(page.panels[2]).curves.back().y) CHECK(std::abs(y) < 180 / units::pi + 1e-9);
}

TEST_CASE("the legend goes where there is room", "[plot][quick]") {
  CurvePanel panel;
  panel.curves.push_back({"a", CurveStyle::line, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}});
  auto corner = legend_corner(panel);
  CHECK(corner.right != corner.top);  // not at the ends of the rising line
  panel.curves[0].y = {4, 3, 2, 1, 0};
  corner = legend_corner(panel);
  CHECK(corner.right == corner.top);
  panel.curves[0] = {"a", CurveStyle::points, {2}, {4}};
  panel.y_range = {{0, 5}};
  CHECK(!legend_corner(panel).top);  // which would hide the only point
}

TEST_CASE("error bars are inside the axes, and a logarithmic axis is not stretched by them", "[plot][quick]") {
  CurvePanel panel;
  panel.curves.push_back({"", CurveStyle::points, {1, 2}, {1, 2}, {0.5, 3}});
  const auto linear = ranges_of(panel);
  CHECK(linear.y.lower < -1);
  CHECK(linear.y.upper > 5);
  panel.y_scale = AxisScale::logarithmic;
  const auto logarithmic = ranges_of(panel);
  CHECK(logarithmic.y.lower > 0.2);
  CHECK(logarithmic.y.upper > 5);
  panel.y_range = {0.5, 8.0};
  CHECK(ranges_of(panel).y.upper == 8);
  panel.x_range = {0, 3};
  CHECK(ranges_of(panel).x.upper == 3);
}

TEST_CASE("a loss that falls by decades at once leaves its axis to what comes after", "[plot][quick]") {
  EpochHistory history(1);
  for (int epoch = 0; epoch < 500; ++epoch) history[0].push_back(2 + 1e5 * std::exp(-epoch / 2.0) + 0.001 * (500 - epoch));
  const auto panel = loss_panel({"total"}, history);
  const auto ranges = ranges_of(panel);
  CHECK(ranges.y.upper < 6);
  CHECK(ranges.y.lower < 2);
  CHECK(ranges.x.lower <= 0);  // of a short fit nothing is hidden:
  history[0].resize(30);
  CHECK(ranges_of(loss_panel({"total"}, history)).y.upper > 1e5);
}

TEST_CASE("labels of logarithmic axes: powers of ten, or what is between two of them", "[plot][quick]") {
  const auto drawn_between = [](double lower, double upper) {
    Page page;
    CurvePanel panel;
    panel.y_scale = AxisScale::logarithmic;
    panel.curves.push_back({"", CurveStyle::line, {1, 2}, {lower, upper}});
    page.panels = {panel};
    return gnuplot_files(page, "figure").front().contents;
  };
  CHECK_THAT(drawn_between(3e-3, 8e-2), ContainsSubstring("'0.005' 0.005, '0.01' 0.01, '0.02' 0.02, '0.05' 0.05"));
  CHECK_THAT(drawn_between(3e-4, 2), ContainsSubstring("set ytics enhanced autofreq"));
}

TEST_CASE("points that hide behind others are left out of a figure's data", "[plot][quick]") {
  CurvePanel panel;
  const auto x = to_vector(normal({50000}, torch::kFloat64, 43)), y = to_vector(normal({50000}, torch::kFloat64, 44));
  panel.curves = {{"", CurveStyle::points, x, y}, {"", CurveStyle::line, x, y}};
  Page page{.title = "", .columns = 1, .panels = {panel}, .panel_width = 100, .panel_height = 80};
  const auto data = gnuplot_files(page, "figure").back().contents;
  const auto second = data.find("\n\n\n");
  const auto rows = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  CHECK(rows(data.substr(0, second)) < 100 * 80);
  CHECK(rows(data.substr(0, second)) > 500);
  CHECK(rows(data.substr(second)) > 50000);  // lines go through all of theirs
}

TEST_CASE("the unit of a colour bar stands beyond its widest label", "[plot][quick]") {
  const auto offset_of = [](double upper) {
    Page page;
    ImagePanel panel;
    panel.values = torch::zeros({4, 4});
    panel.extent = {1, -1, -1, 1};
    panel.upper = upper;
    panel.unit = "Jy/arcsec²";
    page.panels = {panel};
    const auto script = gnuplot_files(page, "figure").front().contents;
    const auto at = script.find("offset character ", script.find("'Jy/arcsec²'"));
    REQUIRE(at != std::string::npos);
    return std::stod(script.substr(at + 17));
  };
  CHECK(offset_of(0.01) > offset_of(1));  // 0.002 is wider than 0.2
}

TEST_CASE("maps of one scale share the colour bar at the end of their row", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.1, 8);
  write_figure(folder / "maps.png", image_page(normal({5, 8, 8}, torch::kFloat32, 40), coords));  // two rows, three and two
  const auto script = script_in(folder, "maps");
  const auto count = [&script](const std::string& text) {
    int found = 0;
    for (auto at = script.find(text); at != std::string::npos; at = script.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("\nset colorbox") == 2);
  CHECK(count("unset colorbox") == 3);
}

TEST_CASE("scripts of a series of figures are gone with it, and what else lies there stays", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.1, 8);
  write_figure(folder / "a.png", image_page(normal({8, 8}, torch::kFloat32, 41), coords), Scripts::discard);
  CHECK(std::filesystem::exists(folder / "a.png"));
  CHECK_FALSE(std::filesystem::exists(folder / "figures"));
  std::filesystem::create_directory(folder / "figures");
  std::ofstream(folder / "figures" / "notes.txt") << "mine";
  write_figure(folder / "b.png", image_page(normal({8, 8}, torch::kFloat32, 42), coords), Scripts::discard);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "figures"), {}) == 1);
}

TEST_CASE("a profile is drawn as far as there is something, and says when channels are left out", "[plot]") {
  const FigureFolder folder;
  const GridCoords coords(0.1, 64);
  const auto r = at::hypot(coords.sky_x(), coords.sky_y());
  const auto profile = radial_i(at::exp(-2 * r.square()).expand({8, 64, 64}), coords, {});
  const auto script_with = [&](std::optional<double> radius) {
    write_figure(folder / "rings.png", profile_page(profile, "Jy/arcsec²", "disc", radius));
    return script_in(folder, "rings");
  };
  const auto script = script_with({});
  const auto range = script.find("set xrange [0:");
  REQUIRE(range != std::string::npos);
  CHECK(std::stod(script.substr(range + 14)) == Approx(0.75 * std::sqrt(-2 * std::log(0.02))).epsilon(0.08));
  CHECK_THAT(script, ContainsSubstring("disc, 7 of 8 channels"));
  CHECK_THAT(script_with(2.5), ContainsSubstring("set xrange [0:2.5]"));
}

TEST_CASE("a map of radius and azimuth has its first radius at the bottom, its first azimuth on the left", "[plot][quick]") {
  const auto map = torch::arange(24, torch::kFloat64).view({2, 3, 4});
  PolarFigureOptions options;
  options.unit = "Jy";
  options.outer = 1.5;
  const auto page = polar_page(map, options);
  REQUIRE(page.panels.size() == 2);
  const auto files = gnuplot_files(page, "polar");
  const auto data = std::find_if(files.begin(), files.end(), [](const FigureFile& file) { return file.name.ends_with("2.f32"); });
  REQUIRE(data != files.end());
  std::vector<float> values(data->contents.size() / sizeof(float));
  std::memcpy(values.data(), data->contents.data(), data->contents.size());
  CHECK(values == std::vector<float>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  const auto& script = files.front().contents;
  CHECK(script.find("set xrange [0:360]") != std::string::npos);
  CHECK(script.find("set yrange [0:1.5]") != std::string::npos);
  CHECK(script.find("array=(4,3) format='%float32' endian=little origin=(45,0.25) dx=90 dy=0.5") != std::string::npos);
  CHECK(script.find("azimuth") != std::string::npos);
  CHECK(polar_page(torch::ones({40, 3, 4}), options).title == "6 of 40 channels");
  CHECK_THROWS_AS(polar_page(torch::ones({3, 4}), options), ShapeError);
}

TEST_CASE("every figure is drawn", "[plot]") {
  const FigureFolder folder;
  const auto path = folder / "figure.png";
  const GridCoords coords(0.1, 32);
  const auto visibilities = point_source(4000, 0.1, 25, 31);

  SECTION("coverage") { CHECK(write_figure(path, coverage_page(visibilities.baselines(), "uv"))); }
  SECTION("visibilities") {
    VisibilityFigureOptions options;
    options.model = visibilities;
    CHECK(write_figure(path, visibility_page(visibilities, options)));
  }
  SECTION("residuals") {
    const auto histogram = residual_histogram(normal({5000}, torch::kComplexDouble, 32));
    CHECK(write_figure(path, residual_page(histogram, "")));
  }
  SECTION("split") {
    const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
    SplitFigureOptions options;
    options.dartboard = Dartboard(coords);
    const DartboardSplit split(dataset, DartboardSplitOptions().folds(3));
    CHECK(write_figure(path, split_page(split, dataset, options)));
    options.channel = 1;
    CHECK_THROWS_AS(write_figure(path, split_page(split, dataset, options)), ValueError);
  }
  SECTION("cross-validation") {
    Scan scan;
    scan.axes = {{"sparsity", 0.5, 1, 0.01, 30, {}}, {"tv", 2, 1, 0.01, 30, {}}};
    for (int i = 0; i < 16; ++i) {
      ScanPoint point{.c = {std::pow(2.0, i % 4), std::pow(2.0, i / 4)}, .folds = {}, .cells = {}, .image = {}};
      point.folds = {{1000.0 - 10 * i, 400, 10, 0.1, 5},
                     {i == 3 ? std::numeric_limits<double>::infinity() : 900.0, 400, 10, 0.1, 5}};
      point.image = random_image(coords, 1, torch::kFloat32, 40 + static_cast<std::uint64_t>(i))[0];
      scan.points.push_back(std::move(point));
    }
    scan.choose();
    const auto scores = scan_page(scan), images = gallery_page(scan, coords);
    CHECK(write_figure(path, scores));
    CHECK(write_figure(path, images));
    // A panel for each lambda: for each value of the other a line and its points; then the choice. The diverged
    // point is nowhere.
    REQUIRE(scores.panels.size() == 2);
    const auto& panel = std::get<CurvePanel>(scores.panels[0]);
    CHECK(panel.curves.size() == 2 * 4 + 1);
    CHECK(panel.curves.back().x == std::vector<double>{8, 8});
    for (const auto& curve : panel.curves) {
      for (const double y : curve.y) CHECK(std::isfinite(y));
    }
    for (auto& point : scan.points) point.folds[0].train = 1.1 - 0.01 * point.c[0], point.folds[0].penalty = 3 / point.c[1];
    const auto with_l_curve = scan_page(scan);
    CHECK(write_figure(path, with_l_curve));
    REQUIRE(with_l_curve.panels.size() == 3);
    const auto& l_curve = std::get<CurvePanel>(with_l_curve.panels[2]);
    CHECK(l_curve.curves[1].x.size() == 15);
    std::string marks;
    for (const auto& curve : l_curve.curves) marks += curve.label + ";";
    for (const auto* words : {"chosen", "χ²/2N nearest 1", "L-curve's corner"}) CHECK(marks.find(words) != std::string::npos);
    // The best twelve of sixteen, the chosen one among them and marked.
    CHECK(images.panels.size() == 12);
    CHECK(std::get<ImagePanel>(images.panels.back()).title == "chosen: sparsity 8, tv 8: 1.0938");
    // A source within a wide field: the square around it.
    for (auto& point : scan.points) {
      point.image = at::zeros({32, 32}, torch::kFloat32);
      point.image[16][12] = 1;  // 0.4" East
    }
    const auto narrow = gallery_page(scan, coords);
    const auto& map = std::get<ImagePanel>(narrow.panels.front());
    CHECK(map.values.size(0) < 20);
    CHECK(map.extent[0] > 0.4);
    CHECK(map.extent[0] < 1);
    CHECK_THROWS_AS(scan_page(Scan()), ValueError);
    CHECK_THROWS_AS(gallery_page(Scan(), coords), ValueError);
  }
  SECTION("structures") {
    const auto cube = random_image(coords, 2, torch::kFloat64, 60);
    auto filled = cube.clone();
    filled[1].slice(0, 10, 14).slice(1, 20, 24).fill_(0.05);
    const StructureFigure figure{"clump", cube.ne(filled), cube, filled, 0.5 * (cube + filled)};
    const auto page = structure_page({figure, figure}, coords);
    CHECK(write_figure(path, page));
    REQUIRE(page.panels.size() == 8);
    const auto& image = std::get<ImagePanel>(page.panels[0]);
    const auto& surrogate = std::get<ImagePanel>(page.panels[1]);
    CHECK(image.title == "clump, channel 1");  // that from which something was taken
    CHECK(at::equal(surrogate.values, filled[1]));
    CHECK(surrogate.upper == image.upper);
    CHECK(image.contours->values.sum().item<double>() == 16);
    const auto& difference = std::get<ImagePanel>(page.panels[3]);
    CHECK(at::allclose(difference.values, 0.5 * (cube - filled)[1]));
    CHECK(difference.lower == -difference.upper);
    CHECK_THROWS_AS(structure_page({}, coords), ValueError);
  }
  SECTION("training") {
    TrainingFigure figure(coords);
    figure.image = random_image(coords, 3, torch::kFloat32, 33);
    figure.change = figure.gradient = normal({3, 32, 32}, torch::kFloat32, 34);
    figure.loss_names = {"total", "nll"};
    figure.loss_history = {{3, 2, 1}, {2, 1, -1}};
    figure.learning_rate = {0.3, 0.3, 0.2};
    figure.flux = {{1, 2, 3}, {1, 2, 2}};
    CHECK(write_figure(path, training_page(figure)));
    CHECK(read_png(path).width == 3 * 620);
    CHECK(read_png(path).height == 2 * 520);
    figure.learning_rate = {0.3, 0.3, 0.3};  // needs no panel
    figure.flux.clear();
    figure.gradient = Tensor();
    CHECK(write_figure(path, training_page(figure)));
    CHECK(read_png(path).height == 520);
    CHECK_THROWS_AS(write_figure(path, training_page(TrainingFigure(coords))), ValueError);
  }
  SECTION("profiles") {
    const auto image = radial_i(random_image(coords, 2, torch::kFloat64, 35), coords, {});
    CHECK(write_figure(path, profile_page(image, "Jy/arcsec²", "")));
    CHECK(write_figure(path, profile_page(radial_v(visibilities, {}), "")));
  }
  SECTION("comparison") {
    const auto a = random_image(coords, 2, torch::kFloat32, 36);
    ComparisonFigureOptions options;
    options.half_width = 1;
    CHECK(write_figure(path, comparison_page(a, 1.1 * a, coords, options)));
    CHECK_THROWS_AS(write_figure(path, comparison_page(a, a.narrow(0, 0, 1), coords, options)), ShapeError);
    options.channel = 2;
    CHECK_THROWS_AS(write_figure(path, comparison_page(a, a, coords, options)), ValueError);
  }
  CHECK(read_png(path).width > 400);
}

TEST_CASE("the responses of filters are drawn with their peaks, the highest where there are many", "[plot][quick]") {
  std::vector<FilterCurve> curves;
  curves.reserve(9);
  for (int i = 0; i < 9; ++i)
    curves.push_back({"t" + std::to_string(i), {1, 2, 3}, {0, i == 2 ? 20.0 : static_cast<double>(i), 1}});
  const auto page = filter_page({curves[4]}, "channel", "one");
  const auto& panel = std::get<CurvePanel>(page.panels[0]);
  CHECK(page.title == "one");
  CHECK(panel.x_label == "channel");
  std::vector<double> levels;
  for (const auto& curve : panel.curves) {
    if (curve.style == CurveStyle::guide) levels.push_back(curve.y[0]);
    if (curve.style == CurveStyle::points) CHECK((curve.x == std::vector<double>{2} && curve.y == std::vector<double>{4}));
    if (curve.style == CurveStyle::line) CHECK(curve.label == "t4: 4 σ");
  }
  CHECK(levels == std::vector<double>{0, 5, -5});
  const auto many = filter_page(curves, "channel");
  CHECK(many.title == "the 6 highest of 9 templates");
  std::vector<std::string> names;
  for (const auto& curve : std::get<CurvePanel>(many.panels[0]).curves)
    if (!curve.label.empty()) names.push_back(curve.label.substr(0, 2));
  CHECK(names == std::vector<std::string>{"t2", "t4", "t5", "t6", "t7", "t8"});
  CHECK_THROWS_AS(filter_page({}, "channel"), ValueError);
  CHECK_THROWS_AS(filter_page({{"short", {1, 2}, {1}}}, "channel"), ValueError);
}
