#include "catch.h"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/device_iterator.h>

using namespace mpol;

namespace {

const torch::Device fake_gpu(torch::kMeta);  // stands in for a GPU

/// A batch that counts how many of it are alive.
struct CountedBatch {
  CountedBatch(int which, int& living) : number(which), values(at::full({4}, which)), count(&living) { ++*count; }
  CountedBatch(const CountedBatch& other) : number(other.number), values(other.values), count(other.count) { ++*count; }
  CountedBatch& operator=(const CountedBatch&) = delete;
  ~CountedBatch() { --*count; }
  int number;
  Tensor values;
  int* count;
};
auto device_fields(CountedBatch& batch) { return std::tie(batch.values); }

/// Makes batches when they are asked for, and fails at one of them.
struct Loader {
  struct Position {
    Loader* loader;
    int number;
    CountedBatch operator*() const {
      ++loader->made;
      if (number == loader->fails_at) throw std::runtime_error("the disk is gone");
      return {number, loader->alive};
    }
    Position& operator++() {
      ++number;
      return *this;
    }
    bool operator!=(const Position& other) const { return number != other.number; }
  };
  Position begin() { return {this, 0}; }
  Position end() { return {this, count}; }
  int count = 5, fails_at = -1, made = 0, alive = 0;
};

}  // namespace

TEST_CASE("every batch of the loader comes once, in order, on the device", "[device][quick]") {
  const auto device = GENERATE(torch::Device(torch::kCPU), torch::Device(torch::kMeta));
  const auto prefetch = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{7});
  Loader loader;
  DeviceIterator batches(loader, device, prefetch);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> numbers;
    for (auto& batch : batches) {
      CHECK(batch.values.device() == device);
      numbers.push_back(batch.number);
    }
    CHECK(numbers == std::vector<int>{0, 1, 2, 3, 4});
  }
  CHECK(loader.made == 10);
  CHECK(loader.alive == 0);
}

TEST_CASE("batches are staged as far ahead as asked and freed behind", "[device][quick]") {
  Loader loader;
  loader.count = 20;
  int number = 0;
  for (auto& batch : DeviceIterator(loader, fake_gpu, 3)) {
    CHECK(batch.number == number);
    CHECK(loader.made == std::min(number + 4, 20));
    CHECK(loader.alive <= 4);
    ++number;
  }
  CHECK(loader.alive == 0);
}

TEST_CASE("on the CPU the loader's tensors pass through as they are, one at a time", "[device][quick]") {
  std::vector<Tensor> loader = {at::full({2}, 1.0), at::full({2}, 2.0)};
  std::size_t index = 0;
  for (auto& batch : DeviceIterator(loader, torch::kCPU, 5)) CHECK(batch.is_same(loader[index++]));
  Loader lazy;
  for ([[maybe_unused]] auto& batch : DeviceIterator(lazy, torch::kCPU, 5)) CHECK(lazy.alive == 1);
}

TEST_CASE("the loader's own batches stay where they are", "[device][quick]") {
  std::vector<std::map<std::string, Tensor>> loader(3, {{"data", at::full({2}, 1.0).set_requires_grad(true)}});
  for (auto& batch : DeviceIterator(loader, fake_gpu)) CHECK(batch.at("data").is_meta());
  for (const auto& batch : loader) CHECK(batch.at("data").is_cpu());
}

TEST_CASE("leaving the loop early frees what was staged", "[device][quick]") {
  Loader loader;
  {
    DeviceIterator batches(loader, fake_gpu, 2);
    for (auto& batch : batches) {
      if (batch.number == 1) break;
    }
    CHECK(loader.alive == 3);
    CHECK((*batches.begin()).number == 0);  // and it begins anew
  }
  CHECK(loader.alive == 0);
  try {
    for (auto& batch : DeviceIterator(loader, fake_gpu, 2)) {
      if (batch.number == 1) throw std::runtime_error("not converged");
    }
    FAIL("no error");
  } catch (const std::runtime_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("not converged"));
  }
  CHECK(loader.alive == 0);
}

TEST_CASE("an exception of the loader comes behind the batches before it", "[device][quick]") {
  Loader loader;
  loader.fails_at = 3;
  std::vector<int> numbers;
  try {
    for (auto& batch : DeviceIterator(loader, fake_gpu, 2)) numbers.push_back(batch.number);
    FAIL("no error");
  } catch (const std::runtime_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("the disk is gone"));
  }
  CHECK(numbers == std::vector<int>{0, 1, 2});
  CHECK(loader.alive == 0);
}

TEST_CASE("an empty loader gives no batch", "[device][quick]") {
  std::vector<Tensor> none;
  for ([[maybe_unused]] auto& batch : DeviceIterator(none, fake_gpu)) FAIL("a batch of nothing");
  int given = 0;
  for (auto& batch : DeviceIterator(std::vector<Tensor>(2, at::full({1}, 1.0)), fake_gpu))
    given += static_cast<int>(batch.numel());
  CHECK(given == 2);
}
