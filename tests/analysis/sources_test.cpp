#include "catch.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <torch/optim/adam.h>

#include <mpol_cpp/analysis/sources/disc_sources.h>
#include <mpol_cpp/analysis/sources/source_likelihood.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/losses/visibility_losses.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "parameter_slopes.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const DiscGeometry source_geometry{
    .inclination = 50 * units::degree, .position_angle = 115 * units::degree, .offset_east = 0.3, .offset_north = -0.2};
const std::vector<const char*> source_kinds = {"point", "gaussian", "ring", "broad ring", "disc"};

/// A source of 0.7 Jy and what it is a module of.
std::shared_ptr<VisibilityModel> source_of(const std::string& kind) {
  if (kind == "point") return PointSource(0.7, 0.3, -0.2).ptr();
  if (kind == "gaussian") return GaussianSource(0.7, 0.8, source_geometry).ptr();
  if (kind == "ring") return RingSource(0.7, 0.8, source_geometry).ptr();
  if (kind == "broad ring") return RingSource(0.7, 0.8, 0.3, source_geometry).ptr();
  return DiscSource(0.7, 0.8, source_geometry).ptr();
}

DiscModel closed_form(const std::string& kind) {
  DiscModel model{.shape = DiscShape::disc, .flux = 0.7, .size = 0.8, .width = 0, .geometry = source_geometry};
  if (kind == "point") model.shape = DiscShape::point;
  if (kind == "gaussian") model.shape = DiscShape::gaussian;
  if (kind == "ring") model.shape = DiscShape::ring;
  if (kind == "broad ring") {
    model.shape = DiscShape::broad_ring;
    model.width = 0.3;
  }
  return model;
}

Tensor source_baselines(std::uint64_t seed, std::int64_t count = 60) {
  return (uniform({count}, torch::kFloat64, seed) - 0.5) * 1.2e6;
}

const GridCoords source_coords(0.1, 32);

/// An observation of what a function of u and v gives, without noise.
Visibilities observed(const std::function<Tensor(const Tensor&, const Tensor&)>& sky, std::int64_t count = 400) {
  const auto u = source_baselines(11, count), v = source_baselines(12, count);
  return {Baselines::in_lambda(u, v), sky(u, v), torch::full({count}, 1e4, torch::kFloat64)};
}

}  // namespace

TEST_CASE("the shape of many baselines is that of each, also where series take over", "[analysis][quick]") {
  const auto kind = GENERATE(from_range(source_kinds));
  const auto model = closed_form(kind);
  auto q = at::cat({at::logspace(-12, 7, 400, 10, torch::kFloat64), torch::zeros({1}, torch::kFloat64)});
  auto flat = model;
  flat.flux = 1;
  flat.geometry = {};
  const auto values = at::real(disc_visibilities(flat, q, at::zeros_like(q)));
  const auto slopes = at::real(disc_visibility_slopes(flat, q, at::zeros_like(q)));
  for (std::int64_t i = 0; i < q.numel(); ++i) {
    const auto expected = shape_value(model.shape, q[i].item<double>(), model.size, model.width);
    INFO(kind << " at " << q[i].item<double>());
    CHECK(values[i].item<double>() == Approx(expected.value).margin(1e-14));
    CHECK(slopes[1][i].item<double>() == Approx(expected.by_size).epsilon(1e-9).margin(1e-12));
    CHECK(slopes[2][i].item<double>() == Approx(expected.by_width).epsilon(1e-9).margin(1e-12));
  }
}

TEMPLATE_TEST_CASE("sources have the visibilities of their closed forms, loose and at cells", "[analysis][quick]", float,
                   double) {
  const auto kind = GENERATE(from_range(source_kinds));
  INFO(kind);
  const auto source = source_of(kind);
  source->as_module().to(dtype_of<TestType>());
  const auto u = source_baselines(1), v = source_baselines(2);
  const auto loose = source->loose(Baselines::in_lambda(u, v));
  CHECK(loose.scalar_type() == complex_dtype_of<TestType>());
  CHECK(loose.sizes() == at::IntArrayRef({1, 60}));
  CHECK(relative_error(loose[0], disc_visibilities(closed_form(kind), u, v)) < tolerance<TestType>(1e-15, 3e-6));
  const auto packed = source->packed(source_coords);
  CHECK(packed.sizes() == at::IntArrayRef({1, 32, 32}));
  CHECK(relative_error(packed[0], disc_visibilities(closed_form(kind), source_coords.packed_u(), source_coords.packed_v())) <
        tolerance<TestType>(1e-15, 3e-6));
  const auto of_channels =
      Baselines::in_metres(u.slice(0, 0, 20), v.slice(0, 0, 20), torch::tensor({230e9, 240e9}, torch::kFloat64));
  CHECK(source->loose(of_channels).sizes() == at::IntArrayRef({2, 20}));
}

TEST_CASE("a Gaussian source at cells is the transform of its image", "[analysis][quick]") {
  const GridCoords coords(0.05, 128);
  const DiscGeometry geometry{.inclination = 0.6, .position_angle = 0.4, .offset_east = 0.2, .offset_north = 0.1};
  const auto x = coords.sky_x() - geometry.offset_east, y = coords.sky_y() - geometry.offset_north;
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle), sigma = 0.5 / units::fwhm_per_sigma;
  const auto r = at::hypot((x * c - y * s) / std::cos(geometry.inclination), x * s + y * c);
  const auto image = at::exp(-0.5 * (r / sigma).square()) / (2 * units::pi * sigma * sigma * std::cos(geometry.inclination));
  const auto cube = FourierCube(coords)->forward(image.unsqueeze(0));
  CHECK(relative_error(GaussianSource(1.0, 0.5, geometry)->packed(coords), cube) < 1e-9);
}

TEST_CASE("gradients of all parameters of sources are those of finite differences", "[analysis][gradient][quick]") {
  const auto kind = GENERATE(from_range(source_kinds));
  const auto source = source_of(kind);
  const auto u = source_baselines(3), v = source_baselines(4);
  const auto factor = normal({60}, torch::kComplexDouble, 5);
  const auto value = [&] { return at::real(source->visibilities(u, v) * factor).sum(); };
  value().backward();
  CHECK(source->as_module().parameters().size() == (std::string(kind) == "point"        ? 2
                                                    : std::string(kind) == "broad ring" ? 6
                                                                                        : 5));
  INFO(kind);
  check_parameter_slopes(source->as_module().named_parameters(), value, 1e-6, 1e-7);
}

TEST_CASE("a negative size is its magnitude, with the slope of that", "[analysis][gradient][quick]") {
  auto source = DiscSource(0.7, 0.8, source_geometry), mirrored = DiscSource(0.7, 0.8, source_geometry);
  {
    const torch::NoGradGuard no_gradient;
    mirrored->named_parameters()["size"].neg_();
  }
  const auto u = source_baselines(6), v = source_baselines(7);
  const auto plain = source->visibilities(u, v), same_one = mirrored->visibilities(u, v);
  CHECK(same(plain, same_one));
  at::real(plain).sum().backward();
  at::real(same_one).sum().backward();
  CHECK(same(mirrored->named_parameters()["size"].grad(), -source->named_parameters()["size"].grad()));
  CHECK(same(mirrored->named_parameters()["inclination"].grad(), source->named_parameters()["inclination"].grad()));
  CHECK(mirrored->model().size == 0.8);
}

TEST_CASE("blocks of samples do not show in values and gradients", "[analysis][quick]") {
  const std::int64_t count = (1 << 18) + 100;
  auto whole = GaussianSource(0.7, 0.8, source_geometry), tail = GaussianSource(0.7, 0.8, source_geometry);
  const auto u = source_baselines(8, count), v = source_baselines(9, count);
  const auto last = [count](const Tensor& values) { return values.narrow(0, count - 200, 200); };
  const auto all = whole->visibilities(u, v), end = tail->visibilities(last(u), last(v));
  CHECK(relative_error(last(all), end) < 1e-15);
  at::real(last(all)).sum().backward();
  at::real(end).sum().backward();
  for (const auto& parameter : whole->named_parameters())
    CHECK(relative_error(parameter.value().grad(), tail->named_parameters()[parameter.key()].grad()) < 1e-12);
}

TEST_CASE("an optimizer of LibTorch finds the parameters of sources from visibilities", "[analysis][quick]") {
  const auto truth = std::vector<std::shared_ptr<VisibilityModel>>{PointSource(0.2, -0.4, 0.3).ptr(),
                                                                   DiscSource(0.7, 0.8, source_geometry).ptr()};
  const auto u = source_baselines(13, 300), v = source_baselines(14, 300);
  const auto data = sum_of_visibilities(truth, u, v).detach();
  auto point = PointSource(0.1, -0.3, 0.2);
  auto disc =
      DiscSource(0.5, 0.7, DiscGeometry{.inclination = 0.7, .position_angle = 1.8, .offset_east = 0.2, .offset_north = -0.1});
  auto parameters = point->parameters();
  for (const auto& parameter : disc->parameters()) parameters.push_back(parameter);
  auto optimizer = torch::optim::Adam(parameters, torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 1500; ++step) {
    optimizer.zero_grad();
    losses::chi_squared(sum_of_visibilities({point.ptr(), disc.ptr()}, u, v), data, at::full({300}, 1.0, torch::kFloat64))
        .backward();
    optimizer.step();
  }
  CHECK(point->model().flux == Approx(0.2).margin(1e-3));
  CHECK(point->model().geometry.offset_east == Approx(-0.4).margin(1e-3));
  CHECK(disc->model().size == Approx(0.8).margin(1e-3));
  CHECK(disc->model().geometry.inclination == Approx(50 * units::degree).margin(3e-3));
  CHECK(disc->model().geometry.position_angle == Approx(115 * units::degree).margin(3e-3));
}

TEMPLATE_TEST_CASE("a likelihood with sources is the loose one of the data without them", "[analysis][quick]", float, double) {
  const auto source = source_of("broad ring");
  const auto image = random_image(source_coords, 1, dtype_of<TestType>(), 15) * 0.3;
  const auto data = observed([](const Tensor& u, const Tensor&) { return normal({u.numel()}, torch::kComplexDouble, 16); });
  auto joined = SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector{source});
  const Visibilities rest(data.baselines(), data.data() - source->loose(data.baselines()).detach(), data.weights());
  auto loose = LooseLikelihood(source_coords, rest, ChannelMap::cube(1));
  const double accuracy = tolerance<TestType>(1e-7, 1e-4);
  CHECK(relative_error(joined->chi_squared(image), loose->chi_squared(image)) < accuracy);
  CHECK(relative_error(gradient_of([&](const Tensor& sky) { return joined->chi_squared(sky); }, image),
                       gradient_of([&](const Tensor& sky) { return loose->chi_squared(sky); }, image)) < accuracy);
  CHECK(joined->normalizer() == loose->normalizer());
  CHECK(joined->samples() == 400);
  CHECK_FALSE(joined->is_quadratic());
}

TEST_CASE("chi^2 of image and sources has the gradient of finite differences in the sources", "[analysis][gradient][quick]") {
  auto point = PointSource(0.7, 0.3, -0.2);
  const auto data = observed([](const Tensor& u, const Tensor&) { return normal({u.numel()}, torch::kComplexDouble, 17); });
  auto likelihood =
      SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector<std::shared_ptr<VisibilityModel>>{point.ptr()});
  const auto image = random_image(source_coords, 1, torch::kFloat64, 18);
  likelihood->chi_squared(image).sum().backward();
  const auto slope = point->named_parameters()["offset"].grad().clone();
  const torch::NoGradGuard no_gradient;
  auto offset = point->named_parameters()["offset"];
  for (std::int64_t i = 0; i < 2; ++i) {
    constexpr double step = 1e-5;
    offset[i].add_(step);
    const double above = likelihood->chi_squared(image).item<double>();
    offset[i].sub_(2 * step);
    const double below = likelihood->chi_squared(image).item<double>();
    offset[i].add_(step);
    CHECK(slope[i].item<double>() == Approx((above - below) / (2 * step)).epsilon(1e-5));
  }
}

TEST_CASE("channels that share an image channel share the sources", "[analysis][quick]") {
  const auto u = source_baselines(19, 50), v = source_baselines(20, 50);
  const auto baselines = Baselines::in_metres(u / 1e3, v / 1e3, torch::tensor({230e9, 260e9}, torch::kFloat64));
  const auto source = source_of("gaussian");
  const Visibilities data(baselines, source->loose(baselines).detach(), torch::ones({2, 50}, torch::kFloat64));
  auto likelihood = SourceLikelihood(source_coords, data, ChannelMap::continuum(2), std::vector{source});
  CHECK(likelihood->chi_squared(torch::zeros({1, 32, 32}, torch::kFloat64)).item<double>() < 1e-20);
}

TEST_CASE("copies of a likelihood have sources of their own, and states name them", "[analysis][quick]") {
  const auto data = observed([](const Tensor& u, const Tensor& v) { return disc_visibilities(closed_form("point"), u, v); });
  auto point = PointSource(0.7, 0.3, -0.2);
  auto likelihood =
      SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector<std::shared_ptr<VisibilityModel>>{point.ptr()});
  CHECK(likelihood->named_parameters().contains("source_0.flux"));
  const auto copy = std::dynamic_pointer_cast<SourceLikelihoodImpl>(likelihood->clone());
  REQUIRE(copy);
  {
    const torch::NoGradGuard no_gradient;
    point->named_parameters()["flux"].fill_(0.1);
  }
  const auto dark = torch::zeros({1, 32, 32}, torch::kFloat64);
  CHECK(copy->chi_squared(dark).item<double>() < 1e-16);
  CHECK(likelihood->chi_squared(dark).item<double>() == Approx(400 * 1e4 * 0.36));
  CHECK(likelihood->state_labels().at("baselines") == data.baselines().digest());
}

TEST_CASE("the trainer fits an image and a source beside it", "[analysis]") {
  const auto star = closed_form("point");
  auto blob = closed_form("gaussian");
  blob.geometry.offset_east = -0.6;
  const auto data = observed(
      [&](const Tensor& u, const Tensor& v) { return disc_visibilities(star, u, v) + disc_visibilities(blob, u, v); }, 600);
  auto point = PointSource(0.5, 0.28, -0.18);
  auto likelihood =
      SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector<std::shared_ptr<VisibilityModel>>{point.ptr()});
  auto model = GriddedNet(GriddedNetOptions(source_coords).dtype(torch::kFloat64));
  const auto objective = Objective(likelihood, {terms::sparsity(1e-2), terms::tv_image(1e-2)});
  const auto options = TrainOptions().optimizer(OptimizerKind::lbfgs).epochs(150);
  const auto result = Trainer(model, objective, options).fit();
  CHECK(point->model().flux == Approx(0.7).margin(0.03));
  CHECK(point->model().geometry.offset_east == Approx(0.3).margin(0.01));
  CHECK(flux(model->make_sky().detach(), source_coords)[0].item<double>() == Approx(0.7).margin(0.05));
  CHECK(result.loss.total() < 50);
}

TEST_CASE("sources that cannot be are refused", "[analysis][quick]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(PointSource(nan), ValueError);
  CHECK_THROWS_AS(PointSource(1.0, std::numeric_limits<double>::infinity(), 0.0), ValueError);
  CHECK_THROWS_AS(GaussianSource(1.0, -0.1), ValueError);
  CHECK_THROWS_AS(RingSource(1.0, 0.5, -0.1, source_geometry), ValueError);
  const auto data = observed([](const Tensor& u, const Tensor& v) { return disc_visibilities(closed_form("point"), u, v); });
  const std::vector<std::shared_ptr<VisibilityModel>> none;
  CHECK_THROWS_AS(SourceLikelihood(source_coords, data, ChannelMap::cube(1), none), ValueError);
  CHECK_THROWS_AS(sum_of_visibilities(none, source_baselines(1), source_baselines(2)), ValueError);
  const auto source = source_of("disc");
  CHECK_THROWS_AS(SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector{source, source}), ValueError);
  CHECK_THROWS_AS(
      SourceLikelihood(source_coords, data, ChannelMap::cube(1), std::vector<std::shared_ptr<VisibilityModel>>{nullptr}),
      ValueError);
  CHECK_THROWS_AS(source->visibilities(source_baselines(1), source_baselines(2, 5)), ShapeError);
  const auto slope = torch::autograd::grad({at::real(source->visibilities(source_baselines(1), source_baselines(2))).sum()},
                                           {source->as_module().parameters()[0]}, {}, true, false);
  CHECK(slope[0].defined());
}
