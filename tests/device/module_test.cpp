#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/losses/gridded_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// One tensor of each sort that a module may hold.
class EverySortImpl : public Module<EverySortImpl> {
 public:
  EverySortImpl() { reset(); }
  void reset() override {
    parameter = register_parameter("parameter", torch::ones({2}, torch::kFloat32));
    complex = register_buffer("complex", torch::ones({2}, torch::kComplexFloat) * c10::complex<float>(1, 2));
    index = register_buffer("index", torch::arange(3));
    mask = register_buffer("mask", torch::ones({2}, torch::kBool));
    kernel = register_metadata("kernel", torch::full({2}, 0.1, torch::kFloat64));
  }
  Tensor parameter, complex, index, mask, kernel;
};
TORCH_MODULE(EverySort);

/// A module that knows nothing of ours and holds one.
struct Parent : torch::nn::Module {
  Parent() { child = register_module("child", EverySort()); }
  EverySort child{nullptr};
};

void check_dtypes(const EverySortImpl& module, torch::Dtype real) {
  CHECK(module.parameter.scalar_type() == real);
  CHECK(module.complex.scalar_type() == c10::toComplexType(real));
  CHECK(module.index.scalar_type() == torch::kInt64);
  CHECK(module.mask.scalar_type() == torch::kBool);
  CHECK(module.kernel.scalar_type() == torch::kFloat64);
}

GriddedDataset small_dataset() {
  return GriddedDataset(GridCoords(0.05, 8), 2, torch::tensor({3, 17, 70}, torch::kLong), normal({3}, torch::kComplexDouble, 1),
                        uniform({3}, torch::kFloat64, 2) + 1.0);
}

}  // namespace

TEST_CASE("a cast reaches every tensor of a module and spoils none", "[device][quick]") {
  EverySort module;
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    module->to(dtype);
    check_dtypes(*module, dtype);
    CHECK(at::imag(module->complex)[0].item<double>() == 2.0);
    CHECK(module->kernel[0].item<double>() == 0.1);
    CHECK(module->parameter.requires_grad());
  }
}

TEST_CASE("a parent that knows nothing of our modules casts and moves them rightly", "[device][quick]") {
  Parent parent;
  static_cast<torch::nn::Module&>(parent).to(torch::kFloat64);
  check_dtypes(*parent.child, torch::kFloat64);
  parent.to(torch::Device(torch::kMeta));
  for (const auto& buffer : parent.buffers()) CHECK(buffer.is_meta());
  for (const auto& parameter : parent.parameters()) CHECK(parameter.is_meta());
  check_dtypes(*parent.child, torch::kFloat64);
}

TEST_CASE("a cast carries the gradient along", "[device][quick]") {
  EverySort module;
  module->parameter.sum().backward();
  module->to(torch::kFloat64);
  CHECK(module->parameter.grad().scalar_type() == torch::kFloat64);
}

TEST_CASE("modules refuse dtypes they cannot compute in", "[device][quick]") {
  EverySort module;
  CHECK_THROWS_AS(module->to(torch::kHalf), ValueError);
  CHECK_THROWS_AS(module->to(torch::kInt), ValueError);
  check_dtypes(*module, torch::kFloat32);
}

TEST_CASE("every module of the library moves whole", "[device][quick]") {
  auto dataset = small_dataset();
  const auto check = [](torch::nn::Module& module) {
    INFO(module.name());
    module.to(torch::kFloat32);
    for (const auto& item : module.named_buffers()) {
      INFO(item.key());
      if (item.value().is_complex()) CHECK(item.value().scalar_type() == torch::kComplexFloat);
      else if (item.value().is_floating_point()) CHECK(item.value().scalar_type() == torch::kFloat32);
      else CHECK(item.value().scalar_type() == torch::kInt64);
    }
    module.to(torch::Device(torch::kMeta));
    for (const auto& tensor : module.buffers()) CHECK(tensor.is_meta());
    for (const auto& tensor : module.parameters()) CHECK(tensor.is_meta());
  };
  check(*GriddedNet(GriddedNetOptions(GridCoords(0.05, 8)).dtype(torch::kFloat64)));
  check(*GriddedLikelihood(dataset));
  check(*dataset);
  CHECK(dataset->visibilities().is_meta());  // the members follow their buffers
}
