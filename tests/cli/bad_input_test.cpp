#include "catch.h"

#include <cmath>
#include <limits>

#include <mpol_cpp/io/npz_archive.h>

#include "observation.h"
#include "program.h"
#include "zip_bytes.h"

using namespace mpol::testing;

namespace {

using Arrays = std::map<std::string, Tensor>;

/// Runs `mpol image` and checks that it fails as it should: the code, one line, what it names, nothing left behind.
void check_refused(const std::vector<std::string>& arguments, const std::filesystem::path& out, int code,
                   const std::string& named) {
  const auto run = run_mpol_here(arguments);
  INFO(named << " in: " << run.err);
  CHECK(run.exit_code == code);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.err.starts_with("mpol image: "));
  CHECK(run.error_names(named));
  CHECK(run.err.find("Exception raised") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
}

Arrays changed(const std::string& key, const std::function<void(Tensor&)>& change, std::int64_t nchan = 1) {
  auto arrays = small_observation(nchan);
  arrays[key] = arrays[key].clone();
  change(arrays[key]);
  return arrays;
}

Arrays without(const std::string& key) {
  auto arrays = small_observation();
  arrays.erase(key);
  return arrays;
}

/// An .npy file with a header of our choosing.
std::string npy(const std::string& descr, const std::string& shape, std::size_t bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = std::string("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  return file + header + std::string(bytes, '\0');
}

}  // namespace

TEST_CASE("an option out of range is refused with its name and value", "[cli][quick]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  struct Case {
    std::vector<std::string> options;
    std::string named;
  };
  const std::vector<Case> cases = {
      {{"--npix", "33"}, "33"},
      {{"--npix", "0"}, "0"},
      {{"--npix", "-32"}, "-32"},
      {{"--npix", "3.5"}, "3.5"},
      {{"--npix", "many"}, "many"},
      {{"--npix", "99999999999999999999"}, "99999999999999999999"},
      {{"--cell-size", "0"}, "0"},
      {{"--cell-size", "-0.1"}, "-0.1"},
      {{"--cell-size", "nan"}, "nan"},
      {{"--cell-size", "inf"}, "inf"},
      {{"--cell-size", "wide"}, "wide"},
      {{"--cell-size", ""}, "--cell-size"},
      {{"--sparsity", "-1e-4"}, "-1e-4"},
      {{"--sparsity", "nan"}, "nan"},
      {{"--tv", "inf"}, "inf"},
      {{"--tsv", "-1"}, "--tsv"},
      {{"--entropy", "nan"}, "--entropy"},
      {{"--tv-channel", "-1"}, "--tv-channel"},
      {{"--tv-channel", "auto"}, "as in 0.3U, cv, or LO:HI:N"},
      {{"--tv", "0.3u"}, "as in 0.3U, auto, cv, or LO:HI:N"},
      {{"--entropy", "auto"}, "is no "},
      {{"--edge-clamp", "-1"}, "--edge-clamp"},
      {{"--group-sparsity", "-1"}, "--group-sparsity"},
      {{"--spectral-smoothness", "nan"}, "--spectral-smoothness"},
      {{"--wavelets", "-1"}, "--wavelets"},
      {{"--wavelets", "1:2"}, "LO:HI:N"},
      {{"--chi2-bound", "0"}, "--chi2-bound"},
      {{"--chi2-bound", "some"}, "some"},
      {{"--chi2-bound", "auto", "--likelihood", "gridded"}, "--likelihood exact"},
      {{"--chi2-bound", "auto", "--optimizer", "adam"}, "--chi2-bound"},
      {{"--chi2-bound", "auto", "--tv", "cv"}, "--chi2-bound"},
      {{"--chi2-bound", "auto", "--entropy", "1e-3"}, "--chi2-bound"},
      {{"--psd", "1"}, "--psd-length"},
      {{"--uv-sparsity", "1"}, "--uv-sparsity-q-max"},
      {{"--epochs", "0"}, "0"},
      {{"--epochs", "-5"}, "-5"},
      {{"--learning-rate", "0"}, "--learning-rate"},
      {{"--learning-rate", "nan"}, "nan"},
      {{"--optimizer", "adamw"}, "adamw"},
      {{"--likelihood", "exactly"}, "exactly"},
      {{"--noise", "cauchy"}, "cauchy"},
      {{"--noise", "student"}, "--likelihood loose"},
      {{"--degrees-of-freedom", "4"}, "--noise student"},
      {{"--likelihood", "loose", "--noise", "student", "--degrees-of-freedom", "0"}, "degrees-of-freedom"},
      {{"--normalize", "pixels"}, "pixels"},
      {{"--mode", "movie"}, "movie"},
      {{"--step", "fused", "--uv-sparsity", "1", "--uv-sparsity-q-max", "1e4"}, "uv_sparsity"},
      {{"--step", "giant"}, "giant"},
      {{"--scatter-check", "maybe"}, "maybe"},
      {{"--dtype", "float16"}, "float16"},
      {{"--uv-unit", "km"}, "km"},
      {{"--frequency", "-1e9"}, "-1e9"},
      {{"--channels", "1"}, "1"},
      {{"--channels", "0-"}, "0-"},
      {{"--channels", "3-1"}, "3-1"},
      {{"--channels", "a"}, "a"},
      {{"--start", "middle"}, "middle"},
      {{"--start", "base:"}, "start"},
      {{"--start", "base:nan"}, "nan"},
      {{"--start", "flat:0"}, "0"},
      {{"--seed", "-1"}, "-1"},
      {{"--threads", "0"}, "0"},
      {{"--stop-relative", "-1"}, "-1"},
      {{"--stop-relative", "0.1:0"}, "0"},
      {{"--checkpoint-interval", "0"}, "0"},
      {{"--device", "tpu"}, "tpu"},
      {{"--resume", "--overwrite"}, "--resume"},
      {{"--no-such-option"}, "--no-such-option"},
      {{"--no-such-option", "7", "more"}, "--no-such-option 7 more"},
      {{"--epochs"}, "--epochs"},
      {{"one", "too", "many"}, "too"},
  };
  for (const auto& [options, named] : cases) check_refused(short_run(data, scratch / "out", options), scratch / "out", 2, named);
}

TEST_CASE("what is missing is named, with what would do", "[cli][quick]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  check_refused({"image", "-o", out.string(), "--cell-size", "0.1", "--npix", "32"}, out, 2, "DATA");
  check_refused({"image", data, "--cell-size", "0.1", "--npix", "32"}, out, 2, "-o OUT");
  check_refused(short_run((scratch / "nothing.npz").string(), out), out, 1, "nothing.npz");
  check_refused(short_run(scratch.path().string(), out), out, 1, scratch.path().string());
  check_refused(short_run(data, out, {"--start", (scratch / "none.fits").string()}), out, 1, "none.fits");
  check_refused(short_run(data, out, {"--mask", (scratch / "none.fits").string()}), out, 1, "none.fits");
  check_refused(short_run(data, out, {"--config", (scratch / "none.toml").string()}), out, 1, "none.toml");
  check_refused(short_run(data, out, {"--uv-unit", "m"}), out, 1, "frequenc");
  check_refused(short_run(data, out, {"--device", "cuda:77"}), out, 1, "cuda:77");
}

TEST_CASE("a grid that the memory or the data do not allow is refused", "[cli][quick]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "out";
  check_refused(short_run(data, out, {"--npix", "1000000"}), out, 1, "GiB");
  check_refused(short_run(data, out, {"--npix", "999999998"}), out, 1, "999999998");
  check_refused(short_run(data, out, {"--cell-size", "5"}), out, 1, "klambda");
  check_refused(short_run(data, out, {"--uv-unit", "klambda"}), out, 1, "klambda");
  check_refused(short_run(data, out, {"--cell-size", "1e-9"}), out, 1, "lambda");
}

TEST_CASE("a damaged or foreign file is refused", "[cli][quick]") {
  const Scratch scratch;
  const auto good = write_observation(scratch / "vis.npz", small_observation());
  const auto bytes = read_text(good);
  const auto out = scratch / "out";
  const auto check = [&](const std::string& contents) {
    write_text(scratch / "bad.npz", contents);
    check_refused(short_run((scratch / "bad.npz").string(), out), out, 1, "bad.npz");
  };
  check("");
  check(bytes.substr(0, bytes.size() / 2));
  check(bytes.substr(0, bytes.size() - 1));
  check(std::string(250, 'x'));  // no archive, but long enough to hold something
  check(npy("<f8", "(3,)", 24));
  auto flipped = bytes;
  flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 0x10);
  check(flipped);
  check(zip_of("uu.npy", npy("|O", "(3,)", 24)));
  check(zip_of("uu.npy", npy("<U4", "(3,)", 48)));
  check(zip_of("uu.npy", npy("<f8", "(100000000000,)", 24)));
  check(zip_of("readme.txt", "hello"));
}

TEST_CASE("values that cannot be imaged are refused", "[cli][quick]") {
  const Scratch scratch;
  const auto out = scratch / "out";
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const auto check = [&](const Arrays& arrays, const std::string& named) {
    const auto data = write_observation(scratch / "bad.npz", arrays);
    check_refused(short_run(data, out), out, 1, named);
  };
  for (const auto* key : {"uu", "vv", "weight", "data"}) check(without(key), key);
  check(changed("uu", [&](Tensor& t) { t[17].fill_(nan); }), "17");
  check(changed("vv", [&](Tensor& t) { t[17].fill_(infinity); }), "17");
  check(changed("data", [&](Tensor& t) { t[17].fill_(c10::complex<double>(0, nan)); }), "17");
  check(changed(
            "data", [&](Tensor& t) { t[1][17].fill_(infinity); }, 2),
        "17");
  check(changed("weight", [&](Tensor& t) { t[17].fill_(nan); }), "17");
  check(changed("weight", [](Tensor& t) { t[17].fill_(0); }), "17");
  check(changed("weight", [](Tensor& t) { t[17].fill_(-1); }), "-1");
  check(changed("uu", [](Tensor& t) { t = t.slice(0, 0, 10); }), "10");
  check(changed("weight", [](Tensor& t) { t = t.slice(0, 0, 10); }), "10");
  check(changed("data", [](Tensor& t) { t = t.reshape({2, 10, 30}); }), "data");
  auto none = small_observation();
  for (auto& [key, values] : none) values = values.slice(0, 0, 0);
  check(none, "bad.npz");
}
