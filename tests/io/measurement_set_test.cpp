#include "catch.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/measurement_set/model_column.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>

#include "set_writer.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr int rr = 5, ll = 8, xx = 9, xy = 10, yx = 11, yy = 12;
using Complex = std::complex<float>;

/// A row whose hands all have one value and weight in every channel.
TestRow flat_row(const TestSet& set, int window, Complex value, float weight, double u = 100, double v = -50) {
  const auto& of = set.windows[static_cast<std::size_t>(window)];
  TestRow row;
  row.window = window;
  row.uvw = {u, v, 7};
  row.data.assign(of.frequencies.size() * of.correlations.size(), value);
  row.weight.assign(of.correlations.size(), weight);
  return row;
}

io::CollectedVisibilities read_samples(const std::filesystem::path& path, const io::MeasurementSetOptions& options = {}) {
  const auto reader = io::open_measurement_set(path, options);
  return io::collect_samples(*reader, io::SampleOrigins::keep);
}

c10::complex<double> datum(const Visibilities& visibilities, std::int64_t channel, std::int64_t sample) {
  return visibilities.data()[channel][sample].item<c10::complex<double>>();
}

double weight_of(const Visibilities& visibilities, std::int64_t sample) {
  return visibilities.weights()[0][sample].item<double>();
}

template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

io::MeasurementSetOptions stokes(const std::string& name) {
  io::MeasurementSetOptions options;
  options.polarization.polarization = io::polarization_from_name(name);
  return options;
}

}  // namespace

TEST_CASE("windows of different shapes become samples at their own u, v, with conjugated values", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{3e9, 2e9, 1e9}, {xx, xy, yx, yy}, 1}, {{5e9}, {rr, ll}, 1}};
  auto first = flat_row(set, 0, {0, 0}, 1);
  first.weight = {1, 9, 9, 3};
  for (std::size_t c = 0; c < 3; ++c) {  // I = (1 * 2 + 3 * 6)/4 = 5 for c = 0
    first.data[4 * c] = {2 + static_cast<float>(c), 1};
    first.data[4 * c + 3] = {6 + static_cast<float>(c), 1};
  }
  auto second = flat_row(set, 1, {8, -2}, 2, 30, 40);
  second.observation = 4;
  set.rows = {first, second};
  write_set(folder / "a.ms", set);
  REQUIRE(io::is_measurement_set(folder / "a.ms"));

  const auto read = read_samples(folder / "a.ms");
  const auto& visibilities = read.visibilities;
  REQUIRE(visibilities.nchan() == 1);
  REQUIRE(visibilities.nvis() == 4);
  const auto [u, v] = visibilities.baselines().channel(0);
  for (std::int64_t i = 0; i < 3; ++i) {  // by rising frequency: channels 2, 1, 0
    const double frequency = 1e9 * static_cast<double>(i + 1);
    CHECK_THAT(u[i].item<double>(), WithinRel(100 * frequency / units::speed_of_light, 1e-14));
    CHECK_THAT(v[i].item<double>(), WithinRel(-50 * frequency / units::speed_of_light, 1e-14));
    CHECK_THAT(datum(visibilities, 0, i).real(), WithinRel(7.0 - static_cast<double>(i), 1e-6));
    CHECK_THAT(datum(visibilities, 0, i).imag(), WithinRel(-1.0, 1e-6));
    CHECK(weight_of(visibilities, i) == 4);
  }
  CHECK(datum(visibilities, 0, 3) == c10::complex<double>(8, 2));
  CHECK(weight_of(visibilities, 3) == 4);
  CHECK(read.windows.equal(torch::tensor({0, 0, 0, 1}, torch::kInt32)));
  REQUIRE(read.ranges.size() == 2);
  CHECK(read.ranges[0].frequency == 2e9);
  CHECK(read.ranges[1].frequency == 5e9);
  CHECK(read.observations.equal(torch::tensor({0, 0, 0, 4}, torch::kInt32)));
  CHECK(read.dropped == io::DroppedSamples{});
  CHECK_THAT(visibilities.frequencies()[0].item<double>(), WithinRel((1e9 + 2e9 + 3e9 + 5e9) / 4, 1e-12));
  const auto& observation = visibilities.observation();
  CHECK(observation.object == "source");
  CHECK(observation.telescope == "ALMA");
  CHECK(observation.date == "2012-06-05T06:23:21");
  CHECK(observation.spectral_reference == "LSRK");
  CHECK_THAT(*observation.right_ascension, WithinAbs(1.0, 1e-15));

  io::MeasurementSetOptions foreign;
  foreign.phases = io::SetPhases::as_written;
  CHECK(datum(read_samples(folder / "a.ms", foreign).visibilities, 0, 3) == c10::complex<double>(8, -2));
}

TEST_CASE("what is left out of a set is counted by its reason, once", "[io][quick]") {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  TestSet set;
  set.windows = {{{1e9, 2e9}, {xx, yy}}};
  set.rows.assign(8, flat_row(set, 0, {1, 0}, 1));
  set.rows[1].flag_row = true;
  set.rows[1].antenna2 = 0;  // the earlier reason counts
  set.rows[2].antenna2 = 0;
  set.rows[3].flags = {true, false, false, false};  // one hand of channel 0
  set.rows[3].data[0] = nan;
  set.rows[4].weight = {0, 1};
  set.rows[5].weight = {-1, 1};
  set.rows[6].data[3] = {infinity, 0};
  set.rows[7].uvw[1] = std::numeric_limits<double>::quiet_NaN();
  write_set(folder / "a.ms", set);
  const auto read = read_samples(folder / "a.ms");
  CHECK(read.dropped.flagged_rows == 2);
  CHECK(read.dropped.autocorrelations == 2);
  CHECK(read.dropped.flagged == 1);
  CHECK(read.dropped.without_weight == 4);
  CHECK(read.dropped.not_finite == 3);
  CHECK(read.visibilities.nvis() + read.dropped.total() == 16);

  io::MeasurementSetOptions one;
  one.polarization.needed = io::HandsNeeded::one;
  const auto more = read_samples(folder / "a.ms", one);
  CHECK(more.dropped.flagged == 0);
  CHECK(more.dropped.without_weight == 0);
  CHECK(more.dropped.not_finite == 2);
  CHECK(more.visibilities.nvis() == 10);
  CHECK(weight_of(more.visibilities, 2) == 1);  // of the one hand

  for (auto& row : set.rows) row.flag_row = true;
  write_set(folder / "flagged.ms", set);
  CHECK_THAT(message_of([&] { read_samples(folder / "flagged.ms"); }), ContainsSubstring("16 are in flagged rows"));
}

TEST_CASE("weights are those of the channels, else of the row, else 1/sigma^2", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{1e9, 2e9}, {xx, yy}}};
  set.rows.assign(4, flat_row(set, 0, {1, 0}, 3));
  set.rows[0].spectrum = {1, 1, 2, 2};
  set.rows[2].weight.clear();
  set.rows[2].sigma = {0.5, 0.25};
  set.rows[3].weight.clear();
  write_set(folder / "a.ms", set);
  const auto read = read_samples(folder / "a.ms");
  const std::vector<double> expected = {2, 4, 6, 6, 20, 20};
  REQUIRE(read.visibilities.nvis() == 6);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK_THAT(weight_of(read.visibilities, static_cast<std::int64_t>(i)), WithinRel(expected[i], 1e-6));
  CHECK(read.dropped.without_weight == 2);
}

TEST_CASE("Stokes parameters of circular and linear hands", "[io][quick]") {
  const TemporaryFolder folder;
  const Complex i{5, 1}, q{0.5, 0.25}, u{-1, 0.5}, v{0.125, 2};
  const Complex imaginary{0, 1};
  TestSet set;
  set.windows = {{{1e9}, {xx, xy, yx, yy}}, {{2e9}, {rr, 6, 7, ll}}};
  set.rows = {flat_row(set, 0, 0, 2), flat_row(set, 1, 0, 2)};
  set.rows[0].data = {i + q, u + imaginary * v, u - imaginary * v, i - q};
  set.rows[1].data = {i + v, q + imaginary * u, q - imaginary * u, i - v};
  write_set(folder / "a.ms", set);
  for (const auto& [name, value] : {std::pair{"I", i}, {"Q", q}, {"U", u}, {"V", v}}) {
    INFO(name);
    const auto read = read_samples(folder / "a.ms", stokes(name));
    REQUIRE(read.visibilities.nvis() == 2);
    CHECK(read.visibilities.observation().stokes == stokes_from_name(name));
    for (std::int64_t sample = 0; sample < 2; ++sample) {
      CHECK_THAT(datum(read.visibilities, 0, sample).real(), WithinAbs(value.real(), 1e-6));
      CHECK_THAT(datum(read.visibilities, 0, sample).imag(), WithinAbs(-value.imag(), 1e-6));
      CHECK(weight_of(read.visibilities, sample) == 4);
    }
  }
  auto hand = stokes("YY");
  CHECK_THAT(message_of([&] { read_samples(folder / "a.ms", hand); }), ContainsSubstring("RR, RL, LR, LL"));
  hand.windows = {0};
  CHECK(read_samples(folder / "a.ms", hand).visibilities.observation().stokes == Stokes::yy);
  CHECK_THAT(datum(read_samples(folder / "a.ms", hand).visibilities, 0, 0).real(), WithinAbs((i - q).real(), 1e-6));
}

TEST_CASE("several fields are refused with their names and rows, and TaQL selects", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{1e9}, {xx, yy}}};
  set.fields = {{"target", -2, 0.3}, {"phase calibrator", 1.1, 0.3}, {"target", -2, 0.3}};
  set.rows.assign(6, flat_row(set, 0, {1, 0}, 1));
  for (const std::size_t row : {1U, 2U}) set.rows[row].field = 1;
  write_set(folder / "a.ms", set);
  const auto message = message_of([&] { read_samples(folder / "a.ms"); });
  CHECK_THAT(message, ContainsSubstring("0 target (4 rows), 1 phase calibrator (2 rows)") && ContainsSubstring("--select"));
  io::MeasurementSetOptions options;
  options.select = "FIELD_ID == 0";
  const auto read = read_samples(folder / "a.ms", options);
  CHECK(read.visibilities.nvis() == 4);
  CHECK_THAT(*read.visibilities.observation().right_ascension, WithinRel(2 * std::numbers::pi - 2, 1e-14));
  options.select = "FIELD_ID == 7";
  CHECK_THROWS_AS(read_samples(folder / "a.ms", options), DataError);
  options.select = "NO_SUCH_COLUMN > 3";
  CHECK_THROWS_AS(read_samples(folder / "a.ms", options), ValueError);
  options.select = "((";
  CHECK_THROWS_AS(read_samples(folder / "a.ms", options), ValueError);
}

TEST_CASE("the data column is CORRECTED_DATA where it is filled", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{1e9}, {xx, yy}}};
  set.rows.assign(2, flat_row(set, 0, {1, 0}, 1));
  write_set(folder / "plain.ms", set);
  for (auto& row : set.rows) row.corrected = {{2, 0}, {2, 0}};
  write_set(folder / "both.ms", set);
  CHECK(datum(read_samples(folder / "plain.ms").visibilities, 0, 0).real() == 1);
  CHECK(datum(read_samples(folder / "both.ms").visibilities, 0, 0).real() == 2);
  io::MeasurementSetOptions options;
  options.column = "DATA";
  CHECK(datum(read_samples(folder / "both.ms", options).visibilities, 0, 0).real() == 1);
  options.column = "MODEL_DATA";
  CHECK_THROWS_AS(read_samples(folder / "both.ms", options), ValueError);
  options.column = "WEIGHT";
  CHECK_THROWS_AS(read_samples(folder / "both.ms", options), ValueError);
}

TEST_CASE("channels are chosen by number, frequency and velocity, and make cubes", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{4e9, 3e9, 2e9, 1e9}, {xx, yy}, 1}, {{4e9, 3e9, 2e9, 1e9}, {rr, ll}, 1}, {{1e9, 2e9, 3e9, 4e9}, {xx, yy}, 3}};
  set.rows = {flat_row(set, 0, {1, 0}, 1), flat_row(set, 0, {2, 0}, 1), flat_row(set, 1, {3, 0}, 1), flat_row(set, 2, {4, 0}, 1)};
  for (std::size_t c = 0; c < 4; ++c) set.rows[0].data[2 * c] = set.rows[0].data[2 * c + 1] = static_cast<float>(c);
  set.rows[1].flags = {false, false, false, false, false, false, true, true};  // channel 3
  write_set(folder / "a.ms", set);
  const auto cube = [&](const io::MeasurementSetOptions& options) {
    return io::collect_cube(*io::open_measurement_set(folder / "a.ms", options));
  };
  io::MeasurementSetOptions options;
  CHECK_THAT(message_of([&] { cube(options); }), ContainsSubstring("different frames, LSRK and BARYCENT"));
  options.windows = {0, 1};
  const auto all = cube(options);
  CHECK(all.visibilities.nchan() == 4);
  CHECK(all.visibilities.nvis() == 2);
  CHECK(all.dropped.flagged == 1);
  CHECK(all.dropped.incomplete_rows == 3);
  CHECK(datum(all.visibilities, 0, 0).real() == 3);  // by rising frequency
  CHECK(datum(all.visibilities, 3, 0).real() == 0);
  CHECK(datum(all.visibilities, 1, 1).real() == 3);
  CHECK(all.visibilities.frequencies()[0].item<double>() == 1e9);

  options.channels.numbers = {0, 2};
  CHECK(cube(options).visibilities.nvis() == 3);
  options.channels.frequency_range = {1.5e9, 3.5e9};
  CHECK(cube(options).visibilities.frequencies().equal(torch::tensor({2e9}, torch::kFloat64)));
  options.channels = {};
  options.channels.velocity_range = {-10, 10};
  CHECK_THROWS_AS(cube(options), DataError);  // no rest frequency
  options.channels.rest_frequency = 3e9;
  const auto line = cube(options);
  CHECK(line.visibilities.frequencies().equal(torch::tensor({3e9}, torch::kFloat64)));
  CHECK(line.visibilities.observation().rest_frequency == 3e9);
  options.channels.velocity_range = {-20, -10};
  CHECK_THROWS_AS(cube(options), DataError);
  options.channels = {};
  options.channels.numbers = {4};
  CHECK_THROWS_AS(cube(options), ValueError);
  options.windows = {0, 7};
  CHECK_THROWS_AS(cube(options), ValueError);
}

TEST_CASE("damaged and foreign tables are refused in one line", "[io][quick]") {
  const TemporaryFolder folder;
  TestSet set;
  set.windows = {{{1e9, 2e9}, {xx, yy}}};
  set.rows.assign(500, flat_row(set, 0, {1, 0}, 1));
  const auto refused = [&](const std::filesystem::path& path) {
    const auto message = message_of([&] { read_samples(path); });
    INFO(message);
    CHECK_THAT(message, StartsWith(path.string()));
    CHECK(message.find('\n') == std::string::npos);
  };
  refused(folder / "missing.ms");
  write_foreign_table(folder / "foreign");
  refused(folder / "foreign");
  std::filesystem::create_directories(folder / "fake.ms");
  std::ofstream(folder / "fake.ms/table.dat") << "not a table";
  refused(folder / "fake.ms");
  int damaged = 0;
  for (const auto* lost : {"SPECTRAL_WINDOW", "POLARIZATION", "FIELD", "DATA_DESCRIPTION"}) {
    const auto path = folder / ("without" + std::to_string(damaged++));
    write_set(path, set);
    std::filesystem::remove_all(path / lost);
    refused(path);
  }
  const auto path = folder / "truncated";
  write_set(path, set);
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("table.f")) std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  }
  refused(path);
}

TEST_CASE("models are written into columns of their own, and what was there is kept", "[io][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.ms";
  TestSet set;
  set.windows = {{{1e9, 2e9}, {xx, xy, yx, yy}}, {{3e9}, {rr, ll}}};
  set.rows = {flat_row(set, 0, {1, 1}, 1), flat_row(set, 1, {2, 0}, 1), flat_row(set, 0, {3, 0}, 1)};
  set.rows[2].flag_row = true;
  set.rows[2].antenna1 = 5;
  write_set(path, set);
  const auto data = complex_column(path, "DATA");
  io::ModelColumnOptions options;
  options.model_column = "MODEL_DATA";
  options.residual_column = "RESIDUAL";
  const auto constant = [](double value) {
    return [value](const Tensor& u, const Tensor&, double frequency) {
      return torch::complex(torch::full_like(u, value), torch::full_like(u, frequency / 1e9));
    };
  };
  const auto first = io::write_model_columns(path, options, constant(7));
  CHECK(first.rows == 3);
  CHECK(first.kept_as.empty());
  CHECK(complex_column(path, "DATA") == data);
  const std::vector<Complex> model = {{7, -1}, 0,       0, {7, -1}, {7, -2}, 0,       0, {7, -2}, {7, -3},
                                      {7, -3}, {7, -1}, 0, 0,       {7, -1}, {7, -2}, 0, 0,       {7, -2}};
  CHECK(complex_column(path, "MODEL_DATA") == model);
  const auto residual = complex_column(path, "RESIDUAL");
  REQUIRE(residual.size() == data.size());
  for (std::size_t i = 0; i < data.size(); ++i) CHECK(residual[i] == data[i] - model[i]);

  options.residual_column.clear();
  options.set.select = "ANTENNA1 == 5";
  for (const float value : {8.0F, 9.0F}) {  // the second takes the column that the first set aside
    const auto again = io::write_model_columns(path, options, constant(value));
    CHECK(again.rows == 1);
    CHECK(again.kept_as == std::vector<std::string>{"MODEL_DATA_PREVIOUS"});
    auto changed = model;
    for (const std::size_t i : {10U, 13U, 14U, 17U}) changed[i].real(value);
    CHECK(complex_column(path, "MODEL_DATA") == changed);
  }
  CHECK(complex_column(path, "MODEL_DATA_PREVIOUS")[10].real() == 8);
  CHECK(complex_column(path, "DATA") == data);
  io::MeasurementSetOptions of_model;
  of_model.column = "MODEL_DATA";
  CHECK(datum(read_samples(path, of_model).visibilities, 0, 0) == c10::complex<double>(7, 1));
}

TEST_CASE("writing that fails leaves the set as it was", "[io][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.ms";
  TestSet set;
  set.windows = {{{1e9}, {xx, yy}}};
  set.rows.assign(4, flat_row(set, 0, {1, 1}, 1));
  write_set(path, set);
  io::ModelColumnOptions options;
  const auto failing = [](const Tensor&, const Tensor&, double) -> Tensor { throw DataError("no model"); };
  options.model_column = "MODEL_DATA";
  CHECK_THROWS_AS(io::write_model_columns(path, options, failing), DataError);
  CHECK_FALSE(has_column(path, "MODEL_DATA"));
  CHECK_FALSE(has_column(path, "MODEL_DATA_UNFINISHED"));
  for (const auto* name : {"DATA", "CORRECTED_DATA", "WEIGHT", "two words", "1ST", "WEIGHT_SPECTRUM"}) {
    INFO(name);
    options.model_column = name;
    CHECK_THROWS_AS(io::write_model_columns(path, options, failing), ValueError);
  }
  CHECK(read_samples(path).visibilities.nvis() == 4);
}
