#include "catch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/full.h>
#include <torch/data.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/device_iterator.h>

using namespace mpol;

namespace {

const torch::Device fake_gpu(torch::kMeta);  // stands in for a GPU

/// A batch that counts how many of it are alive.
struct CountedBatch {
  CountedBatch(int which, std::atomic<int>& living) : number(which), values(at::full({4}, which)), count(&living) { ++*count; }
  CountedBatch(const CountedBatch& other) : number(other.number), values(other.values), count(other.count) { ++*count; }
  CountedBatch& operator=(const CountedBatch&) = delete;
  ~CountedBatch() { --*count; }
  int number;
  Tensor values;
  std::atomic<int>* count;
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
  int count = 5, fails_at = -1;
  std::atomic<int> made = 0, alive = 0;
};

/// What happened on two threads, in its order, and a wait until something did.
class Events {
 public:
  void record(const std::string& event) {
    {
      const std::lock_guard lock(mutex_);
      list_.push_back(event);
    }
    changed_.notify_all();
  }
  /// False where it has not happened after a minute.
  bool wait_for(const std::string& event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1),
                             [&] { return std::find(list_.begin(), list_.end(), event) != list_.end(); });
  }
  std::vector<std::string> list() {
    const std::lock_guard lock(mutex_);
    return list_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> list_;
};

/// A loader as slow as can be: it ends reading batch k + 1 only when step k has begun.
struct SlowLoader {
  struct Position {
    SlowLoader* loader;
    int number;
    Tensor operator*() const {
      const auto name = std::to_string(number);
      loader->events.record("reads " + name);
      if (number > 0) loader->in_time &= loader->events.wait_for("step " + std::to_string(number - 1));
      loader->events.record("has read " + name);
      return at::full({2}, number);
    }
    Position& operator++() {
      ++number;
      return *this;
    }
    bool operator!=(const Position& other) const { return number != other.number; }
  };
  Position begin() { return {this, 0}; }
  Position end() { return {this, 4}; }
  Events events;
  bool in_time = true;
};

}  // namespace

TEST_CASE("the next batch is read while a step is taken", "[device][quick]") {
  // Neither could go on without the other: reading batch k + 1 waits for step k to begin, step k for that reading to be done.
  const auto device = GENERATE(torch::Device(torch::kCPU), torch::Device(torch::kMeta));
  SlowLoader loader;
  int number = 0;
  for (auto& batch : DeviceIterator(loader, device)) {
    CHECK(batch.device() == device);
    loader.events.record("step " + std::to_string(number));
    if (number < 3) CHECK(loader.events.wait_for("has read " + std::to_string(number + 1)));
    loader.events.record("end of step " + std::to_string(number++));
  }
  CHECK(number == 4);
  CHECK(loader.in_time);
  const auto list = loader.events.list();
  const auto place = [&](const std::string& event) { return std::find(list.begin(), list.end(), event) - list.begin(); };
  CHECK(place("has read 2") > place("step 1"));
  CHECK(place("has read 2") < place("end of step 1"));
  CHECK(place("reads 3") > place("end of step 1"));  // no further ahead than asked
}

TEST_CASE("a torch::data loader's examples are batches", "[device][quick]") {
  struct Numbers : torch::data::Dataset<Numbers> {
    torch::data::Example<> get(std::size_t index) override {
      return {at::full({2}, static_cast<double>(index)), at::full({1}, static_cast<double>(index), torch::kInt64)};
    }
    c10::optional<std::size_t> size() const override { return 10; }
  };
  const auto device = GENERATE(torch::Device(torch::kCPU), torch::Device(torch::kMeta));
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Numbers().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(4));
  std::vector<std::int64_t> sizes;
  for (const auto& example : DeviceIterator(*loader, device)) {
    CHECK(example.data.device() == device);
    CHECK(example.target.device() == device);
    CHECK(example.data.size(1) == 2);
    sizes.push_back(example.target.size(0));
    if (device.is_cpu()) CHECK(example.target[0].item<std::int64_t>() == 4 * (static_cast<std::int64_t>(sizes.size()) - 1));
  }
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 2});
  auto single = torch::data::make_data_loader(Numbers(), torch::data::DataLoaderOptions().batch_size(5));
  int examples = 0;
  for (const auto& batch : DeviceIterator(*single, device)) examples += static_cast<int>(batch.size());
  CHECK(examples == 10);
}

TEST_CASE("gradients are on or off on the loader's thread as where the loop is", "[device][quick]") {
  const std::vector<Tensor> loader(2, at::full({2}, 1.0).set_requires_grad(true));
  const auto connected = [&] {
    bool any = false;
    for (const auto& batch : DeviceIterator(loader, fake_gpu)) any |= batch.grad_fn() != nullptr;
    return any;
  };
  CHECK(connected());
  const torch::NoGradGuard no_grad;
  CHECK_FALSE(connected());
}

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
    CHECK(loader.made <= number + 4);
    CHECK(loader.alive <= 4);
    while (loader.made < std::min(number + 4, 20)) std::this_thread::yield();  // without the loop asking for it
    ++number;
  }
  CHECK(loader.alive == 0);
}

TEST_CASE("on the CPU the loader's tensors pass through as they are, one at a time if so asked", "[device][quick]") {
  std::vector<Tensor> loader = {at::full({2}, 1.0), at::full({2}, 2.0)};
  std::size_t index = 0;
  for (auto& batch : DeviceIterator(loader, torch::kCPU, 5)) CHECK(batch.is_same(loader[index++]));
  Loader lazy;
  for ([[maybe_unused]] auto& batch : DeviceIterator(lazy, torch::kCPU, 0)) CHECK(lazy.alive == 1);
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
    CHECK(loader.alive <= 3);
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
