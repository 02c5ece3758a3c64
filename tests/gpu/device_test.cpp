// Selection, copies, timers and moves. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <tuple>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/device_iterator.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/move.h>
#include <mpol_cpp/device/device_timer.h>

#include "compare.h"
#include "random.h"
#include "required_gpu.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("the selection gives the GPU that is there", "[gpu][device]") {
  const auto gpu = required_gpu();
  CHECK(functional(c10::DeviceType::CUDA));
  CHECK(compiled_in(c10::DeviceType::CUDA));
  CHECK(select_device(DeviceRequest::cuda(0), Fallback::error) == gpu);
  CHECK(select_device(DeviceRequest::least_loaded(), Fallback::error).is_cuda());
  CHECK_THROWS_AS(select_device(DeviceRequest::cuda(cuda_device_count()), Fallback::error), DeviceError);
}

TEST_CASE("information about a GPU is of the one that LibTorch computes on", "[gpu][device]") {
  const auto gpu = required_gpu();
  const auto before = gpu_info().at(0);
  CHECK_FALSE(before.name.empty());
  CHECK_FALSE(before.uuid.empty());
  CHECK_FALSE(before.capability.empty());
  CHECK(before.memory.total_bytes > 0);
  constexpr std::int64_t bytes = std::int64_t{1} << 30;
  const auto held = at::ones({bytes}, at::TensorOptions(torch::kUInt8).device(gpu));
  CHECK(held.select(0, bytes - 1).item<std::int64_t>() == 1);
  // Others come and go on the same GPU: what is held cannot be free.
  const auto now = memory_info(gpu);
  CHECK(now.free_bytes <= now.total_bytes - bytes);
}

TEST_CASE("batches staged through pinned memory arrive whole, also when the device is behind", "[gpu][device]") {
  const auto gpu = required_gpu();
  std::vector<std::vector<Tensor>> loader;
  for (std::uint64_t i = 0; i < 40; ++i)
    loader.push_back({normal({1 << 18}, torch::kFloat32, i), normal({7}, torch::kComplexFloat, i)});
  const auto work = normal({2048, 2048}, torch::kFloat32, 99).to(gpu);
  std::size_t index = 0;
  std::vector<Tensor> copies;
  for (auto& batch : DeviceIterator(loader, gpu, 2)) {
    CHECK(device_of(batch) == gpu);
    work.matmul(work);  // keeps the device busy while the next batches are copied
    copies.push_back(batch[0] * 1);
    copies.push_back(batch[1] * 1);
    ++index;
  }
  REQUIRE(index == loader.size());
  for (std::size_t i = 0; i < loader.size(); ++i) {
    CHECK(same(copies[2 * i].cpu(), loader[i][0]));
    CHECK(same(copies[2 * i + 1].cpu(), loader[i][1]));
  }
}

TEST_CASE("a run that moves from the GPU to the CPU and back goes on as it would have", "[gpu][device]") {
  const auto gpu = required_gpu();
  const auto train = [&](bool move) {
    torch::nn::Linear linear(3, 2);
    {
      const torch::NoGradGuard no_grad;
      linear->weight.fill_(0.5);
      linear->bias.fill_(0.1);
    }
    linear->to(gpu);
    torch::optim::Adam optimizer(linear->parameters(), 0.1);
    auto both = std::tie(linear, optimizer);
    for (int i = 0; i < 6; ++i) {
      if (move && i == 3) {
        move_to(both, torch::kCPU);
        CHECK(device_of(both).is_cpu());
        move_to(both, gpu);
        CHECK(device_of(both) == gpu);
      }
      optimizer.zero_grad();
      linear->forward(at::ones({3}).to(gpu)).pow(2).sum().backward();
      optimizer.step();
    }
    return linear->weight.detach().cpu();
  };
  CHECK(same(train(true), train(false)));
}

TEST_CASE("a timer on the GPU counts what the device does, not what the host waits", "[gpu][device]") {
  const auto gpu = required_gpu();
  const auto work = normal({4096, 4096}, torch::kFloat32, 1).to(gpu);
  work.matmul(work);
  DeviceTimer once(gpu);
  work.matmul(work);
  once.stop();
  DeviceTimer many(gpu);
  for (int i = 0; i < 50; ++i) work.matmul(work);
  many.stop();
  CHECK(once.seconds() > 0);
  CHECK(many.seconds() > 5 * once.seconds());
}
