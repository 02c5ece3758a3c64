// The kernels of the fused step on a GPU, run by loops on the CPU.
#include "catch.h"

#include <cmath>
#include <utility>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>
#include <mpol_cpp/ops/fused/gpu/gpu_cell_chi_squared.h>

#include "compare.h"
#include "fused_problem.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::EmulatedOrder;
using ops::FusedGpuPipeline;
using ops::FusedGpuSettings;
using ops::FusedUpdate;
using ops::TileKind;

namespace {

FusedGpuSettings device_settings(const ops::FusedSettings& settings, torch::Dtype dtype, TileKind tile) {
  FusedGpuSettings device{settings};
  device.dtype = dtype, device.tile = tile;
  const auto kinds = fused_regularizers();  // the last ones first: columns have an order of their own
  device.columns.assign(kinds.rbegin(), kinds.rend());
  return device;
}

struct Emulated {
  Tensor losses, gradient, image;
};

Emulated emulated_gradient(const FusedGpuSettings& settings, const Samples& samples, const Tensor& base) {
  FusedGpuPipeline pipeline(settings, samples.cells, samples.data, samples.weights);
  auto gradient = torch::full_like(base, std::nan(""));
  const auto before = base.clone();
  pipeline.make_room(1);
  pipeline.enqueue_gradient(base, gradient);
  CHECK(torch::equal(base, before));
  CHECK(pipeline.steps().eq(0).all().item<bool>());
  const auto losses = pipeline.next_losses();
  CHECK(relative_error(losses.parameters, base.sum({1, 2, 3}, false, torch::kFloat64)) < 1e-12);
  return {losses.losses, gradient, pipeline.image()};
}

/// Losses, gradients and images of the emulated kernels are those of autograd.
template <typename T>
void check_emulation(const Samples& samples, const ops::FusedSettings& settings, TileKind tile) {
  const auto device = device_settings(settings, dtype_of<T>(), tile);
  const auto base = random_base(device, device.dtype), precise = base.to(torch::kFloat64);
  const auto gradient = gradient_of([&](const Tensor& x) { return reference(x, samples, settings); }, precise);
  const auto emulated = emulated_gradient(device, samples, base);
  CHECK(relative_error(emulated.losses[0], reference(precise, samples, settings)) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(emulated.losses.narrow(0, 1, emulated.losses.size(0) - 1).sum(0), emulated.losses[0]) < 1e-12);
  CHECK(relative_error(emulated.gradient, gradient) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(emulated.image, ops::hann(at::softplus(precise))) < tolerance<T>(1e-14, 1e-6));
}

struct Trained {
  Tensor losses, base;
};

/// Ten steps, the learning rate halved midway.
Trained emulated_steps(const FusedGpuSettings& settings, const Samples& samples, const Tensor& start) {
  FusedGpuPipeline pipeline(settings, samples.cells, samples.data, samples.weights);
  const auto base = start.clone();
  std::vector<Tensor> losses;
  for (int i = 0; i < 10; ++i) {
    pipeline.set_learning_rate(i < 5 ? 0.1 : 0.05);
    pipeline.make_room(1);
    pipeline.enqueue(base);
    const auto step = pipeline.next_losses();
    losses.push_back(step.losses.select(0, 0));
    CHECK(relative_error(step.parameters, base.sum({1, 2, 3}, false, torch::kFloat64)) < 1e-12);
  }
  CHECK(pipeline.steps().eq(10).all().item<bool>());
  return {at::stack(losses), base};
}

/// The same by the pipeline of the CPU.
template <typename T>
Trained cpu_steps(const ops::FusedSettings& settings, const FusedGpuSettings& device, const Samples& samples,
                  const Tensor& start) {
  ops::FusedPipeline<T> pipeline(
      settings, ops::column_cells<T>(samples.cells, samples.data, samples.weights, settings.nchan, settings.npix));
  const auto base = start.clone();
  auto first = torch::zeros_like(base), second = torch::zeros_like(base);
  std::vector<Tensor> losses;
  for (int i = 0; i < 10; ++i) {
    ops::UpdateSettings update;
    update.rate = i < 5 ? 0.1 : 0.05;
    update.momentum = device.momentum;
    auto kind = ops::FusedUpdate::sgd;
    if (device.update == FusedUpdate::adam) {
      kind = ops::FusedUpdate::adam;
      update.rate /= 1 - std::pow(update.beta1, i + 1);
      update.second_scale = 1 / std::sqrt(1 - std::pow(update.beta2, i + 1));
    }
    const bool has_first = kind == ops::FusedUpdate::adam || device.momentum != 0;
    const ops::UpdateRow<T> pixels{base.template mutable_data_ptr<T>(),
                                   has_first ? first.template mutable_data_ptr<T>() : nullptr,
                                   kind == ops::FusedUpdate::adam ? second.template mutable_data_ptr<T>() : nullptr, nullptr};
    std::vector<double> totals;
    for (const auto& values : pipeline.run(kind, pixels, update)) totals.push_back(total_of(values, settings));
    losses.push_back(torch::tensor(totals, torch::kFloat64));
  }
  return {at::stack(losses), base};
}

}  // namespace

TEMPLATE_TEST_CASE("emulated GPU kernels give autograd's gradient for every size", "[ops][fused][cuda][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 4, 6, 30, 34, 42, 64), nchan = GENERATE(1, 3);
  const auto tile = GENERATE(TileKind::low, TileKind::high, TileKind::odd);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.problems = npix < 34 ? 2 : 1;
  check_emulation<TestType>(Samples(npix, nchan, npix == 30 ? 1.0 : 0.3, 5), settings, tile);
}

TEMPLATE_TEST_CASE("emulated GPU kernels that transform rows by themselves give autograd's gradient", "[ops][fused][cuda][quick]",
                   float, double) {
  const std::int64_t npix = GENERATE(2, 4, 6, 10, 16, 18, 30, 50, 54, 64, 96, 128), nchan = GENERATE(1, 3);
  const auto tile = GENERATE(TileKind::two_rows, TileKind::four_rows, TileKind::eight_rows, TileKind::odd_rows);
  CAPTURE(npix, nchan);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.problems = npix < 34 ? 2 : 1;
  check_emulation<TestType>(Samples(npix, nchan, npix == 30 ? 1.0 : 0.3, 5), settings, tile);
}

TEMPLATE_TEST_CASE("emulated kernels of cells alone give chi^2 and autograd's gradient", "[ops][fused][cuda][quick]", float,
                   double) {
  const std::int64_t npix = GENERATE(2, 6, 30, 64), nchan = GENERATE(1, 3);
  const auto order = GENERATE(EmulatedOrder::ascending, EmulatedOrder::descending);
  const Samples samples(npix, nchan, 0.3, 5);
  REQUIRE(ops::GpuCellChiSquared::has(npix, dtype_of<TestType>(), torch::kCPU));
  ops::GpuCellChiSquared form(samples.cells, samples.data, samples.weights, nchan, npix, cell_area, dtype_of<TestType>(),
                              torch::kCPU, order);
  for (const std::int64_t problems : {2, 1}) {
    const auto images = normal({problems, nchan, npix, npix}, torch::kFloat64, 17).to(dtype_of<TestType>());
    auto gradient = torch::full_like(images, std::nan(""));
    const auto values = form.run(images, gradient);
    const auto of_image = [&](const Tensor& x) { return chi_squared_of(x, samples); };
    const auto precise = images.to(torch::kFloat64);
    CHECK(relative_error(values.sum(1), of_image(precise)) < tolerance<TestType>(1e-13, 1e-5));
    CHECK(relative_error(gradient, gradient_of(of_image, precise)) < tolerance<TestType>(1e-13, 1e-5));
  }
  CHECK_FALSE(ops::GpuCellChiSquared::has(14, dtype_of<TestType>(), torch::kCPU));
  CHECK(ops::GpuCellChiSquared::agrees(dtype_of<TestType>(), torch::kCPU));
}

TEMPLATE_TEST_CASE("emulated GPU kernels are right for each regulariser alone", "[ops][fused][cuda][quick]", float, double) {
  const auto every = all_terms();
  const auto kind = GENERATE(from_range(fused_regularizers()));
  CAPTURE(regularizer_of(kind).name, every.weight(kind));
  REQUIRE(every.weight(kind) > 0);
  const Samples samples(22, 3, 0.3, 7);
  auto terms = every;
  terms.weight(kind) = 0;
  check_emulation<TestType>(samples, settings_for(22, 3, terms), TileKind::odd);
  for (double& weight : terms.weights) weight = 0;
  check_emulation<TestType>(samples, settings_for(22, 3, terms), TileKind::odd);
  terms.weight(kind) = every.weight(kind);
  check_emulation<TestType>(samples, settings_for(22, 3, terms), TileKind::odd);
}

TEST_CASE("emulated GPU kernels are right with columns, rows, channels or all data missing", "[ops][fused][cuda][quick]") {
  const std::int64_t npix = 20, half = npix / 2 + 1;
  const auto settings = settings_for(npix, 3, all_terms());
  const auto check_with = [&](const std::function<Tensor(const Tensor&)>& keep) {
    Samples samples(npix, 3, 0.4, 8);
    samples.only(keep);
    check_emulation<double>(samples, settings, TileKind::odd);
  };
  check_with([&](const Tensor& flat) { return flat.remainder(half) % 3 == 1; });
  check_with([&](const Tensor& flat) { return flat.remainder(half) == 0; });
  check_with([&](const Tensor& flat) { return flat.remainder(half) == half - 1; });
  check_with([&](const Tensor& flat) { return at::floor_divide(flat, half).remainder(npix) > 10; });
  check_with([&](const Tensor& flat) { return at::floor_divide(flat, half * npix) == 1; });
  check_with([&](const Tensor& flat) { return flat < 0; });
}

TEMPLATE_TEST_CASE("emulated GPU steps are those of the CPU", "[ops][fused][cuda][quick]", float, double) {
  const std::int64_t npix = GENERATE(6, 30);
  const auto update = GENERATE(FusedUpdate::adam, FusedUpdate::sgd);
  const double momentum = GENERATE(0.0, 0.8);
  auto settings = settings_for(npix, 2, all_terms());
  settings.problems = 2;
  auto device = device_settings(settings, dtype_of<TestType>(), TileKind::odd);
  device.update = update, device.momentum = momentum, device.history_entries = 3;
  const Samples samples(npix, 2, 0.3, 9);
  const auto start = random_base(device, device.dtype);
  const auto own = emulated_steps(device, samples, start), expected = cpu_steps<TestType>(settings, device, samples, start);
  CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-11, 1e-5));
  CHECK(relative_error(own.base, expected.base) < tolerance<TestType>(1e-9, 1e-4));
}

TEMPLATE_TEST_CASE("no order of blocks and threads changes what emulated GPU kernels give", "[ops][fused][cuda][quick]", float,
                   double) {
  const auto tile = GENERATE(TileKind::low, TileKind::high, TileKind::odd);
  auto settings = settings_for(38, 2, all_terms());
  settings.problems = 2;
  const Samples samples(38, 2, 0.3, 10);
  auto device = device_settings(settings, dtype_of<TestType>(), tile);
  const auto start = random_base(device, device.dtype);
  const auto ascending = emulated_steps(device, samples, start);
  device.order = EmulatedOrder::descending;
  const auto descending = emulated_steps(device, samples, start);
  CHECK(torch::equal(ascending.losses, descending.losses));
  CHECK(torch::equal(ascending.base, descending.base));
}

TEMPLATE_TEST_CASE("an emulated problem is the same alone and among others, each with weights of its own",
                   "[ops][fused][cuda][quick]", float, double) {
  const Samples samples(14, 2, 0.3, 11);
  auto settings = settings_for(14, 2, all_terms());
  settings.problems = 3;
  auto device = device_settings(settings, dtype_of<TestType>(), TileKind::odd);
  const auto start = random_base(device, device.dtype);
  const auto scale = [](std::int64_t problem) { return 0.5 + static_cast<double>(problem); };

  FusedGpuPipeline together(device, samples.cells, samples.data, samples.weights);
  const auto base = start.clone();
  for (std::int64_t problem = 0; problem < 3; ++problem) {
    together.lambdas().select(1, problem).mul_(scale(problem));
    together.learning_rates()[problem].fill_(0.1 * scale(problem));
  }
  together.make_room(2);
  together.enqueue(base);
  together.enqueue(base);
  together.next_losses();
  const auto losses = together.next_losses().losses;

  device.problems = 1;
  for (std::int64_t problem = 0; problem < 3; ++problem) {
    FusedGpuPipeline alone(device, samples.cells, samples.data, samples.weights);
    alone.lambdas().mul_(scale(problem));
    alone.set_learning_rate(0.1 * scale(problem));
    const auto own = start.narrow(0, problem, 1).clone();
    alone.make_room(2);
    alone.enqueue(own);
    alone.enqueue(own);
    alone.next_losses();
    CHECK(torch::equal(alone.next_losses().losses.select(1, 0), losses.select(1, problem)));
    CHECK(torch::equal(own[0], base[problem]));
  }
}

TEMPLATE_TEST_CASE("an emulated problem with cells of its own is the same alone and among others", "[ops][fused][cuda][quick]",
                   float, double) {
  auto settings = settings_for(14, 2, all_terms());
  settings.problems = 3;
  auto device = device_settings(settings, dtype_of<TestType>(), TileKind::odd);
  const auto start = random_base(device, device.dtype);
  // Folds: one has no data at all, one no column 0.
  std::vector<ops::ProblemCells> folds;
  for (const std::int64_t fold : {0, 1, 2}) {
    Samples samples(14, 2, 0.2 + 0.1 * static_cast<double>(fold), 30 + static_cast<std::uint64_t>(fold));
    if (fold == 1) samples.only([](const Tensor& flat) { return flat < 0; });
    if (fold == 2) samples.only([](const Tensor& flat) { return flat.remainder(8) != 0; });
    folds.push_back({samples.cells, samples.data, samples.weights});
  }
  for (const double scale : {1e-2, 3e-2, 2e-3}) device.own.push_back({scale, settings.terms});
  const auto train = [](FusedGpuPipeline& pipeline, Tensor base) {
    pipeline.set_learning_rate(0.1);
    std::vector<Tensor> losses;
    for (int i = 0; i < 3; ++i) {
      pipeline.make_room(1);
      pipeline.enqueue(base);
      losses.push_back(pipeline.next_losses().losses);
    }
    return Trained{at::stack(losses), base};
  };
  FusedGpuPipeline together(device, folds);
  const auto all = train(together, start.clone());
  const auto problems = std::exchange(device.own, {});
  device.problems = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto problem = static_cast<std::int64_t>(i);
    device.likelihood_scale = problems[i].likelihood_scale;
    FusedGpuPipeline alone(device, folds[i].cells, folds[i].data, folds[i].weights);
    const auto one = train(alone, start.narrow(0, problem, 1).clone());
    CHECK(torch::equal(one.losses.select(2, 0), all.losses.select(2, problem)));
    CHECK(torch::equal(one.base[0], all.base[problem]));
  }
  // The same by the pipeline of the CPU.
  ops::FusedSettings cpu = settings;
  std::vector<ops::ColumnCells<TestType>> cells;
  for (std::size_t i = 0; i < 3; ++i) {
    cpu.own.push_back(problems[i]);
    for (auto& own : ops::column_cells<TestType>(folds[i].cells, folds[i].data, folds[i].weights, 2, 14))
      cells.push_back(std::move(own));
  }
  ops::FusedPipeline<TestType> pipeline(cpu, cells);
  auto base = start.clone(), first = torch::zeros_like(base), second = torch::zeros_like(base);
  const ops::UpdateRow<TestType> pixels{base.template mutable_data_ptr<TestType>(), first.template mutable_data_ptr<TestType>(),
                                        second.template mutable_data_ptr<TestType>(), nullptr};
  const auto& values = pipeline.run(ops::FusedUpdate::adam, pixels, {});
  for (std::size_t i = 0; i < 3; ++i) {
    const double nll = all.losses[0][1][static_cast<std::int64_t>(i)].template item<double>();
    CHECK(nll == Approx(values[i].chi_squared * problems[i].likelihood_scale).epsilon(tolerance<TestType>(1e-11, 1e-5)));
  }
}

TEST_CASE("a stopped problem stays where it is, its neighbours go on", "[ops][fused][cuda][quick]") {
  const Samples samples(10, 1, 0.4, 12);
  auto settings = settings_for(10, 1, all_terms());
  settings.problems = 2;
  const auto device = device_settings(settings, torch::kFloat64, TileKind::odd);
  FusedGpuPipeline pipeline(device, samples.cells, samples.data, samples.weights);
  pipeline.set_learning_rate(0.1);
  const auto base = random_base(device, device.dtype);
  const auto step = [&] {
    pipeline.make_room(1);
    pipeline.enqueue(base);
    return pipeline.next_losses().losses[0].clone();
  };
  step();
  const auto before = base.clone(), moments = pipeline.first().clone();
  pipeline.stopped()[1].fill_(1);
  const auto one = step(), two = step();
  CHECK(torch::equal(base[1], before[1]));
  CHECK(torch::equal(pipeline.first()[1], moments[1]));
  CHECK_FALSE(torch::equal(base[0], before[0]));
  CHECK(one[1].item<double>() == two[1].item<double>());
  CHECK(one[0].item<double>() != two[0].item<double>());
  CHECK(torch::equal(pipeline.steps(), torch::tensor({3, 1}, torch::kInt64)));
}

TEST_CASE("losses stay what they were when later steps begin a new history", "[ops][fused][cuda][quick]") {
  const Samples samples(6, 1, 0.4, 13);
  auto device = device_settings(settings_for(6, 1, all_terms()), torch::kFloat64, TileKind::odd);
  device.history_entries = 2;
  FusedGpuPipeline pipeline(device, samples.cells, samples.data, samples.weights);
  pipeline.set_learning_rate(0.2);
  const auto base = random_base(device, device.dtype);
  std::vector<Tensor> kept, copies;
  for (int i = 0; i < 7; ++i) {
    pipeline.make_room(1);
    pipeline.enqueue(base);
    kept.push_back(pipeline.next_losses().losses);
    copies.push_back(kept.back().clone());
  }
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(torch::equal(kept[i], copies[i]));
  CHECK_THROWS_AS(pipeline.make_room(3), ValueError);
  CHECK_THROWS_AS(pipeline.next_losses(), ValueError);
}

TEST_CASE("the emulation finds an element that is not there", "[ops][fused][cuda][quick]") {
  std::vector<double> values(4);
  const ops::DeviceArray<double> array{values.data(), 4};
  CHECK_NOTHROW(array[3]);
  CHECK_THROWS_AS(array[4], std::out_of_range);
  CHECK_THROWS_AS(array[-1], std::out_of_range);
  // A step more than there is room for reaches beyond the history.
  const Samples samples(6, 1, 0.4, 14);
  auto device = device_settings(settings_for(6, 1, all_terms()), torch::kFloat64, TileKind::odd);
  device.history_entries = 1;
  FusedGpuPipeline pipeline(device, samples.cells, samples.data, samples.weights);
  const auto base = random_base(device, device.dtype);
  pipeline.enqueue(base);
  CHECK_THROWS_AS(pipeline.enqueue(base), std::out_of_range);
}

TEST_CASE("a pixel that is not a number shows in the emulated losses", "[ops][fused][cuda][quick]") {
  const Samples samples(12, 1, 0.2, 15);
  const auto device = device_settings(settings_for(12, 1, {}), torch::kFloat64, TileKind::odd);
  auto base = random_base(device, device.dtype);
  base[0][0][5][11] = std::nan("");
  FusedGpuPipeline pipeline(device, samples.cells, samples.data, samples.weights);
  pipeline.make_room(1);
  pipeline.enqueue(base);
  const auto losses = pipeline.next_losses();
  CHECK_FALSE(std::isfinite(losses.losses[0][0].item<double>()));
  CHECK_FALSE(std::isfinite(losses.parameters[0].item<double>()));
}

TEST_CASE("the pipeline for a GPU refuses what does not fit it", "[ops][fused][cuda][quick]") {
  const Samples samples(12, 2, 0.2, 16);
  const auto make = [&](const FusedGpuSettings& settings) {
    FusedGpuPipeline(settings, samples.cells, samples.data, samples.weights);
  };
  const auto fitting = device_settings(settings_for(12, 2, all_terms()), torch::kFloat32, TileKind::odd);
  CHECK_NOTHROW(make(fitting));
  auto settings = fitting;
  settings.nchan = 1;
  CHECK_THROWS_AS(make(settings), ValueError);
  settings = fitting, settings.npix = 13;
  CHECK_THROWS_AS(make(settings), ValueError);
  settings = fitting, settings.dtype = torch::kFloat16;
  CHECK_THROWS_AS(make(settings), ValueError);
  settings = fitting, settings.inverse_power = Tensor();
  CHECK_THROWS_AS(make(settings), ValueError);
  settings = fitting, settings.own = {{1, all_terms()}, {2, all_terms()}};
  CHECK_THROWS_AS(make(settings), ValueError);
  const ops::ProblemCells fold{samples.cells, samples.data, samples.weights};
  CHECK_THROWS_AS(FusedGpuPipeline(fitting, std::vector{fold, fold}), ValueError);
  FusedGpuPipeline pipeline(fitting, samples.cells, samples.data, samples.weights);
  CHECK_THROWS_AS(pipeline.enqueue(torch::zeros({1, 2, 12, 12}, torch::kFloat64)), ValueError);
  CHECK_THROWS_AS(pipeline.enqueue(torch::zeros({1, 2, 12, 10})), ValueError);
}
