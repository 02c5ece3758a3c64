// Times mini-batches of visibilities that lie on disk: what it takes to make a batch ready (choosing samples, reading them,
// sorting their points), what a step takes of one, and what both take when the next batch is made during the step, beside the
// larger of the two and beside their sum; one JSON row a case. `problems` images make a step as long as that of a larger model.
//
// usage: mini_batch_benchmark streamed [--npix N,N…] [--nvis K,K…] [--batch B,B…] [--problems P,P…] [--dtype float32,float64]
//        [--threads T] [--seconds S]
#include <algorithm>
#include <functional>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/rand.h>

#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/device/device_timer.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/staged_likelihood.h>
#include <mpol_cpp/serialize/array_room.h>

#include "settings.h"

namespace {

using benchmarks::cell_size, benchmarks::Settings;
using nlohmann::json;

/// The same visibilities in files.
mpol::Visibilities on_disk(const mpol::Visibilities& all) {
  const auto room = mpol::ArrayRoom::on_disk(mpol::folder_for_arrays(static_cast<double>(all.memory_bytes())));
  const auto put = [&](const torch::Tensor& array) {
    auto placed = room.empty(array.sizes(), array.scalar_type());
    placed.copy_(array);
    return placed;
  };
  const auto& baselines = all.baselines();
  return {mpol::Baselines::in_lambda(put(baselines.u()), put(baselines.v())), put(all.data()), put(all.weights())};
}

/// Seconds of a pass over all batches, divided by their number.
double seconds_a_batch(std::int64_t batches, const std::function<void(std::int64_t)>& use) {
  mpol::DeviceTimer timer(torch::kCPU);
  for (std::int64_t i = 0; i < batches; ++i) use(i);
  return timer.seconds() / static_cast<double>(batches);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Passes of the three kinds by turns, so that what disturbs one disturbs all; medians over the rounds.
void streamed_case(const Settings& settings, std::int64_t npix, std::int64_t nvis, std::int64_t batch, std::int64_t problems,
                   torch::Dtype dtype, json row) {
  const mpol::GridCoords coords(cell_size, npix);
  const auto channels = mpol::ChannelMap::cube(1);
  const auto observed = on_disk(benchmarks::observation(settings, coords, 1, nvis, dtype));
  const auto options = mpol::VisibilitySamplerOptions().batch_size(batch);
  const mpol::VisibilitySampler sampler(coords, observed.baselines(), options);
  auto likelihood = mpol::MiniBatchLikelihood(coords, observed, channels, options);
  const auto sky = at::rand({problems, 1, npix, npix}, dtype);
  auto gradient = at::empty_like(sky);
  const auto kind = mpol::losses::detail::SkyKind::of(sky);

  std::int64_t epoch = 0;
  std::vector<torch::Tensor> samples;
  const auto make = [&](std::int64_t i) {
    if (i == 0) samples = sampler.epoch(epoch++);
    return mpol::losses::detail::stage_likelihood(coords, observed.select(samples[static_cast<std::size_t>(i)]), channels,
                                                  mpol::NoiseModel::gaussian(), {}, kind);
  };
  const auto step = [&](mpol::Likelihood& of) { of.value_and_gradient(sky, gradient, mpol::Accumulate::overwrite); };
  const auto ready = make(0);
  const auto pass = [&](const std::function<void(std::int64_t)>& use) { return seconds_a_batch(sampler.batches(), use); };
  std::vector<double> making, stepping, both;
  const auto before = benchmarks::CpuTime::read();
  mpol::DeviceTimer all(torch::kCPU);
  double wall = 0;
  while (making.size() < 5 || wall < settings.seconds) {
    making.push_back(pass([&](std::int64_t i) { make(i); }));
    stepping.push_back(pass([&](std::int64_t) { step(*ready.likelihood); }));
    both.push_back(pass([&](std::int64_t) { step(*likelihood); }));
    wall += static_cast<double>(sampler.batches()) * (making.back() + stepping.back() + both.back());
  }
  const auto after = benchmarks::CpuTime::read();
  const double make_s = median(making), step_s = median(stepping), both_s = median(both);
  row.update({{"batches", sampler.batches()}, {"batch", batch}, {"problems", problems}, {"nvis", observed.nvis()}});
  benchmarks::print(row, {{"make_s", make_s},
                          {"step_s", step_s},
                          {"both_s", both_s},
                          {"to_larger", both_s / std::max(make_s, step_s)},
                          {"to_sum", both_s / (make_s + step_s)},
                          {"rounds", making.size()},
                          {"others_cpu", std::max(0.0, ((after.all - before.all) - (after.own - before.own)) / all.seconds())}});
}

void run(const Settings& settings) {
  if (settings.what != "streamed") throw mpol::ValueError(fmt::format("group is {}; it must be streamed", settings.what));
  for (const auto& dtype : settings.dtypes) {
    for (const auto npix : settings.npix) {
      for (const auto nvis : settings.nvis) {
        for (const auto batch : settings.batch) {
          for (const auto problems : settings.problems) {
            streamed_case(settings, npix, nvis, batch, problems, benchmarks::dtype_of(dtype), {{"npix", npix}, {"dtype", dtype}});
          }
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return benchmarks::run_benchmark("mini_batch_benchmark", argc, argv, run); }
