#include "catch.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/device/move.h>
#include <mpol_cpp/losses/visibility_losses.h>
#include <mpol_cpp/models/gridded_net.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const torch::Device meta(torch::kMeta);  // stands in for a GPU: a stray CPU tensor does not mix with it either

Tensor ones(torch::Dtype dtype = torch::kFloat32) { return at::ones({3}, dtype); }

/// A state as a user would write one.
struct Inner {
  Tensor mask;
  std::string note;
};
auto device_fields(Inner& inner) { return std::tie(inner.mask); }

struct State {
  Tensor image;
  std::vector<Tensor> moments;
  std::array<Tensor, 2> pair;
  std::map<std::string, Tensor> named;
  std::optional<Tensor> maybe, never;
  std::tuple<Tensor, int, std::pair<Tensor, double>> mixed;
  std::vector<Inner> inner;
  std::vector<double> losses;
  std::shared_ptr<Tensor> shared;
};
auto device_fields(State& s) {
  return std::tuple(field("image", s.image), field("moments", s.moments), field("pair", s.pair), field("named", s.named),
                    field("maybe", s.maybe), field("never", s.never), field("mixed", s.mixed), field("inner", s.inner),
                    field("losses", s.losses), field("shared", s.shared));
}

State full_state() {
  return {.image = ones(),
          .moments = {ones(), ones(torch::kFloat64)},
          .pair = {ones(), Tensor()},
          .named = {{"a", ones()}, {"b", ones()}},
          .maybe = ones(),
          .never = std::nullopt,
          .mixed = {ones(), 3, {ones(), 1.0}},
          .inner = {{ones(torch::kBool), "here"}},
          .losses = {1, 2},
          .shared = std::make_shared<Tensor>(ones())};
}

/// A module that is not ours, with every sort of buffer.
struct PlainImpl : torch::nn::Module {
  PlainImpl() {
    weight = register_parameter("weight", ones());
    phase = register_buffer("phase", at::ones({3}, torch::kComplexFloat) * c10::complex<float>(1, 2));
    index = register_buffer("index", at::arange(3));
  }
  Tensor weight, phase, index;
};

/// A module that registers one of its tensors and forgets the other.
struct Forgetful : torch::nn::Module {
  Forgetful() { weight = register_parameter("weight", ones()); }
  Tensor forward() { return weight * forgotten; }
  Tensor weight, forgotten = ones();
};

GriddedDataset small_dataset(const GridCoords& coords) {
  return GriddedDataset(coords, 1, torch::tensor({3, 17, 50}, torch::kLong), normal({3}, torch::kComplexDouble, 1),
                        uniform({3}, torch::kFloat64, 2) + 1.0);
}

}  // namespace

TEST_CASE("everything in a struct moves, to any depth", "[device][quick]") {
  auto state = full_state();
  CHECK(device_of(state).is_cpu());
  move_to(state, meta);
  CHECK(device_of(state) == meta);
  CHECK(state.pair[0].is_meta());
  CHECK_FALSE(state.pair[1].defined());
  CHECK(state.named.at("b").is_meta());
  CHECK(state.maybe->is_meta());
  CHECK(std::get<2>(state.mixed).first.is_meta());
  CHECK(state.inner[0].mask.is_meta());
  CHECK(state.inner[0].note == "here");
  CHECK(state.shared->is_meta());
  CHECK(state.losses == std::vector<double>{1, 2});
}

TEST_CASE("what is there already stays the same tensor", "[device][quick]") {
  auto tensor = ones();
  const auto* before = tensor.unsafeGetTensorImpl();
  const auto* data = tensor.const_data_ptr();
  move_to(tensor, torch::kCPU);
  move_to(tensor, torch::kCPU, torch::kFloat32);
  CHECK(tensor.unsafeGetTensorImpl() == before);
  CHECK(tensor.const_data_ptr() == data);
  CHECK(to_host(tensor).unsafeGetTensorImpl() == before);
}

TEST_CASE("without a dtype none changes; with one complex stay complex and integers integers", "[device][quick]") {
  std::vector<Tensor> every = {ones(torch::kFloat64),      ones(torch::kFloat32), ones(torch::kComplexDouble),
                               ones(torch::kComplexFloat), ones(torch::kInt64),   ones(torch::kBool)};
  const auto dtypes = [&] {
    std::vector<torch::Dtype> list;
    list.reserve(every.size());
    for (const auto& tensor : every) list.push_back(tensor.scalar_type());
    return list;
  };
  const auto before = dtypes();
  move_to(every, meta);
  CHECK(dtypes() == before);
  move_to(every, meta, torch::kFloat32);
  CHECK(dtypes() == std::vector<torch::Dtype>{torch::kFloat32, torch::kFloat32, torch::kComplexFloat, torch::kComplexFloat,
                                              torch::kInt64, torch::kBool});
  CHECK_THROWS_AS(move_to(every, meta, torch::kHalf), ValueError);
}

TEST_CASE("tensors that were one stay one", "[device][quick]") {
  const auto shared = ones();
  std::vector<Tensor> twice = {shared, shared, ones()};
  move_to(twice, meta);
  CHECK(twice[0].is_same(twice[1]));
  CHECK_FALSE(twice[0].is_same(twice[2]));
  CHECK(shared.is_cpu());  // who holds the old one keeps it
}

TEST_CASE("a module that is not ours keeps its complex and integer buffers in a cast", "[device][quick]") {
  auto plain = std::make_shared<PlainImpl>();
  move_to(plain, torch::kCPU, torch::kFloat64);
  CHECK(plain->weight.scalar_type() == torch::kFloat64);
  CHECK(plain->phase.scalar_type() == torch::kComplexDouble);
  CHECK(at::imag(plain->phase)[0].item<double>() == 2);
  CHECK(plain->index.scalar_type() == torch::kInt64);
  CHECK(plain->index[2].item<int>() == 2);
}

TEST_CASE("mixed devices are an error that names the leaves", "[device][quick]") {
  auto state = full_state();
  state.named["b"] = ones().to(meta);
  CHECK_THROWS_AS(device_of(state), DeviceError);
  CHECK_THROWS_WITH(device_of(state), ContainsSubstring("object.named['b'] on meta") && ContainsSubstring("object.image on cpu"));
  auto model = GriddedNet(GriddedNetOptions(GridCoords(0.05, 8)));
  const auto tensor = ones().to(meta);
  CHECK_THROWS_WITH(device_of(std::tuple(model, tensor)),
                    ContainsSubstring("base_cube on cpu") && ContainsSubstring("object.1 on meta"));
  CHECK_THROWS_AS(device_of(std::vector<Tensor>{}), ValueError);
}

TEST_CASE("a moved model and dataset compute without a stray CPU tensor", "[device][quick]") {
  const auto coords = GridCoords(0.05, 8);
  auto parts = std::tuple(torch::nn::Sequential(torch::nn::Linear(3, 4)), small_dataset(coords));
  move_to(parts, meta);
  CHECK(device_of(parts) == meta);
  CHECK(std::get<0>(parts)->forward(ones().to(meta)).is_meta());
  auto& dataset = std::get<1>(parts);
  CHECK((dataset->visibilities() * dataset->weights()).is_meta());
}

TEST_CASE("a tensor that a module forgot to register is caught", "[device][quick]") {
  Forgetful module;
  CHECK(module.forward().is_cpu());
  move_to(module, meta);
  CHECK(device_of(module) == meta);
  CHECK_THROWS_WITH(module.forward(), ContainsSubstring("device"));
}

TEMPLATE_TEST_CASE("an optimiser moves with its parameters, its state and their gradients", "[device][quick]", torch::optim::Adam,
                   torch::optim::SGD, torch::optim::LBFGS, torch::optim::RMSprop) {
  auto linear = torch::nn::Linear(3, 2);
  auto optimizer = [&] {
    if constexpr (std::is_same_v<TestType, torch::optim::SGD>) {
      return torch::optim::SGD(linear->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    } else {
      return TestType(linear->parameters());
    }
  }();
  const auto closure = [&] {
    optimizer.zero_grad();
    auto loss = linear->forward(ones()).pow(2).sum();
    loss.backward();
    return loss;
  };
  for (int i = 0; i < 3; ++i) optimizer.step(closure);
  CHECK(device_of(optimizer).is_cpu());
  const auto weight = linear->weight;  // another holder
  auto both = std::tie(optimizer, linear);
  move_to(both, meta);
  CHECK(device_of(both) == meta);
  CHECK(weight.is_meta());
  CHECK(weight.grad().is_meta());
  CHECK(optimizer.param_groups()[0].params()[0].is_same(linear->weight));
  CHECK_FALSE(optimizer.state().empty());
}

TEST_CASE("a cast to double and back leaves a training run's trajectory as it was", "[device][quick]") {
  const auto train = [](bool move) {
    torch::nn::Linear linear(3, 2);
    {
      const torch::NoGradGuard no_grad;
      linear->weight.fill_(0.5);
      linear->bias.fill_(0.1);
    }
    torch::optim::Adam optimizer(linear->parameters(), 0.1);
    for (int i = 0; i < 6; ++i) {
      if (move && i == 3) {
        auto both = std::tie(linear, optimizer);
        move_to(both, torch::kCPU, torch::kFloat64);
        CHECK(linear->weight.scalar_type() == torch::kFloat64);
        move_to(both, torch::kCPU, torch::kFloat32);
      }
      optimizer.zero_grad();
      linear->forward(ones()).pow(2).sum().backward();
      optimizer.step();
    }
    return linear->weight.detach().clone();
  };
  CHECK(same(train(true), train(false)));
}

TEST_CASE("to_host and copy_to copy: what they are given stays where it is", "[device][quick]") {
  torch::nn::Linear linear(3, 2);
  const std::map<std::string, torch::nn::Linear> models = {{"a", linear}, {"b", linear}};
  const auto there = copy_to(models, meta);
  CHECK(device_of(there) == meta);
  CHECK(device_of(models).is_cpu());
  CHECK(there.at("a").ptr() == there.at("b").ptr());  // what was one stays one
  CHECK(there.at("a").ptr() != linear.ptr());
  CHECK(there.at("a")->weight.requires_grad());

  const auto host = to_host(linear);  // also where it is there already
  {
    const torch::NoGradGuard no_grad;
    linear->weight.fill_(7);
  }
  CHECK(host->weight.max().item<float>() < 7);
  const auto pointer = to_host(linear.ptr());
  CHECK(pointer != linear.ptr());
  CHECK(same(pointer->weight.detach(), linear->weight.detach()));

  // A leaf that requires gradients becomes another leaf, and keeps its place.
  const auto parameter = ones().set_requires_grad(true);
  const auto moved = copy_to(parameter, meta);
  CHECK(moved.is_meta());
  CHECK(moved.is_leaf());
  CHECK(moved.requires_grad());
  CHECK(parameter.is_cpu());

  const auto optimizer = std::make_shared<torch::optim::SGD>(linear->parameters(), 0.1);
  CHECK_THROWS_WITH(to_host(optimizer), ContainsSubstring("save_optimizer"));
}

TEST_CASE("visit_tensors sees what move_to moves, by path", "[device][quick]") {
  torch::nn::Linear linear(3, 2);
  torch::optim::Adam optimizer(linear->parameters(), 0.1);
  linear->forward(at::ones({3})).sum().backward();
  optimizer.step();
  std::vector<Tensor> list = {ones(), Tensor()};
  std::map<std::string, std::int64_t> seen;
  visit_tensors(std::tie(linear, list, optimizer),
                [&](const Tensor& tensor, const std::string& path) { seen[path] += tensor.numel(); });
  CHECK(seen == std::map<std::string, std::int64_t>{{"object.0.weight", 6},
                                                    {"object.0.bias", 2},
                                                    {"object.1[0]", ones().numel()},
                                                    {"object.2.parameters", 8},
                                                    {"object.2.state", 16}});
  visit_tensors(linear, [](const Tensor& tensor, const std::string&) { tensor.detach().fill_(3); });  // in place
  CHECK(linear->bias[1].item<float>() == 3);
}

TEST_CASE("on_device leaves its arguments where they are, modules too", "[device][quick]") {
  torch::nn::Linear linear(3, 2);
  const auto moved = on_device(meta, [](const torch::nn::Linear& own, const Tensor& x) {
    CHECK(own->weight.is_meta());
    CHECK(x.is_meta());
    return std::tuple(at::ones({2}), 3);
  });
  CHECK(std::get<1>(moved(linear, at::ones({3}))) == 3);
  CHECK(linear->weight.is_cpu());
}

TEST_CASE("on_device takes arguments there and results back", "[device][quick]") {
  std::vector<torch::Device> seen;
  const auto twice = on_device(meta, [&](const Tensor& a, int factor) {
    seen.push_back(a.device());
    return at::zeros({2}, torch::kCPU) + factor + (a.is_meta() ? 0 : 1);
  });
  const auto argument = ones();
  const auto result = twice(argument, 2);
  CHECK(argument.is_cpu());
  CHECK(seen == std::vector<torch::Device>{meta});
  CHECK(result.is_cpu());
  CHECK(result[0].item<float>() == 2);
  const auto nothing = on_device(torch::kCPU, [&](const Tensor&) { seen.clear(); });
  nothing(argument);
  CHECK(seen.empty());
}
