#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "synthetic_observation.h"
#include "timing.h"

namespace benchmarks {

/// What to time: every combination of the lists.
struct Settings {
  std::string what;
  std::vector<std::int64_t> npix{180, 512, 1024, 2048}, nchan{1, 8}, nvis{100'000, 1'000'000}, problems{1}, batch{65'536};
  std::vector<std::string> dtypes{"float32", "float64"};
  double tolerance = 1e-6;
  std::string step = "eager", optimizer = "adam", data;
  double seconds = 2.0;
};

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

inline std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> values;
  for (const auto& part : split(text)) values.push_back(std::stoll(part));
  return values;
}

/// The first argument is what to time, options follow. @throws ValueError
inline Settings parse(int argc, char** argv) {
  Settings settings;
  if (argc < 2) throw mpol::ValueError("name what to time; the groups are listed at the head of the source");
  settings.what = argv[1];
  const std::map<std::string, std::function<void(const std::string&)>> options{
      {"--npix", [&](const std::string& text) { settings.npix = numbers(text); }},
      {"--nchan", [&](const std::string& text) { settings.nchan = numbers(text); }},
      {"--nvis", [&](const std::string& text) { settings.nvis = numbers(text); }},
      {"--batch", [&](const std::string& text) { settings.batch = numbers(text); }},
      {"--problems", [&](const std::string& text) { settings.problems = numbers(text); }},
      {"--dtype", [&](const std::string& text) { settings.dtypes = split(text); }},
      {"--tolerance", [&](const std::string& text) { settings.tolerance = std::stod(text); }},
      {"--step", [&](const std::string& text) { settings.step = text; }},
      {"--optimizer", [&](const std::string& text) { settings.optimizer = text; }},
      {"--data", [&](const std::string& text) { settings.data = text; }},
      {"--threads", [](const std::string& text) { at::set_num_threads(std::stoi(text)); }},
      {"--seconds", [&](const std::string& text) { settings.seconds = std::stod(text); }},
  };
  for (int i = 2; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) throw mpol::ValueError(fmt::format("unknown option {}", argv[i]));
    option->second(argv[i + 1]);
  }
  return settings;
}

inline torch::Dtype dtype_of(const std::string& name) {
  if (name == "float32") return torch::kFloat32;
  if (name == "float64") return torch::kFloat64;
  throw mpol::ValueError(fmt::format("dtype is {}; it must be float32 or float64", name));
}

constexpr double cell_size = 0.005;  // arcsec

/// The file that was named, or else a synthetic observation.
inline mpol::Visibilities observation(const Settings& settings, const mpol::GridCoords& coords, std::int64_t nchan,
                                      std::int64_t nvis, torch::Dtype dtype = torch::kFloat64) {
  return settings.data.empty() ? synthetic_observation(coords, nchan, nvis, dtype) : mpol::io::read_npz(settings.data);
}

/// One row of JSON.
inline void print(nlohmann::json row, const nlohmann::json& times) {
  row["threads"] = at::get_num_threads();
  row.update(times);
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
}

/// What main() does: `run` with the settings; errors in one line.
template <typename Run>
int run_benchmark(const char* name, int argc, char** argv, const Run& run) {
  try {
    run(parse(argc, argv));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace benchmarks
