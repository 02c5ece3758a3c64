#include "catch.h"

#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/distributed/device_group.h>
#include <mpol_cpp/train/steps/step_timing.h>

#include "threads.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<torch::Device> two_cpus = {torch::kCPU, torch::kCPU};
const GridCoords small_grid(0.05, 16);

double relative_difference(const Tensor& a, const Tensor& b) {
  return ((a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max() / b.abs().max().to(torch::kFloat64)).item<double>();
}

}  // namespace

TEST_CASE("each device of a group is a rank that is a thread, with its part of the threads", "[distributed][devices][quick]") {
  const Threads threads(5);
  DeviceGroup group(two_cpus);
  CHECK(at::get_num_threads() == 5);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::vector<int> numbers(2);
  for (int run = 0; run < 2; ++run) {
    group.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
      auto sum = at::ones({3}, torch::kFloat64);
      ranks->all_reduce_sum(sum);
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
      numbers[static_cast<std::size_t>(ranks->rank())] = at::get_num_threads();
      if (!device.is_cpu() || ranks->size() != 2 || sum[0].item<double>() != 2) throw DataError("no rank of two");
    });
  }
  CHECK(ids.size() == 2);  // the same in both runs, so that what a thread keeps is kept
  CHECK_FALSE(ids.contains(std::this_thread::get_id()));
  CHECK(numbers == std::vector<int>{3, 2});
}

TEST_CASE("the fastest device is the first rank, and equal ones keep their order", "[distributed][devices][quick]") {
  const DeviceGroup group({torch::kCPU, torch::Device(torch::kMeta), torch::kCPU}, {1, 2, 1});
  CHECK(group.devices() == std::vector<torch::Device>{torch::Device(torch::kMeta), torch::kCPU, torch::kCPU});
  CHECK(group.speeds() == std::vector<double>{2, 1, 1});
  CHECK(DeviceGroup(two_cpus).speeds() == std::vector<double>{1, 1});
  CHECK_THROWS_AS(DeviceGroup({}), ValueError);
  CHECK_THROWS_AS(DeviceGroup(two_cpus, {1}), ValueError);
  CHECK_THROWS_AS(DeviceGroup(two_cpus, {1, 0}), ValueError);
  CHECK_THROWS_AS(DeviceGroup({torch::kCPU, torch::Device(torch::kCUDA, 77)}), DeviceError);
}

TEST_CASE("a device that fails ends the others, also those of a part, and a group goes on afterwards",
          "[distributed][devices][quick]") {
  DeviceGroup group({torch::kCPU, torch::kCPU, torch::kCPU});
  const auto work = [](const std::shared_ptr<Communicator>& ranks, torch::Device) {
    const auto part = ranks->first(2);
    if (ranks->rank() == 1) throw DataError("rank 1 has bad data");
    if (part) part->barrier();
    ranks->barrier();
  };
  CHECK_THROWS_WITH(group.run(work), "rank 1 has bad data");
  double sum = 0;
  group.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device) {
    std::vector<double> one = {1};
    ranks->sum(one);
    if (ranks->is_first()) sum = one.front();
  });
  CHECK(sum == 3);
}

TEST_CASE("things go to the rank that would be done first", "[distributed][devices][quick]") {
  using Owners = std::vector<std::int64_t>;
  CHECK(owners_by_speed(5, {1, 1}) == Owners{0, 1, 0, 1, 0});
  CHECK(owners_by_speed(6, {1, 0.5}) == Owners{0, 0, 1, 0, 0, 1});
  CHECK(owners_by_speed(3, {1, 0.01}) == Owners{0, 0, 0});
  CHECK(owners_by_speed(0, {1}).empty());
  CHECK_THROWS_AS(owners_by_speed(1, {}), ValueError);
  CHECK_THROWS_AS(owners_by_speed(1, {1, 0}), ValueError);
  CHECK_THROWS_AS(owners_by_speed(1, {1, std::nan("")}), ValueError);
  CHECK_THROWS_AS(owners_by_speed(-1, {1}), ValueError);
  const auto count = GENERATE(0, 1, 7, 64);
  const auto size = GENERATE(1, 2, 3);
  const auto equal = shares_by_speed(count, std::vector<double>(static_cast<std::size_t>(size), 0.3));
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const auto& share = equal[static_cast<std::size_t>(rank)];
    const auto wanted = share_of(count, rank, size);
    CHECK((share.begin == wanted.begin && share.end == wanted.end));
  }
  // No rank needs longer than the time in which all together would do it, and one thing more.
  const std::vector<double> speeds = {1, 0.7, 0.2};
  const auto shares = shares_by_speed(count, speeds);
  std::int64_t next = 0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    CHECK(shares[rank].begin == next);
    next = shares[rank].end;
    CHECK(static_cast<double>(shares[rank].size()) / speeds[rank] <= static_cast<double>(count) / 1.9 + 1 / speeds[rank]);
  }
  CHECK(next == count);
}

TEST_CASE("devices of one kind are equally fast, and nothing is measured", "[distributed][devices][quick]") {
  CHECK(relative_speeds(1 << 14, two_cpus) == std::vector<double>{1, 1});
  CHECK(relative_speeds(1 << 14, {torch::kCPU}) == std::vector<double>{1});
}

TEMPLATE_TEST_CASE("devices that fit channels of a cube go where one goes", "[distributed][devices]", float, double) {
  const auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const double tolerance = dtype == torch::kFloat64 ? 1e-12 : 2e-5;
  constexpr std::int64_t nchan = 5;
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::pogm);
  const auto noise = random_visibilities(small_grid, nchan, 7);
  const auto [u, v] = noise.baselines().channel(0);
  const Visibilities visibilities(Baselines::in_lambda(u, v), noise.data() + 1.0, noise.weights());
  const auto base = normal({nchan, small_grid.npix(), small_grid.npix()}, torch::kFloat64, 3).abs();
  const double normalizer = ExactLikelihood(small_grid, visibilities, ChannelMap::cube(nchan))->normalizer();
  const auto fit = [&](const Share& share, TrainOptions options) {
    std::vector<std::int64_t> own(static_cast<std::size_t>(share.size()));
    std::iota(own.begin(), own.end(), share.begin);
    const ExactLikelihood likelihood(small_grid, visibilities.select_channels(own), ChannelMap::cube(share.size()));
    const auto objective = Objective(likelihood, {terms::sparsity(1e-5), terms::tv_image(1e-5)}).divided_by(normalizer);
    const GriddedNet model(GriddedNetOptions(small_grid)
                               .base_cube(base.narrow(0, share.begin, share.size()).clone())
                               .dtype(dtype)
                               .pixel_mapping(is_proximal(optimizer) ? nonnegative_mapping() : softplus_mapping()));
    Trainer(model, objective, options.optimizer(optimizer).epochs(25)).fit();
    return model->base().detach().clone();
  };
  const auto one = fit({0, nchan}, {});
  DeviceGroup group(two_cpus, {1, 0.5});
  const auto shares = shares_by_speed(nchan, group.speeds());
  CHECK(shares[0].size() == 4);
  Tensor many;
  group.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const auto own = fit(shares[static_cast<std::size_t>(ranks->rank())], TrainOptions().device(device).ranks(ranks));
    const auto all = ranks->gather(own.contiguous());
    if (all.defined()) many = all;
  });
  CHECK(relative_difference(many, one) < tolerance);
}

TEST_CASE("devices that share folds find the scan of one", "[distributed][devices]") {
  const auto noise = random_visibilities(small_grid, 1, 5);
  const Visibilities visibilities(noise.baselines(), noise.data() + 1.0, noise.weights());
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3));
  const auto data = [&] { return exact_fold_data(small_grid, visibilities, folds); };
  const auto model = [](const FoldData&) -> std::shared_ptr<ImageModel> {
    return GriddedNet(GriddedNetOptions(small_grid).dtype(torch::kFloat64).pixel_mapping(nonnegative_mapping())).ptr();
  };
  SearchAxis axis;
  axis.term = "sparsity";
  axis.unit = 1e-3;
  axis.values = {0.3, 1, 3};
  axis.start = 1;
  axis.low = 0.3;
  axis.high = 3;
  const auto how = CrossValidatorOptions()
                       .search(Search::grid())
                       .train(TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-3).epochs(100));
  const auto one = CrossValidator(data(), model, {terms::sparsity(1e-3)}, {axis}, how).run();
  DeviceGroup group(two_cpus, {1, 0.4});
  const auto shared = data();
  std::vector<Scan> scans(2);
  group.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device) {
    auto own = how;
    own.ranks(ranks).speeds(group.speeds());
    CrossValidator validator(shared, model, {terms::sparsity(1e-3)}, {axis}, own);
    ranks->barrier();
    scans[static_cast<std::size_t>(ranks->rank())] = validator.run();
  });
  for (const auto& scan : scans) {
    REQUIRE(scan.points.size() == one.points.size());
    CHECK(scan.chosen == one.chosen);
    for (std::size_t point = 0; point < one.points.size(); ++point) {
      CHECK(scan.points[point].score() == Approx(one.points[point].score()).epsilon(1e-12));
      CHECK(relative_difference(scan.points[point].image, one.points[point].image) < 1e-6);
    }
  }
  auto wrong = how;
  wrong.ranks(single_rank()).speeds({1, 1});
  CHECK_THROWS_AS(CrossValidator(data(), model, {terms::sparsity(1e-3)}, {axis}, wrong), ValueError);
}
