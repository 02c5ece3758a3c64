// Times a training step on a device, or nonuniform transforms; needs neither files nor mpol::io. One JSON row a case: seconds
// a step and, where a step was recorded as a CUDA graph, the launches in it; or seconds a transform.
//
// usage: device_benchmark [--device cuda:0] [--npix N,N…] [--nchan C,C…] [--problems P,P…] [--dtype float32,float64]
//                         [--likelihood gridded,exact,loose] [--step
//                         fused,fused8,trainer,captured,eager,pogm,lbfgs,lbfgs-eager,tiles,rows2,rows4,rows8,one2,one4]
//                         [--steps K]
//        device_benchmark --transform type2,type1,fused [--points K,K…] [--tolerance E] [--npix …] [--nchan …] [--dtype …]
//        device_benchmark --copy MIB [--device cuda:0]
//
// fused8 takes eight fused steps in a graph; trainer is a fit by the Trainer, whose progress is watched; pogm is an iteration of
// the proximal gradient that mpol image takes by itself; lbfgs is an epoch of 20 iterations, by our kernels or by LibTorch. tiles
// is fused8 with the transforms of a library, rows2 to rows8 with kernels that transform so many rows by themselves; one2 and
// one4 are those with all eight steps in one kernel.
// --copy times a copy from the device's memory to itself: the bytes that it reads and writes in a second are the ceiling of all
// that only moves memory. A case that fails has a row with its error; the others are timed all the same, and the program ends
// with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>
#include <mpol_cpp/train/steps/captured_step.h>
#include <mpol_cpp/train/steps/device_pogm_step.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/make_step.h>
#include <mpol_cpp/train/steps/step.h>

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
  std::int64_t copied_mib = 0;  // 0: no copies are timed
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
      {"--copy", [&](const std::string& text) { settings.copied_mib = std::stoll(text); }},
  };
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) throw mpol::ValueError(fmt::format("unknown option {}", argv[i]));
    if (i + 1 == argc) throw mpol::ValueError(fmt::format("{} needs a value", argv[i]));
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
  if (const auto* fused = dynamic_cast<mpol::FusedStep*>(&step)) row["launches"] = fused->launches();
  if (const auto* captured = dynamic_cast<mpol::CapturedStep*>(&step)) row["launches"] = captured->launches();
  if (const auto* pogm = dynamic_cast<mpol::DevicePogmStep*>(&step)) row["launches"] = pogm->launches();
  return row;
}

json timed_in_eights(mpol::Step& step, const Settings& settings) {
  auto* fused = dynamic_cast<mpol::FusedStep*>(&step);
  if (fused == nullptr) throw mpol::ValueError("fused8 is for GPUs");
  return {{"seconds", seconds_per_step([&](int steps) { fused->take_several(0.3, steps); }, settings)}};
}

struct Case {
  std::int64_t npix, nchan, problems;
  std::string dtype;

  json row(const Settings& settings) const {
    return {{"npix", npix}, {"nchan", nchan}, {"problems", problems}, {"dtype", dtype}, {"device", settings.device.str()}};
  }
};

torch::Dtype dtype_of(const Case& which) { return which.dtype == "float64" ? torch::kFloat64 : torch::kFloat32; }

/// Seconds an epoch of a fit whose progress is watched, as in mpol image. What a fit takes once, many epochs and few have alike;
/// each begins at the same pixels, so that none ends before the others.
json timed_in_trainer(const std::shared_ptr<mpol::ImageModel>& model, const mpol::Objective& objective,
                      const Settings& settings) {
  const auto start = model->base().detach().clone();
  const auto seconds = [&](int epochs) {
    {
      const torch::NoGradGuard no_grad;
      model->base().copy_(start);
    }
    mpol::TrainOptions options;
    options.learning_rate(0.3).epochs(epochs).step(mpol::StepKind::fused);
    options.callbacks({[](const mpol::Progress&) { return mpol::CallbackAction::proceed; }});
    mpol::DeviceTimer timer(settings.device);
    const auto fitted = mpol::Trainer(model, objective, options).fit();
    timer.stop();
    if (fitted.epochs != epochs)
      throw mpol::ValueError(fmt::format("the fit ended after {} of {} epochs", fitted.epochs, epochs));
    return timer.seconds();
  };
  seconds(16);
  std::vector<double> runs;
  for (int run = 0; run < 5; ++run) {
    const double few = seconds(settings.steps);
    runs.push_back((seconds(11 * settings.steps) - few) / (10 * settings.steps));
  }
  std::sort(runs.begin(), runs.end());
  return {{"seconds", runs[runs.size() / 2]}};
}

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

/// Likelihoods of the data on the device, each made once: a million samples take longer to sort than a step takes.
class Likelihoods {
 public:
  explicit Likelihoods(const Settings& settings) : settings_(settings) {}

  const std::shared_ptr<mpol::Likelihood>& of(const mpol::GridCoords& coords, const Case& which, const std::string& name) {
    const std::tuple key(which.npix, which.nchan, which.dtype, name);
    if (key_ != key) {
      latest_.reset();  // before the next one takes memory
      latest_ = make_likelihood(settings_, coords, which, name);
      key_ = key;
    }
    return latest_;
  }

 private:
  const Settings& settings_;
  std::tuple<std::int64_t, std::int64_t, std::string, std::string> key_;
  std::shared_ptr<mpol::Likelihood> latest_;
};

/// How a step is cut, and launched.
struct Cut {
  mpol::ops::TileKind tile;
  mpol::ops::StepKernels kernels;
};

std::optional<Cut> cut_of(const std::string& kind) {
  using mpol::ops::StepKernels, mpol::ops::TileKind;
  const std::map<std::string, Cut> cuts{
      {"tiles", {TileKind::low, StepKernels::several}},       {"rows2", {TileKind::two_rows, StepKernels::several}},
      {"rows4", {TileKind::four_rows, StepKernels::several}}, {"rows8", {TileKind::eight_rows, StepKernels::several}},
      {"one2", {TileKind::two_rows, StepKernels::one}},       {"one4", {TileKind::four_rows, StepKernels::one}}};
  const auto found = cuts.find(kind);
  return found == cuts.end() ? std::nullopt : std::optional(found->second);
}

/// Eight steps in a graph, cut as `cut` says, without a model or a Trainer around them.
json cut_case(const Settings& settings, const Case& which, const mpol::Likelihood& likelihood, const Cut& cut) {
  const auto cells = mpol::detail::cells_of(likelihood);
  if (cells.size() != 1) throw mpol::ValueError("tiles and rows are for gridded likelihoods");
  constexpr int at_once = 8;
  const auto pixels = which.npix * which.npix * which.nchan * which.problems;
  constexpr std::int64_t pixels_of_high_tiles = 524'288;
  mpol::ops::FusedGpuSettings own;
  own.npix = which.npix, own.nchan = which.nchan, own.problems = which.problems;
  own.cell_area = 0.005 * 0.005, own.likelihood_scale = 1e-6;
  own.terms.weight(mpol::TermKind::sparsity) = own.terms.weight(mpol::TermKind::tv_image) = 1e-3;
  own.columns = {mpol::TermKind::sparsity, mpol::TermKind::tv_image};
  own.dtype = dtype_of(which), own.device = settings.device, own.tile = cut.tile, own.kernels = cut.kernels;
  if (cut.tile == mpol::ops::TileKind::low && pixels >= pixels_of_high_tiles) own.tile = mpol::ops::TileKind::high;
  mpol::ops::FusedGpuPipeline pipeline(own, cells[0].cells, cells[0].data, cells[0].weights);
  const auto base = at::full({which.problems, which.nchan, which.npix, which.npix}, -3.0,
                             torch::TensorOptions(own.dtype).device(settings.device));
  pipeline.set_learning_rate(0.3);
  pipeline.make_room(1);
  pipeline.enqueue(base);  // loads kernels, which a recording could not
  mpol::RecordedWork work(
      settings.device, [&] { pipeline.enqueue(base, at_once); }, /*warm_ups=*/0);
  auto whole = settings;
  whole.steps = settings.steps / at_once * at_once;
  return {{"seconds", seconds_per_step(
                          [&](int steps) {
                            for (int i = 0; i < steps; i += at_once) {
                              pipeline.make_room(at_once);
                              work.replay();
                            }
                          },
                          whole)}};
}

/// GriddedNet with sparsity, total variation and Adam.
json step_case(const Settings& settings, const Case& which, Likelihoods& likelihoods, const std::string& likelihood_name,
               const std::string& kind) {
  const mpol::GridCoords coords(0.005, which.npix);
  const auto& likelihood = likelihoods.of(coords, which, likelihood_name);
  const bool is_pogm = kind == "pogm";
  const auto base = torch::full({which.problems, which.nchan, which.npix, which.npix}, is_pogm ? 0.05 : -3.0, torch::kFloat64);
  auto model_options = mpol::GriddedNetOptions(coords).base_cube(base).dtype(dtype_of(which));
  if (is_pogm) model_options.pixel_mapping(mpol::nonnegative_mapping());
  auto model = mpol::GriddedNet(model_options);
  model->to(settings.device);
  const mpol::Objective objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
  json row{{"samples", likelihood->samples()}};
  if (kind == "trainer") {
    row.update(timed_in_trainer(model.ptr(), objective, settings));
    return row;
  }
  if (const auto cut = cut_of(kind)) {
    row.update(cut_case(settings, which, *likelihood, *cut));
    return row;
  }
  const bool is_lbfgs = kind.starts_with("lbfgs");
  const auto wanted = kind.ends_with("eager") ? mpol::StepKind::eager
                      : kind == "captured"    ? mpol::StepKind::captured
                                              : mpol::StepKind::fused;
  auto options = mpol::TrainOptions().learning_rate(0.3).step(wanted);
  if (is_pogm) options.optimizer(mpol::OptimizerKind::pogm).tolerance(1e-3).step(mpol::StepKind::automatic);
  if (is_lbfgs) options.optimizer(mpol::OptimizerKind::lbfgs).learning_rate(1);
  const auto step = mpol::make_step(model.ptr(), objective, options);
  row.update(kind == "fused8" ? timed_in_eights(*step, settings) : timed(*step, settings));
  return row;
}

void print_row(const json& row) {
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
}

/// What a case adds to its row, or its error. @return false for an error
bool print_case_row(json row, const std::function<json()>& run) {
  bool good = true;
  try {
    row.update(run());
  } catch (const std::exception& error) {
    row["error"] = std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
    good = false;
  }
  print_row(row);
  return good;
}

/// Transforms of all channels at once, which share their points; on the CPU by its own kernels, one after the other.
bool print_transforms(const Settings& settings, const Case& which, std::int64_t points) {
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
  bool good = true;
  for (const auto& name : settings.transforms) {
    auto row = which.row(settings);
    row.update({{"points", points}, {"tolerance", settings.tolerance}, {"transform", name}});
    good &= print_case_row(row, [&]() -> json {
      const auto& transform = transforms.at(name);
      const double seconds = seconds_per_step(
          [&](int count) {
            for (int i = 0; i < count; ++i) transform();
          },
          settings);
      return {{"seconds", seconds}, {"points_per_s", static_cast<double>(which.nchan * points) / seconds}};
    });
  }
  return good;
}

bool print_case(const Settings& settings, const Case& which, Likelihoods& likelihoods) {
  bool good = true;
  if (!settings.transforms.empty()) {
    for (const auto& points : settings.points) good &= print_transforms(settings, which, std::stoll(points));
    return good;
  }
  for (const auto& likelihood : settings.likelihoods) {
    for (const auto& kind : settings.steps_of) {
      auto row = which.row(settings);
      row.update({{"likelihood", likelihood}, {"step", kind}});
      good &= print_case_row(row, [&] { return step_case(settings, which, likelihoods, likelihood, kind); });
    }
  }
  return good;
}

bool print_copy(const Settings& settings) {
  return print_case_row({{"device", settings.device.str()}, {"copied_mib", settings.copied_mib}}, [&]() -> json {
    const auto from = at::zeros({settings.copied_mib << 20}, torch::TensorOptions(torch::kUInt8).device(settings.device));
    auto to = at::empty_like(from);
    const double seconds = seconds_per_step(
        [&](int count) {
          for (int i = 0; i < count; ++i) to.copy_(from);
        },
        settings);
    return {{"seconds", seconds}, {"bytes_per_s", 2.0 * static_cast<double>(from.nbytes()) / seconds}};
  });
}

bool print_all(const Settings& settings) {
  if (settings.copied_mib > 0) return print_copy(settings);
  Likelihoods likelihoods(settings);
  bool good = true;
  for (const auto& dtype : settings.dtypes) {
    for (const auto& npix : settings.npix) {
      for (const auto& nchan : settings.nchan) {
        for (const auto& problems : settings.problems) {
          good &= print_case(settings, {std::stoll(npix), std::stoll(nchan), std::stoll(problems), dtype}, likelihoods);
        }
      }
    }
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return print_all(parse(argc, argv)) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_benchmark: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
