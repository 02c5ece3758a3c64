// Times a training step on a device; needs neither files nor mpol::io. One JSON row a case.
//
// usage: device_benchmark [--device cuda:0] [--npix N,N…] [--nchan C,C…] [--dtype float32,float64] [--steps K]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/train/step.h>

#include "synthetic_observation.h"

namespace {

using nlohmann::json;

struct Settings {
  torch::Device device = torch::kCPU;
  std::vector<std::string> npix{"256", "512", "1024"}, nchan{"1"}, dtypes{"float32", "float64"};
  int steps = 50;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, std::function<void(const std::string&)>> options{
      {"--device",
       [&](const std::string& text) {
         settings.device = mpol::select_device(mpol::DeviceRequest::parse(text), mpol::Fallback::error);
       }},
      {"--npix", [&](const std::string& text) { settings.npix = split(text); }},
      {"--nchan", [&](const std::string& text) { settings.nchan = split(text); }},
      {"--dtype", [&](const std::string& text) { settings.dtypes = split(text); }},
      {"--steps", [&](const std::string& text) { settings.steps = std::stoi(text); }},
  };
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) throw mpol::ValueError(fmt::format("unknown option {}", argv[i]));
    option->second(argv[i + 1]);
  }
  return settings;
}

/// Seconds a step, the median of five runs of `steps`: the device is waited for once in each.
double seconds_per_step(mpol::Step& step, const Settings& settings) {
  for (int i = 0; i < 5; ++i) step.take(0.3);
  std::vector<double> runs;
  for (int run = 0; run < 5; ++run) {
    mpol::DeviceTimer timer(settings.device);
    for (int i = 0; i < settings.steps; ++i) step.take(0.3);
    timer.stop();
    runs.push_back(timer.seconds() / settings.steps);
  }
  std::sort(runs.begin(), runs.end());
  return runs[runs.size() / 2];
}

/// GriddedNet with the gridded likelihood, sparsity, total variation and Adam.
void step_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype_name) {
  const auto dtype = dtype_name == "float64" ? torch::kFloat64 : torch::kFloat32;
  const mpol::GridCoords coords(0.005, npix);
  const auto averager_options = mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off);
  const auto dataset =
      mpol::DataAverager(coords, benchmarks::synthetic_observation(coords, nchan, 500'000), averager_options).to_dataset();
  auto likelihood = mpol::GriddedLikelihood(dataset);
  likelihood->to(settings.device, dtype);
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).nchan(nchan).dtype(dtype));
  model->to(settings.device);
  const mpol::Objective objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
  const auto step = mpol::make_step(model.ptr(), objective, mpol::TrainOptions().learning_rate(0.3));
  fmt::print("{}\n", json{{"npix", npix},
                          {"nchan", nchan},
                          {"dtype", dtype_name},
                          {"device", settings.device.str()},
                          {"step", mpol::to_string(step->kind())},
                          {"cells", likelihood->samples()},
                          {"seconds", seconds_per_step(*step, settings)}}
                         .dump());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto settings = parse(argc, argv);
    for (const auto& dtype : settings.dtypes) {
      for (const auto& npix : settings.npix) {
        for (const auto& nchan : settings.nchan) step_case(settings, std::stoll(npix), std::stoll(nchan), dtype);
      }
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_benchmark: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
