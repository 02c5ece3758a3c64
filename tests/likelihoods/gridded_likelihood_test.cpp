#include "catch.h"

#include <memory>

#include <ATen/ops/stack.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/losses/visibility_losses.h>

#include "compare.h"
#include "golden.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Cells where `fraction` of the packed cube is sampled, rows and columns of zero and Nyquist frequency included.
GriddedDataset random_dataset(const GridCoords& coords, std::int64_t nchan, double fraction, std::uint64_t seed) {
  const auto n = nchan * coords.npix() * coords.npix();
  const auto cells = (uniform({n}, torch::kFloat64, seed) < fraction).nonzero().squeeze(1);
  return GriddedDataset(coords, nchan, cells, normal({cells.size(0)}, torch::kComplexDouble, seed + 1),
                        uniform({cells.size(0)}, torch::kFloat64, seed + 2) + 0.5);
}

}  // namespace

TEMPLATE_TEST_CASE("the gridded likelihood is chi squared of the packed model at the cells", "[losses][quick]", float, double) {
  const auto npix = GENERATE(2, 4, 30, 64);
  const auto fraction = GENERATE(0.0, 0.3, 1.0);
  const GridCoords coords(0.05, npix);
  const auto dataset = random_dataset(coords, 2, fraction, 1);
  auto likelihood = GriddedLikelihood(dataset);
  const auto sky = random_image(coords, 2, torch::kFloat64, 5);
  const auto reference = [&](const Tensor& x) { return losses::chi_squared_gridded(FourierCube(coords)->forward(x), dataset); };
  const auto expected = reference(sky), expected_gradient = gradient_of(reference, sky);

  likelihood->to(dtype_of<TestType>());
  const auto typed = sky.to(dtype_of<TestType>());
  const double bound = tolerance<TestType>(1e-12, 2e-6);
  CHECK(relative_error(likelihood->chi_squared(typed), expected) < bound);
  CHECK(relative_error(gradient_of([&](const Tensor& x) { return likelihood->chi_squared(x); }, typed), expected_gradient) <
        bound);

  auto gradient = torch::full_like(typed, 7.0);
  const auto value = likelihood->value_and_gradient(typed, gradient, Accumulate::overwrite);
  CHECK(value.scalar_type() == torch::kFloat64);
  CHECK(relative_error(value, expected) < bound);
  CHECK(relative_error(gradient, expected_gradient) < bound);
  likelihood->value_and_gradient(typed, gradient, Accumulate::add);
  CHECK(relative_error(gradient, 2 * expected_gradient) < bound);
}

TEMPLATE_TEST_CASE("value and gradient at cells are the same bits for any number of threads, alone and among others",
                   "[losses][quick]", float, double) {
  const GridCoords coords(0.05, 30);
  auto likelihood = GriddedLikelihood(random_dataset(coords, 2, 0.2, 1));
  const auto sky = at::stack({random_image(coords, 2, torch::kFloat64, 5), random_image(coords, 2, torch::kFloat64, 6)})
                       .to(dtype_of<TestType>());
  auto gradient = torch::empty_like(sky), single = torch::empty_like(sky), own = torch::empty_like(sky[1]);
  const auto value = likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
  const Threads one(1);
  CHECK(same(likelihood->value_and_gradient(sky, single, Accumulate::overwrite), value));
  CHECK(same(single, gradient));
  CHECK(same(likelihood->value_and_gradient(sky[1], own, Accumulate::overwrite), value[1]));
  CHECK(same(own, gradient[1]));

  // A gradient that is a view with gaps is written all the same.
  auto wide = torch::full({2, 2, 30, 40}, 7.0, sky.options());
  auto view = wide.narrow(-1, 5, 30);
  likelihood->value_and_gradient(sky, view, Accumulate::overwrite);
  CHECK(same(view.contiguous(), gradient));
  CHECK(same(wide.narrow(-1, 0, 5).contiguous(), torch::full({2, 2, 30, 5}, 7.0, sky.options())));
}

TEST_CASE("value and gradient at cells follow data that change", "[losses][quick]") {
  const GridCoords coords(0.05, 30);
  auto likelihood = GriddedLikelihood(random_dataset(coords, 1, 0.2, 1));
  const auto sky = random_image(coords, 1, torch::kFloat64, 5);
  auto gradient = torch::empty_like(sky);
  const auto now = [&] { return likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite).item<double>(); };
  const auto expected = [&] { return likelihood->chi_squared(sky).item<double>(); };
  const double first = now();
  {
    const torch::NoGradGuard no_grad;
    likelihood->named_buffers()["data"].mul_(2);  // in place, as a loaded state is
  }
  CHECK(now() != first);
  CHECK(now() == Approx(expected()).epsilon(1e-12));
  likelihood->to(torch::kFloat32);  // data that are rounded
  CHECK(now() == Approx(expected()).epsilon(1e-12));
  const double rounded = now();
  likelihood->to(torch::kFloat64);
  now();
  likelihood->named_buffers()["data"].set_data(likelihood->named_buffers()["data"].variable_data() * 1.5);
  likelihood->to(torch::kFloat32);  // twice without a look in between: memory may be taken again
  likelihood->to(torch::kFloat64);
  CHECK(now() != rounded);
  CHECK(now() == Approx(expected()).epsilon(1e-12));
  const auto copy = std::dynamic_pointer_cast<GriddedLikelihoodImpl>(likelihood->clone());
  const double before = now();
  {
    const torch::NoGradGuard no_grad;
    likelihood->named_buffers()["weights"].mul_(3);
  }
  CHECK(now() == Approx(3 * before).epsilon(1e-6));
  CHECK(copy->value_and_gradient(sky, gradient, Accumulate::overwrite).item<double>() == before);
}

TEST_CASE("the gridded likelihood of MPoL's data equals MPoL's", "[losses][quick]") {
  const Golden dataset_file("dataset"), gridding("gridding"), golden("losses_vis");
  const GridCoords coords(dataset_file("in_cell_size").item<double>(), dataset_file("in_npix").item<std::int64_t>());
  const auto cells = gridding("out_mask_packed").flatten().nonzero().squeeze(1);
  const auto dataset = GriddedDataset(coords, 2, cells, gridding("out_vis_indexed"), gridding("out_weight_indexed"));
  auto likelihood = GriddedLikelihood(dataset);
  const auto sky = dataset_file("in_image_sky");
  const auto model = FourierCube(coords)->forward(sky);
  CHECK(relative_error(likelihood->chi_squared(sky) / (2 * likelihood->normalizer()), golden("out_r_chi_squared_gridded")) <
        1e-12);
  CHECK(relative_error(losses::nll_gridded(model, dataset), golden("out_r_chi_squared_gridded")) < 1e-12);
  CHECK(relative_error(losses::log_likelihood_gridded(model, dataset), golden("out_log_likelihood_gridded")) < 1e-12);
  CHECK(relative_error(gradient_of([&](const Tensor& v) { return losses::nll_gridded(v, dataset); }, model),
                       golden("out_r_chi_squared_gridded_gradient_packed")) < 1e-12);
}

TEST_CASE("the gridded likelihood treats leading dimensions as problems", "[losses][quick]") {
  const GridCoords coords(0.05, 16);
  auto likelihood = GriddedLikelihood(random_dataset(coords, 2, 0.4, 9));
  const auto skies = uniform({3, 2, 16, 16}, torch::kFloat64, 10);
  auto gradients = torch::empty_like(skies);
  const auto values = likelihood->value_and_gradient(skies, gradients, Accumulate::overwrite);
  CHECK(values.sizes() == at::IntArrayRef({3}));
  for (std::int64_t i = 0; i < 3; ++i) {
    auto gradient = torch::empty_like(skies[i]);
    const auto value = likelihood->value_and_gradient(skies[i], gradient, Accumulate::overwrite);
    CHECK(relative_error(values[i], value) < 1e-13);
    CHECK(relative_error(gradients[i], gradient) < 1e-13);
  }
}

TEST_CASE("second derivatives of the gridded likelihood are those of a quadratic form", "[losses][quick]") {
  const GridCoords coords(0.05, 12);
  auto likelihood = GriddedLikelihood(random_dataset(coords, 1, 0.5, 11));
  const auto direction = normal({1, 12, 12}, torch::kFloat64, 12);
  const auto x = random_image(coords, 1, torch::kFloat64, 13).set_requires_grad(true);
  const auto gradient = torch::autograd::grad({likelihood->chi_squared(x)}, {x}, {}, true, true)[0];
  const auto product = torch::autograd::grad({(gradient * direction).sum()}, {x})[0];
  auto ahead = torch::empty_like(direction), behind = torch::empty_like(direction);
  likelihood->value_and_gradient(direction, ahead, Accumulate::overwrite);
  likelihood->value_and_gradient(-direction, behind, Accumulate::overwrite);
  CHECK(relative_error(product, (ahead - behind) / 2) < 1e-12);
}

TEST_CASE("images that do not match the data are refused", "[losses][quick]") {
  auto likelihood = GriddedLikelihood(random_dataset(GridCoords(0.05, 16), 2, 0.4, 14));
  CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({1, 16, 16}, torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({2, 8, 8}, torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({2, 16, 16}, torch::kInt64)), ShapeError);
  CHECK_THROWS_AS(likelihood->chi_squared(torch::zeros({2, 16, 16}, torch::TensorOptions(torch::kFloat64).device(torch::kMeta))),
                  DeviceError);
}
