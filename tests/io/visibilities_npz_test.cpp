#include "catch.h"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../compare.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;
using Arrays = std::map<std::string, Tensor>;

namespace {

template <typename T>
Tensor positive(at::IntArrayRef shape, std::uint64_t seed) {
  return normal(shape, dtype_of<T>(), seed).abs() + 0.1;
}

/// u, v (nvis), data and weight (nchan, nvis), as a file would hold them.
template <typename T = float>
Arrays arrays(std::int64_t nchan = 3, std::int64_t nvis = 50) {
  return {{"uu", normal({nvis}, dtype_of<T>(), 1) * 1e5},
          {"vv", normal({nvis}, dtype_of<T>(), 2) * 1e5},
          {"weight", positive<T>({nchan, nvis}, 3)},
          {"data", normal({nchan, nvis}, complex_dtype_of<T>(), 4)}};
}

Visibilities read(const TemporaryFolder& folder, const Arrays& content, const io::ReadOptions& options = {}) {
  io::write_npz_arrays(folder / "vis.npz", content, io::Compression::stored);
  return io::read_npz(folder / "vis.npz", options);
}

std::string refusal(const TemporaryFolder& folder, const Arrays& content, const io::ReadOptions& options = {}) {
  try {
    read(folder, content, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A line of /proc/self/status.
double kilobytes_of(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes;
  }
  throw std::runtime_error("/proc/self/status has no " + name);
}

Arrays with(Arrays content, const std::string& key, const Tensor& value) {
  content[key] = value;
  return content;
}

Arrays without(Arrays content, const std::string& key) {
  content.erase(key);
  return content;
}

}  // namespace

TEMPLATE_TEST_CASE("visibilities are read in the file's own dtype", "[io][quick]", float, double) {
  const TemporaryFolder folder;
  const auto content = arrays<TestType>();
  const auto visibilities = read(folder, content);
  CHECK(visibilities.nchan() == 3);
  CHECK(visibilities.nvis() == 50);
  CHECK(same(visibilities.data(), content.at("data")));
  CHECK(same(visibilities.weights(), content.at("weight")));
  CHECK(same(visibilities.baselines().u(), content.at("uu")));
  CHECK(same(visibilities.baselines().v(), content.at("vv")));
  CHECK_FALSE(visibilities.frequencies().defined());
  CHECK(visibilities.baselines().shared());
}

TEST_CASE("one channel may be (nvis), and real and imaginary parts may lie apart", "[io][quick]") {
  const TemporaryFolder folder;
  auto content = arrays<float>(1);
  content["data"] = content["data"][0];
  content["weight"] = content["weight"][0];
  const auto whole = read(folder, content);
  CHECK(whole.data().sizes() == at::IntArrayRef{1, 50});
  const auto apart = with(with(without(content, "data"), "data_re", at::real(content["data"]).clone()), "data_im",
                          at::imag(content["data"]).clone());
  CHECK(same(read(folder, apart).data(), whole.data()));
  const auto wide = with(apart, "data_im", at::imag(content["data"]).to(torch::kFloat64));
  CHECK(same(read(folder, wide).data(), whole.data().to(torch::kComplexDouble)));
}

TEST_CASE("weights and u, v of (nvis) or (nchan, nvis) go with data of (nchan, nvis); integers become float64", "[io][quick]") {
  const TemporaryFolder folder;
  const auto content = arrays<double>();
  const auto weight = positive<double>({50}, 9);
  CHECK(same(read(folder, with(content, "weight", weight)).weights(), weight.expand({3, 50}).contiguous()));
  const auto u = normal({3, 50}, torch::kFloat64, 7), v = normal({3, 50}, torch::kFloat64, 8);
  const auto per_channel = read(folder, with(with(content, "uu", u), "vv", v));
  CHECK_FALSE(per_channel.baselines().shared());
  CHECK(same(per_channel.baselines().channel(2).first, u[2]));
  const auto ones = at::arange(1, 51, torch::kInt32);
  CHECK(same(read(folder, with(content, "weight", ones)).weights()[1], ones.to(torch::kFloat64)));
}

TEST_CASE("data of the other sign are conjugated on request, and nothing else", "[io][quick]") {
  const TemporaryFolder folder;
  io::ReadOptions conjugated;
  conjugated.conjugate = true;
  conjugated.channels = {2, 0};
  const auto content = arrays();
  const auto visibilities = read(folder, content, conjugated);
  CHECK(same(visibilities.data()[0], content.at("data")[2].conj().resolve_conj()));
  CHECK(same(visibilities.data()[1], content.at("data")[0].conj().resolve_conj()));
  CHECK(same(visibilities.baselines().u(), content.at("uu")));
  auto apart = without(content, "data");
  apart["data_re"] = at::real(content.at("data")).contiguous();
  apart["data_im"] = at::imag(content.at("data")).contiguous();
  CHECK(same(read(folder, apart, conjugated).data(), visibilities.data()));
}

TEST_CASE("selected channels are those of the whole file", "[io][quick]") {
  const TemporaryFolder folder;
  auto content = arrays<float>(5);
  content["uu"] = normal({5, 50}, torch::kFloat32, 7);
  content["vv"] = normal({5, 50}, torch::kFloat32, 8);
  content["frequency"] = at::arange(5, torch::kFloat64) * 1e9 + 3e11;
  io::ReadOptions options;
  options.channels = {4, 0, 2};
  const auto selected = read(folder, content, options);
  const auto expected = read(folder, content).select_channels(options.channels);
  CHECK(same(selected.data(), expected.data()));
  CHECK(same(selected.weights(), expected.weights()));
  CHECK(same(selected.frequencies(), expected.frequencies()));
  CHECK(same(selected.baselines().u(), expected.baselines().u()));
  options.channels = {5};
  CHECK_THAT(refusal(folder, content, options), ContainsSubstring("channel 5 is not there; the channels are 0 to 4"));
  options.channels = {1, 1};
  CHECK_THAT(refusal(folder, content, options), ContainsSubstring("channel 1 is selected twice"));
}

TEST_CASE("of channels whose checksums are ignored no byte is read that is not wanted", "[io][quick]") {
  const TemporaryFolder folder;
  const auto content = arrays<float>(6, 2000);
  io::ReadOptions options;
  options.channels = {1, 4};
  const auto expected = read(folder, content).select_channels(options.channels);
  options.checksums = io::Checksums::ignored;
  const auto check = [&] {
    const auto selected = io::read_npz(folder / "vis.npz", options);
    CHECK(same(selected.data(), expected.data()));
    CHECK(same(selected.weights(), expected.weights()));
    CHECK(same(selected.baselines().u(), expected.baselines().u()));
  };
  io::write_npz_arrays(folder / "vis.npz", content, io::Compression::deflated);
  check();
  io::write_npz_arrays(folder / "vis.npz", content, io::Compression::stored);
  check();
  {  // a byte of another channel's data
    std::fstream file(folder / "vis.npz", std::ios::binary | std::ios::in | std::ios::out);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto channel = content.at("data")[2].contiguous();
    const auto place = bytes.find(std::string(static_cast<const char*>(channel.const_data_ptr()), 64));
    REQUIRE(place != std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(place) + 40);
    file.put(static_cast<char>(~bytes[place + 40]));
  }
  check();
  options.checksums = io::Checksums::compared;
  CHECK_THROWS_WITH(io::read_npz(folder / "vis.npz", options), ContainsSubstring("the file is damaged"));
}

TEMPLATE_TEST_CASE("the unit comes from the option, else the file, else it is lambda", "[io][quick]", float, double) {
  const TemporaryFolder folder;
  const auto content = arrays<TestType>(2);
  const auto u = content.at("uu");
  const auto frequency = at::tensor({1e11, 3e11}, torch::kFloat64);
  io::ReadOptions options;
  options.uv_unit = io::UvUnit::klambda;
  CHECK(same(read(folder, content, options).baselines().u(), u * 1000));
  options.uv_unit = io::UvUnit::metres;
  CHECK_THAT(refusal(folder, content, options), ContainsSubstring("in metres") && ContainsSubstring("--frequency"));
  const auto metres = read(folder, with(content, "frequency", frequency), options);
  CHECK(same(metres.baselines().u(), u));
  CHECK(relative_error(metres.baselines().channel(1).first, u.to(torch::kFloat64) * (3e11 / units::speed_of_light)) < 1e-15);
  options.frequencies = {1e11, 3e11};
  CHECK(same(read(folder, content, options).frequencies(), frequency));
  const auto per_channel = with(with(content, "uu", at::stack({u, u})), "vv", at::stack({u, u}));
  CHECK(relative_error(read(folder, per_channel, options).baselines().channel(1).first, metres.baselines().channel(1).first) <
        1e-6);

  io::NpzWriter writer;
  for (const auto& [key, value] : content) writer.add(key, value);
  writer.add_text("uv_unit", "klambda");
  writer.write(folder / "unit.npz");
  CHECK(same(io::read_npz(folder / "unit.npz").baselines().u(), u * 1000));
  CHECK(io::uv_unit_of(folder / "unit.npz") == io::UvUnit::klambda);
  options.uv_unit = io::UvUnit::lambda;
  CHECK(same(io::read_npz(folder / "unit.npz", options).baselines().u(), u));
  CHECK(io::uv_unit_of(folder / "unit.npz", options) == io::UvUnit::lambda);
}

TEST_CASE("a scalar frequency holds for every channel; other numbers of them are refused", "[io][quick]") {
  const TemporaryFolder folder;
  const auto content = arrays<float>(3);
  CHECK(same(read(folder, with(content, "frequency", at::tensor(7e11, torch::kFloat64))).frequencies(),
             at::full({3}, 7e11, torch::kFloat64)));
  CHECK_THAT(refusal(folder, with(content, "frequency", at::tensor({1e11, 2e11}))),
             ContainsSubstring("2 frequencies for 3 channel(s)"));
  CHECK_THAT(refusal(folder, with(content, "frequency", at::tensor(-1.0))), ContainsSubstring("frequency[0] is -1"));
}

TEST_CASE("bad visibilities are refused with the file, the value and a remedy", "[io][quick]") {
  const TemporaryFolder folder;
  const auto good = arrays<float>();
  const auto changed = [&](const char* key, const at::indexing::TensorIndex& i, const at::indexing::TensorIndex& j,
                           double value) {
    auto array = good.at(key).clone();
    if (array.dim() == 2) array.index_put_({i, j}, value);
    if (array.dim() == 1) array.index_put_({j}, value);
    return with(good, key, array);
  };
  for (const char* key : {"uu", "vv", "weight"})
    CHECK_THAT(refusal(folder, without(good, key)), ContainsSubstring(std::string("no array '") + key + "'"));
  CHECK_THAT(refusal(folder, without(good, "data")), ContainsSubstring("no array 'data'"));
  CHECK_THAT(refusal(folder, with(without(good, "data"), "data_re", good.at("weight"))), ContainsSubstring("no array 'data_im'"));
  CHECK_THAT(refusal(folder, changed("weight", 1, 7, 0)),
             ContainsSubstring("vis.npz") && ContainsSubstring("weight[1, 7] is 0;") && ContainsSubstring("greater than 0"));
  CHECK_THAT(refusal(folder, changed("weight", 2, 0, -3)), ContainsSubstring("weight[2, 0] is -3"));
  CHECK_THAT(refusal(folder, changed("weight", 2, 1, NAN)), ContainsSubstring("weight[2, 1] is nan"));
  CHECK_THAT(refusal(folder, changed("data", 0, 49, NAN)), ContainsSubstring("data[0, 49] is nan+0i"));
  CHECK_THAT(refusal(folder, changed("uu", 0, 3, INFINITY)), ContainsSubstring("u[3] is inf"));
  CHECK_THAT(refusal(folder, changed("vv", 0, 4, -INFINITY)), ContainsSubstring("v[4] is -inf"));
  CHECK_THAT(refusal(folder, with(good, "vv", at::rand({49}))),
             ContainsSubstring("'vv' has shape (49,), but the data have (3, 50)"));
  CHECK_THAT(refusal(folder, with(good, "weight", at::rand({2, 50}))), ContainsSubstring("'weight' has shape (2, 50)"));
  CHECK_THAT(refusal(folder, with(good, "weight", at::rand({}))), ContainsSubstring("'weight' has shape ()"));
  CHECK_THAT(refusal(folder, with(good, "data", at::rand({3, 50}))), ContainsSubstring("is real ('<f4')"));
  CHECK_THAT(refusal(folder, with(good, "uu", good.at("data"))), ContainsSubstring("is complex"));
  CHECK_THAT(refusal(folder, with(good, "data", good.at("data").unsqueeze(0))), ContainsSubstring("(1, 3, 50)"));
  CHECK_THAT(refusal(folder, arrays<float>(3, 0)), ContainsSubstring("holds no visibilities"));
  CHECK_THAT(refusal(folder, arrays<float>(0, 3)), ContainsSubstring("holds no visibilities"));
  CHECK_THAT(refusal(folder, with(good, "uv_unit", at::tensor(1))), ContainsSubstring("one text of at most"));
}

TEST_CASE("numbers that are arrays are refused before they are read", "[io][quick]") {
  const TemporaryFolder folder;
  for (const std::string key : {"right_ascension", "rest_frequency", "frequency"}) {
    INFO(key);
    // Some kilobytes in the file, 64 MB in memory.
    io::write_npz_arrays(folder / "vis.npz", with(arrays<float>(1, 50), key, at::zeros({8'000'000}, torch::kFloat64)),
                         io::Compression::deflated);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak is that from here on
    const double before = kilobytes_of("VmRSS:");
    CHECK_THROWS_AS(io::read_npz(folder / "vis.npz"), ShapeError);
    CHECK_THROWS_WITH(io::read_npz(folder / "vis.npz"), ContainsSubstring("8000000"));
    CHECK(kilobytes_of("VmHWM:") - before < 32'000);
  }
}

TEST_CASE("unknown units and text in place of numbers are refused", "[io][quick]") {
  const TemporaryFolder folder;
  io::NpzWriter writer;
  for (const auto& [key, value] : arrays<float>()) {
    if (key != "weight") writer.add(key, value);
  }
  writer.add_text("uv_unit", "furlong");
  auto other = writer;
  writer.add("weight", arrays<float>().at("weight"));
  writer.write(folder / "furlong.npz");
  CHECK_THROWS_WITH(io::read_npz(folder / "furlong.npz"), ContainsSubstring("'furlong' is unknown; use lambda, klambda or m"));
  other.add_text("weight", "heavy");
  other.write(folder / "heavy.npz");
  CHECK_THROWS_WITH(io::read_npz(folder / "heavy.npz"), ContainsSubstring("'weight' has dtype '<U5'"));
}

TEMPLATE_TEST_CASE("what is written is read again: units, frequencies, observation", "[io][quick]", float, double) {
  const TemporaryFolder folder;
  const auto content = arrays<TestType>(2);
  Observation observation{-2.1, -0.7, "HD 142527", "ALMA", "2012-06-02T01:02:03", 3.4e11, "LSRK"};
  const bool in_metres = GENERATE(false, true);
  const auto frequencies = at::tensor({3.1e11, 3.2e11}, torch::kFloat64);
  auto baselines = in_metres ? Baselines::in_metres(content.at("uu"), content.at("vv"), frequencies)
                             : Baselines::in_lambda(content.at("uu"), content.at("vv"));
  Visibilities visibilities(baselines, content.at("data"), content.at("weight"));
  if (!in_metres) visibilities.set_frequencies(frequencies);
  visibilities.set_observation(observation);
  io::write_npz(folder / "vis.npz", visibilities);
  const auto again = io::read_npz(folder / "vis.npz");
  CHECK(same(again.data(), visibilities.data()));
  CHECK(same(again.weights(), visibilities.weights()));
  CHECK(same(again.frequencies(), frequencies));
  CHECK(same(again.baselines().u(), baselines.u()));
  CHECK(again.baselines().frequencies().defined() == in_metres);
  CHECK(again.observation().right_ascension == observation.right_ascension);
  CHECK(again.observation().declination == observation.declination);
  CHECK(again.observation().object == observation.object);
  CHECK(again.observation().telescope == observation.telescope);
  CHECK(again.observation().date == observation.date);
  CHECK(again.observation().rest_frequency == observation.rest_frequency);
  CHECK(again.observation().spectral_reference == observation.spectral_reference);
}

TEST_CASE("the polarisation of visibilities is written and read; without the key it is Stokes I", "[io][quick]") {
  const TemporaryFolder folder;
  auto visibilities = read(folder, arrays<float>(1));
  CHECK(visibilities.observation().stokes == Stokes::i);
  for (const auto stokes : {Stokes::i, Stokes::q, Stokes::xx, Stokes::rl}) {
    INFO(to_string(stokes));
    Observation observation;
    observation.stokes = stokes;
    visibilities.set_observation(observation);
    io::write_npz(folder / "written.npz", visibilities);
    CHECK(io::NpzReader(folder / "written.npz").contains("stokes") == (stokes != Stokes::i));
    const auto again = io::read_npz(folder / "written.npz");
    CHECK(again.observation().stokes == stokes);
    CHECK(again.select(at::tensor({1, 2}, torch::kInt64)).observation().stokes == stokes);
  }
  io::NpzWriter writer;
  for (const auto& [key, array] : arrays<float>(1)) writer.add(key, array);
  writer.add_text("stokes", "P");
  writer.write(folder / "other.npz");
  CHECK_THROWS_WITH(io::read_npz(folder / "other.npz"), ContainsSubstring("'stokes'") && ContainsSubstring("'P' is unknown"));
}

TEST_CASE("only baselines that cannot be meant in their unit are refused", "[io][quick]") {
  const GridCoords coords(0.05, 128);
  const auto longest = [&](double length) {
    const auto u = at::tensor({length, 0.5 * length}, torch::kFloat64);
    return Visibilities(Baselines::in_lambda(u, 0.3 * u), at::tensor({1.0, 2.0}).to(torch::kComplexDouble),
                        at::tensor({1.0, 1.0}));
  };
  CHECK_NOTHROW(io::check_uv_unit(longest(2.001 * coords.du()), coords, io::UvUnit::lambda));
  CHECK_NOTHROW(io::check_uv_unit(longest(0.999 * coords.max_uv()), coords, io::UvUnit::lambda));
  CHECK_THROWS_WITH(io::check_uv_unit(longest(500), coords, io::UvUnit::lambda),
                    ContainsSubstring("is 500 lambda") && ContainsSubstring("below two cells") &&
                        ContainsSubstring("read in klambda it would be 5e+05 lambda, which fits"));
  CHECK_THROWS_WITH(io::check_uv_unit(longest(5e8), coords, io::UvUnit::klambda),
                    ContainsSubstring("5e+05 read in klambda") && ContainsSubstring("beyond the edge") &&
                        ContainsSubstring("read in lambda it would be 5e+05 lambda, which fits"));
  auto with_frequency = longest(500);
  with_frequency.set_frequencies(at::tensor({3e11}, torch::kFloat64));
  CHECK_THROWS_WITH(io::check_uv_unit(with_frequency, coords, io::UvUnit::lambda),
                    ContainsSubstring("read in m it would be 5.003e+05 lambda, which fits"));
  CHECK_THROWS_WITH(io::check_uv_unit(longest(coords.max_uv()), coords, io::UvUnit::lambda), ContainsSubstring("cell_size <"));
}
