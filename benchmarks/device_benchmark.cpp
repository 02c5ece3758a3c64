// Times a training step on a device, or nonuniform transforms; needs neither files nor mpol::io. One JSON row a case: seconds
// a step and, where a step was recorded as a CUDA graph, the launches in it; or seconds a transform.
//
// usage: device_benchmark [--device cuda:0] [--npix N,N…] [--nchan C,C…] [--problems P,P…] [--dtype float32,float64]
//                         [--likelihood gridded,exact,loose] [--step fused,fused8,captured,eager] [--steps K]
//        device_benchmark --transform type2,type1,fused [--points K,K…] [--tolerance E] [--npix …] [--nchan …] [--dtype …]
//
// fused8 takes eight fused steps in a graph.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/train/captured_step.h>
#include <mpol_cpp/train/cuda_fused_step.h>
#include <mpol_cpp/train/step.h>

#include "synthetic_observation.h"

namespace {

using nlohmann::json;

struct Settings {
  torch::Device device = torch::kCPU;
  std::vector<std::string> npix{"256", "512", "1024"}, nchan{"1"}, problems{"1"}, dtypes{"float32", "float64"};
  std::vector<std::string> steps_of{"fused", "eager"}, likelihoods{"gridded"};
  std::vector<std::string> transforms, points{"1000000"};
  double tolerance = 1e-5;
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
      {"--problems", [&](const std::string& text) { settings.problems = split(text); }},
      {"--step", [&](const std::string& text) { settings.steps_of = split(text); }},
      {"--dtype", [&](const std::string& text) { settings.dtypes = split(text); }},
      {"--likelihood", [&](const std::string& text) { settings.likelihoods = split(text); }},
      {"--transform", [&](const std::string& text) { settings.transforms = split(text); }},
      {"--points", [&](const std::string& text) { settings.points = split(text); }},
      {"--tolerance", [&](const std::string& text) { settings.tolerance = std::stod(text); }},
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
double seconds_per_step(const std::function<void(int steps)>& take, const Settings& settings) {
  take(16);
  std::vector<double> runs;
  for (int run = 0; run < 5; ++run) {
    mpol::DeviceTimer timer(settings.device);
    take(settings.steps);
    timer.stop();
    runs.push_back(timer.seconds() / settings.steps);
  }
  std::sort(runs.begin(), runs.end());
  return runs[runs.size() / 2];
}

json timed(mpol::Step& step, const Settings& settings) {
  const auto take = [&](int steps) {
    for (int i = 0; i < steps; ++i) step.take(0.3);
  };
  json row{{"seconds", seconds_per_step(take, settings)}};
  if (const auto* fused = dynamic_cast<mpol::CudaFusedStep*>(&step)) row["launches"] = fused->launches();
  if (const auto* captured = dynamic_cast<mpol::CapturedStep*>(&step)) row["launches"] = captured->launches();
  return row;
}

json timed_in_eights(mpol::Step& step, const Settings& settings) {
  auto* fused = dynamic_cast<mpol::CudaFusedStep*>(&step);
  if (fused == nullptr) throw mpol::ValueError("fused8 is for GPUs");
  return {{"seconds", seconds_per_step([&](int steps) { fused->take_several(0.3, steps); }, settings)}};
}

struct Case {
  std::int64_t npix, nchan, problems;
  std::string dtype;
};

torch::Dtype dtype_of(const Case& which) { return which.dtype == "float64" ? torch::kFloat64 : torch::kFloat32; }

std::shared_ptr<mpol::Likelihood> make_likelihood(const Settings& settings, const mpol::GridCoords& coords, const Case& which,
                                                  const std::string& name) {
  const auto observed = benchmarks::synthetic_observation(coords, which.nchan, 500'000);
  const auto channels = mpol::ChannelMap::cube(which.nchan);
  const auto on_device = [&](auto likelihood) -> std::shared_ptr<mpol::Likelihood> {
    likelihood->to(settings.device, dtype_of(which));
    return likelihood.ptr();
  };
  if (name == "exact") return on_device(mpol::ExactLikelihood(coords, observed, channels));
  if (name == "loose") return on_device(mpol::LooseLikelihood(coords, observed, channels));
  const auto options = mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off);
  return on_device(mpol::GriddedLikelihood(mpol::DataAverager(coords, observed, options).to_dataset()));
}

/// GriddedNet with sparsity, total variation and Adam.
json step_case(const Settings& settings, const Case& which, const std::string& likelihood_name, const std::string& kind) {
  const mpol::GridCoords coords(0.005, which.npix);
  const auto likelihood = make_likelihood(settings, coords, which, likelihood_name);
  const auto base = torch::full({which.problems, which.nchan, which.npix, which.npix}, -3.0, torch::kFloat64);
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(base).dtype(dtype_of(which)));
  model->to(settings.device);
  const mpol::Objective objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
  const auto wanted = kind == "eager"      ? mpol::StepKind::eager
                      : kind == "captured" ? mpol::StepKind::captured
                                           : mpol::StepKind::fused;
  const auto step = mpol::make_step(model.ptr(), objective, mpol::TrainOptions().learning_rate(0.3).step(wanted));
  json row{{"npix", which.npix},
           {"nchan", which.nchan},
           {"problems", which.problems},
           {"dtype", which.dtype},
           {"device", settings.device.str()},
           {"likelihood", likelihood_name},
           {"step", kind},
           {"samples", likelihood->samples()}};
  row.update(kind == "fused8" ? timed_in_eights(*step, settings) : timed(*step, settings));
  return row;
}

void print_row(const json& row) {
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
}

/// Transforms of all channels at once, which share their points; on the CPU by its own kernels, one after the other.
void print_transforms(const Settings& settings, const Case& which, std::int64_t points) {
  const mpol::GridCoords coords(0.005, which.npix);
  const auto observed = benchmarks::synthetic_observation(coords, which.nchan, points);
  const mpol::NufftOptions options{settings.tolerance};
  const auto nufft = mpol::Nufft(coords, observed.baselines(), which.nchan, options);
  auto likelihood = mpol::LooseLikelihood(coords, observed, mpol::ChannelMap::cube(which.nchan), options);
  likelihood->to(settings.device);
  const auto on_device = torch::TensorOptions(settings.device).dtype(dtype_of(which));
  const auto image = at::rand({which.nchan, which.npix, which.npix}, on_device);
  const auto visibilities = nufft->forward(image);
  auto gradient = at::empty_like(image);
  const std::map<std::string, std::function<void()>> transforms{
      {"type2", [&] { nufft->forward(image); }},
      {"type1", [&] { nufft->adjoint(visibilities); }},
      {"fused", [&] { likelihood->value_and_gradient(image, gradient, mpol::Accumulate::overwrite); }},
  };
  const torch::NoGradGuard no_grad;
  for (const auto& name : settings.transforms) {
    const auto& transform = transforms.at(name);
    const double seconds = seconds_per_step(
        [&](int count) {
          for (int i = 0; i < count; ++i) transform();
        },
        settings);
    print_row({{"npix", which.npix},
               {"nchan", which.nchan},
               {"points", points},
               {"dtype", which.dtype},
               {"device", settings.device.str()},
               {"tolerance", settings.tolerance},
               {"transform", name},
               {"seconds", seconds},
               {"points_per_s", static_cast<double>(which.nchan * points) / seconds}});
  }
}

void print_case(const Settings& settings, const Case& which) {
  if (!settings.transforms.empty()) {
    for (const auto& points : settings.points) print_transforms(settings, which, std::stoll(points));
    return;
  }
  for (const auto& likelihood : settings.likelihoods) {
    for (const auto& kind : settings.steps_of) print_row(step_case(settings, which, likelihood, kind));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto settings = parse(argc, argv);
    for (const auto& dtype : settings.dtypes) {
      for (const auto& npix : settings.npix) {
        for (const auto& nchan : settings.nchan) {
          for (const auto& problems : settings.problems) {
            print_case(settings, {std::stoll(npix), std::stoll(nchan), std::stoll(problems), dtype});
          }
        }
      }
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_benchmark: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
