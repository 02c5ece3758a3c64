#include "observation.h"

#include <ATen/ops/complex.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/sqrt.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>

#include "random.h"

namespace mpol::testing {

std::map<std::string, Tensor> small_observation(std::int64_t nchan, std::int64_t nvis) {
  constexpr double longest = 0.8e6, flux = 1.0, width = 0.25 * units::arcsec;  // wavelengths, Jy, radian
  constexpr double east = 0.5 * units::arcsec, north = -0.3 * units::arcsec;
  const auto q = longest * (0.02 + 0.98 * uniform({nvis}, torch::kFloat64, 1));
  const auto angle = 2 * units::pi * uniform({nvis}, torch::kFloat64, 2);
  const auto u = q * angle.cos(), v = q * angle.sin();
  const auto amplitude = flux * at::exp(-2 * units::pi * units::pi * width * width * q * q);
  const auto model = at::polar(amplitude, -2 * units::pi * (u * east + v * north));
  const auto weight = 1e4 * (0.5 + uniform({nchan, nvis}, torch::kFloat64, 3));
  const auto noise = at::complex(normal({nchan, nvis}, torch::kFloat64, 4), normal({nchan, nvis}, torch::kFloat64, 5));
  const auto data = model + noise / at::sqrt(weight);
  std::map<std::string, Tensor> arrays = {{"uu", u}, {"vv", v}, {"data", data}, {"weight", weight}};
  if (nchan > 1) return arrays;
  arrays["data"] = data[0];
  arrays["weight"] = weight[0];
  return arrays;
}

std::string write_observation(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays) {
  io::write_npz_arrays(path, arrays);
  return path.string();
}

std::vector<std::string> short_run(const std::string& data, const std::filesystem::path& out,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"image",        data,      "-o",          out.string(), "--cell-size", "0.1",
                                        "--npix",       "32",      "--epochs",    "10",         "--dtype",     "float64",
                                        "--likelihood", "gridded", "--sparsity",  "1e-4",       "--tv",        "1e-4",
                                        "--device",     "cpu",     "--optimizer", "adam"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> mask_and_start(const std::filesystem::path& folder, std::int64_t nchan) {
  const GridCoords coords(0.1, 32);
  const auto radius = torch::hypot(coords.sky_x(), coords.sky_y()), channel = torch::arange(nchan).view({-1, 1, 1});
  const auto write = [&](const char* name, const Tensor& cube) {
    const auto file = folder / fmt::format("{}{}.fits", name, nchan);
    io::write_fits(file, cube, coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
    return file.string();
  };
  return {"--mask", write("mask", (radius < 0.6 + 0.1 * channel).to(torch::kFloat64)), "--start",
          write("start", torch::exp(-radius.square()) * (1 + channel))};
}

}  // namespace mpol::testing
