#include "catch.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/radial_fit/radial_profile_model.h>
#include <mpol_cpp/analysis/sources/disc_sources.h>
#include <mpol_cpp/analysis/sources/source_likelihood.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/components/point_likelihood.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/fourier/gauss_conv_fourier.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/models/hann_conv_cube.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/shared/ranked_likelihood.h>
#include <mpol_cpp/likelihoods/shared/shared_likelihood.h>
#include <mpol_cpp/likelihoods/shared/slab_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

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

namespace {

struct LibraryModule {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  std::set<std::string> keep_their_dtype = {};  // data, coordinates and kernels that lose by being narrowed
  Tensor (*on_meta)(torch::nn::Module&) = nullptr;
};

const GridCoords grid(0.05, 8);

std::vector<LibraryModule> library_modules() {
  const auto data = random_visibilities(grid, 2, 5);
  const auto channels = ChannelMap::cube(2);
  const Beam beam{.major = 0.2, .minor = 0.1, .position_angle = 20 * units::degree};
  const auto blocks = std::vector{DataBlock(data, channels).fit_shift().fit_amplitude().fit_weight_scale()};
  const NoiseLikelihood student(grid, data, channels, NoiseModel::student(4), NufftOptions{}, 2 * data.weights());
  const auto devices =
      std::make_shared<DeviceGroup>(std::vector<torch::Device>{torch::kCPU, torch::kCPU}, std::vector<double>{1, 1});
  const auto share_of_rank = [&](const Visibilities& share) { return LooseLikelihood(grid, share, channels).ptr(); };
  const auto share_of_device = [&](const Visibilities& share, torch::Device) -> std::shared_ptr<Likelihood> {
    return LooseLikelihood(grid, share, channels).ptr();
  };
  const std::vector<std::shared_ptr<VisibilityModel>> star = {PointSource(0.1).ptr()};
  return {
      {"PointSource", PointSource(0.1).ptr()},
      {"GaussianSource", GaussianSource(0.1, 0.2).ptr()},
      {"RingSource", RingSource(0.1, 0.2).ptr()},
      {"DiscSource", DiscSource(0.1, 0.2).ptr()},
      {"RadialProfileModel",
       RadialProfileModel(FourierBesselSeries(1, 10), DiscGeometry{}, 1e6).ptr(),
       {"coefficients", "at_frequencies"}},
      {"SourceLikelihood", SourceLikelihood(grid, data, channels, star).ptr(), {"data", "weights", "u", "v"}},
      {"SharedLikelihood", SharedLikelihood(devices, grid, data, channels, share_of_device).ptr()},
      {"SlabLikelihood",
       SlabLikelihood(std::make_shared<SlabOperator>(NormalOperator::of(grid, data, channels), single_rank())).ptr()},
      {"RankedLikelihood", RankedLikelihood(single_rank(), grid, data, channels, torch::kCPU, share_of_rank).ptr()},
      {"GriddedDataset",
       small_dataset().ptr(),
       {},
       [](torch::nn::Module& m) { return dynamic_cast<GriddedDatasetImpl&>(m).visibilities(); }},
      {"BaseCube",
       BaseCube(BaseCubeOptions(grid)).ptr(),
       {},
       [](torch::nn::Module& m) { return dynamic_cast<BaseCubeImpl&>(m).base_cube(); }},
      {"GriddedNet",
       GriddedNet(GriddedNetOptions(grid).dtype(torch::kFloat64)).ptr(),
       {},
       [](torch::nn::Module& m) { return dynamic_cast<GriddedNetImpl&>(m).make_sky(); }},
      {"ImageCube", ImageCube(grid).ptr()},
      {"HannConvCube", HannConvCube().ptr()},
      {"FourierCube", FourierCube(grid).ptr()},
      {"GaussConvImage", GaussConvImage(grid, beam).ptr(), {"spectra"}},
      {"GaussConvFourier", GaussConvFourier(grid, beam).ptr(), {"tapers"}},
      {"Nufft", Nufft(grid, data.baselines(), 2).ptr()},
      {"GriddedLikelihood", GriddedLikelihood(small_dataset()).ptr()},
      {"ExactLikelihood", ExactLikelihood(grid, data, channels).ptr(), {"kernel", "dirty", "constant"}},
      {"LooseLikelihood", LooseLikelihood(grid, data, channels).ptr(), {"data", "weights"}},
      {"NoiseLikelihood", student.ptr(), {"data", "weights", "imaginary_weights"}},
      {"BlockLikelihood", BlockLikelihood(grid, blocks).ptr(), {"data_0", "weights_0", "u_0", "v_0"}},
      {"BatchedLikelihood",
       BatchedLikelihood(std::vector<std::shared_ptr<Likelihood>>{ExactLikelihood(grid, data, channels).ptr(),
                                                                  LooseLikelihood(grid, data, channels).ptr()})
           .ptr(),
       {"problem_0.kernel", "problem_0.dirty", "problem_0.constant", "problem_1.data", "problem_1.weights"}},
      {"PointLikelihood",
       PointLikelihood(ExactLikelihood(grid, data, channels).ptr(), data, channels,
                       std::vector<PointComponent>{{.east = 0.05, .north = 0.03, .flux = {}}})
           .ptr(),
       {"images", "products", "inverse", "image.kernel", "image.dirty", "image.constant"}},
      {"ChunkedLikelihood", ChunkedLikelihood(grid, data, channels).ptr()},
      {"MiniBatchLikelihood", MiniBatchLikelihood(grid, data, channels, VisibilitySamplerOptions()).ptr()},
  };
}

/// Every name in TORCH_MODULE(…) of our headers.
std::set<std::string> declared_modules() {
  const std::regex declaration(R"(TORCH_MODULE\((\w+)\))");
  std::set<std::string> names;
  const auto sources = std::filesystem::path(MPOL_TEST_DATA_DIR) / ".." / ".." / "mpol_cpp";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (std::regex_search(line, found, declaration)) names.insert(found[1]);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("every module of the library moves whole", "[device][quick]") {
  std::set<std::string> names;
  for (const auto& [name, module, keep_their_dtype, on_meta] : library_modules()) {
    INFO(name);
    names.insert(name);
    std::map<std::string, torch::Dtype> before;
    for (const auto& item : module->named_buffers()) before[item.key()] = item.value().scalar_type();
    for (const auto& key : keep_their_dtype) CHECK(before.contains(key));
    module->to(torch::kFloat32);
    for (const auto& item : module->named_buffers()) {
      INFO(item.key());
      const auto dtype = item.value().scalar_type();
      if (keep_their_dtype.contains(item.key())) CHECK(dtype == before.at(item.key()));
      else if (item.value().is_complex()) CHECK(dtype == torch::kComplexFloat);
      else if (item.value().is_floating_point()) CHECK(dtype == torch::kFloat32);
      else CHECK(dtype == before.at(item.key()));
    }
    for (const auto& parameter : module->parameters()) CHECK(parameter.scalar_type() == torch::kFloat32);
    module->to(torch::Device(torch::kMeta));
    for (const auto& tensor : module->buffers()) CHECK(tensor.is_meta());
    for (const auto& tensor : module->parameters()) CHECK(tensor.is_meta());
    if (on_meta != nullptr) CHECK(on_meta(*module).is_meta());  // what it computes with follows what it has registered
  }
  CHECK(names == declared_modules());
}
