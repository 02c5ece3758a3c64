#include "catch.h"

#include <cmath>
#include <memory>
#include <sstream>

#include <torch/serialize.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/losses/visibility_losses.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/models/simple_net.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Fixture {
  Golden dataset_file{"dataset"}, gridding{"gridding"}, golden{"net_forward"};
  GridCoords coords{dataset_file("in_cell_size").item<double>(), dataset_file("in_npix").item<std::int64_t>()};

  GriddedDataset dataset() const {
    const auto cells = gridding("out_mask_packed").flatten().nonzero().squeeze(1);
    return GriddedDataset(coords, dataset_file("in_nchan").item<std::int64_t>(), cells, gridding("out_vis_indexed"),
                          gridding("out_weight_indexed"));
  }
  GriddedNet net(torch::Dtype dtype) const {
    return GriddedNet(GriddedNetOptions(coords).base_cube(packed_to_sky(dataset_file("in_base_packed"))).dtype(dtype));
  }
};

}  // namespace

TEMPLATE_TEST_CASE("the network's forward pass equals MPoL's", "[models][quick]", float, double) {
  const Fixture fixture;
  auto net = fixture.net(dtype_of<TestType>());
  const double bound = tolerance<TestType>(1e-12, 1e-6);
  CHECK(relative_error(net->forward(), fixture.golden("out_vis_packed")) < bound);
  CHECK(relative_error(net->sky_cube(), fixture.golden("out_image_sky")) < bound);
  CHECK(relative_error(net->flux(), fixture.golden("out_flux")) < bound);
}

TEMPLATE_TEST_CASE("losses of the network and their gradients equal MPoL's", "[models][quick]", float, double) {
  const Fixture fixture;
  const auto& golden = fixture.golden;
  auto dataset = fixture.dataset();
  dataset->to(dtype_of<TestType>());
  const auto lambda = [&](const char* name) { return golden(name).item<double>(); };
  const auto prior = lambda("in_prior_intensity"), flux = lambda("in_tot_flux");
  const double bound = tolerance<TestType>(1e-12, 1e-6);
  struct Case {
    const char* key;
    std::function<Tensor(const Tensor&)> terms;
    bool has_gradient;
  };
  const auto sparsity = [&](const Tensor& sky) { return lambda("in_lambda_sparsity") * losses::sparsity(sky); };
  const auto tv = [&](const Tensor& sky) { return lambda("in_lambda_tv") * losses::tv_image(sky); };
  const auto tsv = [&](const Tensor& sky) { return lambda("in_lambda_tsv") * losses::tsv(sky); };
  const auto entropy = [&](const Tensor& sky) { return lambda("in_lambda_entropy") * losses::entropy(sky, prior, flux); };
  for (const auto& [key, terms, has_gradient] :
       std::vector<Case>{{"nll", [](const Tensor&) { return torch::zeros({}, torch::kFloat64); }, true},
                         {"sparsity", sparsity, false},
                         {"tv", tv, true},
                         {"tsv", tsv, false},
                         {"entropy", entropy, false},
                         {"all", [&](const Tensor& sky) { return sparsity(sky) + tv(sky) + tsv(sky) + entropy(sky); }, true}}) {
    INFO(key);
    auto net = fixture.net(dtype_of<TestType>());
    const auto visibilities = net->forward();
    const auto loss = losses::nll_gridded(visibilities, dataset) + terms(net->sky_cube());
    CHECK(relative_error(loss, golden(std::string("out_loss_") + key)) < bound);
    if (!has_gradient) continue;
    loss.backward();
    CHECK(relative_error(sky_to_packed(net->base().grad()), golden(std::string("out_gradient_") + key)) <
          tolerance<TestType>(1e-12, 1e-6));
  }
}

TEST_CASE("a blank image has the visibilities of MPoL's documentation", "[models]") {
  const Golden golden("net_forward");
  const auto grid = golden("in_blank_base_cell_npix");
  const GridCoords coords(grid[1].item<double>(), static_cast<std::int64_t>(grid[2].item<double>()));
  const auto options = GriddedNetOptions(coords).start(grid[0].item<double>()).dtype(torch::kFloat64);
  const auto visibilities = GriddedNet(options)->forward()[0];
  const auto values = torch::stack({visibilities[0][0], visibilities[0][1], visibilities[1][1]});
  CHECK(relative_error(values, golden("out_blank_vis")) < 1e-12);
  CHECK(at::real(values[0]).item<double>() == Approx(11.4809897).epsilon(1e-8));
  CHECK(at::real(values[1]).item<double>() == Approx(7.17999538e-3).epsilon(1e-8));
  CHECK(at::imag(values[2]).item<double>() == Approx(3.52663991e-8).epsilon(1e-6));

  const auto own = GriddedNetOptions(dataset_coords()).start(golden.number("in_blank_own_base")).dtype(torch::kFloat64);
  const auto of_dataset = GriddedNet(own)->forward()[0];
  CHECK(relative_error(torch::stack({of_dataset[0][0], of_dataset[0][1], of_dataset[1][1]}), golden("out_blank_own_vis")) <
        1e-12);
}

TEST_CASE("SimpleNet starts where MPoL v0.1 does, GriddedNet where v0.3 does", "[models][quick]") {
  const GridCoords coords(0.05, 8);
  CHECK((SimpleNet(SimpleNetOptions(coords))->base() == 0.05f).all().item<bool>());
  CHECK((GriddedNet(GriddedNetOptions(coords))->base() == -3.0f).all().item<bool>());
  CHECK(SimpleNet(SimpleNetOptions(coords).nchan(4))->base().size(0) == 4);
}

TEST_CASE("base pixels keep the dtype they are given in, unless another one is asked for", "[models][quick]") {
  const GridCoords coords(0.05, 8);
  const auto dtype_of_net = [](const GriddedNetOptions& options) { return GriddedNet(options)->base().scalar_type(); };
  CHECK(dtype_of_net(coords) == torch::kFloat32);
  CHECK(dtype_of_net(GriddedNetOptions(coords).dtype(torch::kFloat64)) == torch::kFloat64);
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    const auto base = uniform({1, 8, 8}, dtype, 1);
    CHECK(dtype_of_net(GriddedNetOptions(coords).base_cube(base)) == dtype);
    CHECK(same(GriddedNet(GriddedNetOptions(coords).base_cube(base))->base().detach(), base));
    CHECK(dtype_of_net(GriddedNetOptions(coords).base_cube(base).dtype(torch::kFloat32)) == torch::kFloat32);
  }
  CHECK_THROWS_AS(dtype_of_net(GriddedNetOptions(coords).base_cube(torch::zeros({1, 8, 8}, torch::kInt64))), ValueError);
  CHECK_THROWS_WITH(dtype_of_net(GriddedNetOptions(coords).dtype(torch::kFloat16)), ContainsSubstring("float32 or float64"));
}

TEST_CASE("starts and mappings that make no image are refused", "[models][quick]") {
  const GridCoords coords(0.05, 8);
  auto base = torch::zeros({1, 8, 8});
  base[0][3][4] = NAN;
  CHECK_THROWS_AS(GriddedNet(GriddedNetOptions(coords).base_cube(base)), ValueError);
  CHECK_THROWS_AS(GriddedNet(GriddedNetOptions(coords).start(INFINITY)), ValueError);
  CHECK_THROWS_AS(GriddedNet(GriddedNetOptions(coords).pixel_mapping(PixelMapping{})), ValueError);
  CHECK_THROWS_WITH(GriddedNet(GriddedNetOptions(coords).pixel_mapping(PixelMapping{})), ContainsSubstring("softplus_mapping()"));
}

TEST_CASE("the state dict holds the base cube alone, under its documented name", "[models][quick]") {
  auto net = GriddedNet(GriddedNetOptions(GridCoords(0.05, 8)));
  CHECK(net->named_parameters().keys() == std::vector<std::string>{"bcube.base_cube"});
  CHECK(net->named_buffers().size() == 0);
}

TEMPLATE_TEST_CASE("pixels of either sign are the base pixels, and those of a mask", "[models][quick]", float, double) {
  const GridCoords coords(0.05, 12);
  const auto base = normal({2, 12, 12}, dtype_of<TestType>(), 3);
  const auto mask = (base > 0.5).to(base.scalar_type());
  auto free = GriddedNet(GriddedNetOptions(coords).base_cube(base).pixel_mapping(either_sign_mapping(mask)), Smoothing::none);
  CHECK(same(free->make_sky(), base * mask));
  CHECK(same(free->signed_pixels(), base * mask));
  free->make_sky().sum().backward();
  CHECK(same(free->base().grad(), mask));
  CHECK(same(either_sign_mapping().inverse(base), base));
  CHECK(natural_sign(Stokes::i) == PixelSign::positive);
  CHECK(natural_sign(Stokes::u) == PixelSign::either);
}

TEST_CASE("a cloned network is independent of the original", "[models][quick]") {
  auto net = GriddedNet(GriddedNetOptions(GridCoords(0.05, 8)));
  const auto copy = std::dynamic_pointer_cast<GriddedNetImpl>(net->clone());
  REQUIRE(copy);
  {
    const torch::NoGradGuard no_grad;
    copy->bcube->base_cube().fill_(1.0);
  }
  CHECK((net->base() == -3.0f).all().item<bool>());
  CHECK((copy->make_sky() > net->make_sky()).all().item<bool>());
}

TEMPLATE_TEST_CASE("without the Hann convolution the image is the intensities themselves", "[models][quick]", float, double) {
  const GridCoords coords(0.05, 12);
  const auto base = normal({2, 12, 12}, dtype_of<TestType>(), 3);
  auto free = GriddedNet(GriddedNetOptions(coords).base_cube(base), Smoothing::none);
  auto smooth = GriddedNet(GriddedNetOptions(coords).base_cube(base));
  CHECK(same(free->make_sky(), softplus_mapping().forward(base)));
  CHECK(same(HannConvCube()->forward(free->make_sky()), smooth->make_sky()));
  CHECK(same(free->smoothed(base), base));
  CHECK(same(smooth->smoothed(base), HannConvCube()->forward(base)));
  CHECK(same(std::dynamic_pointer_cast<GriddedNetImpl>(free->clone())->make_sky(), free->make_sky()));

  std::stringstream state;
  torch::save(free, state);
  CHECK_THROWS_WITH(torch::load(smooth, state), ContainsSubstring("smoothing"));
}

TEST_CASE("a batch of problems gives each problem's visibilities", "[models][quick]") {
  const GridCoords coords(0.05, 12);
  const auto bases = normal({3, 2, 12, 12}, torch::kFloat64, 1);
  const auto options = GriddedNetOptions(coords).dtype(torch::kFloat64);
  const auto together = GriddedNet(GriddedNetOptions(options).base_cube(bases))->forward();
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(relative_error(together[i], GriddedNet(GriddedNetOptions(options).base_cube(bases[i]))->forward()) < 1e-15);
  }
}
