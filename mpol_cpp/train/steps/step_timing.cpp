#include <mpol_cpp/train/steps/step_timing.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/device_timer.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/train/steps/make_step.h>

namespace mpol {
namespace {

/// Noise on baselines that fill the grid's uv plane.
Visibilities noise_on_plane(const GridCoords& coords, std::int64_t nchan) {
  constexpr std::int64_t nvis = 20000;
  const auto generator = at::detail::createCPUGenerator(1);
  const auto spread = [&] { return (at::rand({nvis}, generator, torch::kFloat64) * 2 - 1) * (0.9 * coords.max_uv()); };
  const auto part = [&] { return at::randn({nchan, nvis}, generator, torch::kFloat64); };
  auto baselines = Baselines::in_lambda(spread(), spread());
  return {std::move(baselines), at::complex(part(), part()), at::full({nchan, nvis}, 1.0, torch::kFloat64)};
}

/// The regularizers that a fit has by itself.
std::vector<Term> usual_terms() {
  constexpr double weight = 1e-3;
  std::vector<Term> terms;
  for (const auto kind : all_regularizers()) {
    if (regularizer_of(kind).automatic) terms.push_back(Term::known(kind, weight));
  }
  return terms;
}

/// What devices that are equally fast have in common.
std::string kind_of_device(torch::Device device) {
  if (device.is_cpu()) return "cpu";
  const auto backend = find_backend(device.type());
  return backend ? backend->name() + " " + backend->info(std::max<int>(0, device.index())).name : device.str();
}

}  // namespace

StepTime time_step(std::int64_t npix, torch::Device device, const StepTimingOptions& options) {
  const GridCoords coords(0.01, npix);
  auto likelihood = ExactLikelihood(coords, noise_on_plane(coords, options.nchan()), ChannelMap::cube(options.nchan()));
  auto model = GriddedNet(GriddedNetOptions(coords).nchan(options.nchan()).dtype(options.dtype()));
  likelihood->to(device);
  model->to(device);
  const Objective objective(likelihood, usual_terms());
  const auto step = make_step(model.ptr(), objective, TrainOptions().optimizer(OptimizerKind::adam));
  constexpr double learning_rate = 1e-3;
  constexpr std::int64_t warm_ups = 3, most_steps = 1 << 16;
  step->take_several(learning_rate, warm_ups);
  StepTime time{.kind = step->kind(), .reason = step->reason()};
  for (std::int64_t count = 1; count <= most_steps; count *= 2) {
    DeviceTimer timer(device);
    step->take_several(learning_rate, count);
    const double seconds = timer.seconds();  // waits for the device
    time.seconds = seconds / static_cast<double>(count);
    time.steps = count;
    if (seconds >= options.least_seconds()) break;
  }
  return time;
}

std::vector<double> relative_speeds(std::int64_t npix, const std::vector<torch::Device>& devices,
                                    const StepTimingOptions& options) {
  std::map<std::string, double> of_kind;
  double cpus = 0;
  for (const auto device : devices) {
    of_kind.try_emplace(kind_of_device(device), 1.0);
    cpus += device.is_cpu() ? 1 : 0;
  }
  std::vector<double> speeds(devices.size(), 1.0);
  if (of_kind.size() < 2) return speeds;
  for (auto& [kind, speed] : of_kind) {
    const auto one = std::find_if(devices.begin(), devices.end(),
                                  [&kind = kind](torch::Device device) { return kind_of_device(device) == kind; });
    speed = 1 / time_step(npix, *one, options).seconds;
    if (one->is_cpu()) speed /= cpus;
  }
  double fastest = 0;
  for (const auto& [kind, speed] : of_kind) fastest = std::max(fastest, speed);
  for (std::size_t i = 0; i < devices.size(); ++i) speeds[i] = of_kind.at(kind_of_device(devices[i])) / fastest;
  return speeds;
}

}  // namespace mpol
