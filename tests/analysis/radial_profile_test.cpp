#include "catch.h"

#include <cmath>
#include <vector>

#include <ATen/ops/full_like.h>

#include <mpol_cpp/simulation/fake_data.h>
#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/fourier_cube.h>

#include "compare.h"
#include "golden.h"
#include "inclined_ring.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const DiscGeometry tilted{
    .inclination = 35 * units::degree, .position_angle = 50 * units::degree, .offset_east = 0.2, .offset_north = -0.13};

DiscGeometry golden_geometry(const Golden& golden) {
  const auto& values = golden("in_incl_Omega_omega_deg_dRA_dDec_arcsec");
  return {.inclination = values[0].item<double>() * units::degree,
          .position_angle = values[1].item<double>() * units::degree,
          .offset_east = values[3].item<double>(),
          .offset_north = values[4].item<double>()};
}

std::vector<double> as_vector(const Tensor& values) {
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

/// Edges of MPoL's name for default bins and for bins of the file.
std::vector<double> golden_edges(const Golden& golden, const std::string& name, const std::string& key) {
  return name == "bins" ? as_vector(golden(key)) : std::vector<double>{};
}

Tensor golden_visibilities(const Golden& golden) { return FourierCube(dataset_coords())->forward(golden("in_image_sky")); }

}  // namespace

TEMPLATE_TEST_CASE("radial brightness profiles equal MPoL's", "[analysis][quick]", float, double) {
  const Golden golden("onedim");
  const std::string name = GENERATE("default", "bins");
  const auto profile = radial_i(golden("in_image_sky").to(dtype_of<TestType>()), dataset_coords(), golden_geometry(golden),
                                RadialImageOptions().edges(golden_edges(golden, name, "in_bins_r")));
  CHECK(relative_error(profile.radius, golden("out_radialI_" + name + "_r")) < 1e-12);
  CHECK(relative_error(profile.mean[0], golden("out_radialI_" + name)) < tolerance<TestType>(1e-12, 1e-7));
  CHECK(torch::equal(profile.pixels == 0, golden("out_radialI_" + name + "_empty").to(torch::kBool)));
}

TEMPLATE_TEST_CASE("rings by area hold all of the flux, however narrow they are", "[analysis][quick]", float, double) {
  const GridCoords coords(0.05, 64);
  // Of radius alone, in the plane of the disc.
  const auto east = coords.sky_x() - tilted.offset_east, north = coords.sky_y() - tilted.offset_north;
  const double c = std::cos(tilted.position_angle), s = std::sin(tilted.position_angle);
  const auto radius = at::hypot((east * c - north * s) / std::cos(tilted.inclination), east * s + north * c);
  const auto brightness = [](const Tensor& r) { return at::exp(-(r / 0.4).square()); };
  const auto sky = brightness(radius).expand({1, 64, 64}).contiguous().to(dtype_of<TestType>());
  const auto options_of = [](double width, int rings, RingPixels pixels) {
    std::vector<double> edges;
    for (int i = 0; i <= rings; ++i) edges.push_back(width * i);
    return RadialImageOptions().edges(edges).pixels(pixels).beam_area(0.02);
  };
  const auto narrow = radial_i(sky, coords, tilted, options_of(0.01, 400, RingPixels::by_area));
  const double flux = sky.sum(torch::kFloat64).template item<double>();
  CHECK((narrow.mean[0] * narrow.pixels).sum().template item<double>() == Approx(flux).epsilon(1e-9));
  CHECK(narrow.pixels.sum().template item<double>() == Approx(64 * 64).epsilon(1e-12));
  const auto inner = narrow.radius < 1;
  CHECK(narrow.pixels.masked_select(inner).min().template item<double>() > 0);
  CHECK(relative_error(narrow.mean[0].masked_select(inner), brightness(narrow.radius.masked_select(inner))) < 0.02);
  CHECK(radial_i(sky, coords, tilted, options_of(0.01, 400, RingPixels::by_center)).pixels.min().template item<std::int64_t>() ==
        0);

  // Wide rings differ little; their errors are of as many independent pixels.
  const auto exact = radial_i(sky, coords, tilted, options_of(0.2, 6, RingPixels::by_area));
  const auto whole = radial_i(sky, coords, tilted, options_of(0.2, 6, RingPixels::by_center));
  CHECK(relative_error(exact.mean, whole.mean) < 0.02);
  CHECK(relative_error(exact.scatter, whole.scatter) < 0.1);
  CHECK(relative_error(exact.error, exact.scatter / (exact.pixels * (0.05 * 0.05 / 0.02)).clamp_min(1).sqrt()) < 1e-12);
  CHECK_THROWS_AS(radial_i(sky, coords, tilted, RadialImageOptions().edges({-0.1, 0.2}).pixels(RingPixels::by_area)), ValueError);
}

TEMPLATE_TEST_CASE("radial visibility profiles equal MPoL's with the right offset", "[analysis][quick]", float, double) {
  const Golden golden("onedim");
  const std::string name = GENERATE("default", "bins");
  const auto visibilities = golden_visibilities(golden).to(complex_dtype_of<TestType>());
  const double near = tolerance<TestType>(1e-12, 1e-6);
  const auto geometry = golden_geometry(golden);
  const auto options = RadialVisibilityOptions().edges(golden_edges(golden, name, "in_bins_q"));
  const auto profile = radial_v(visibilities, dataset_coords(), geometry, options);
  const std::string key = "out_correct_radialV_" + name;
  CHECK(relative_error(profile.q, golden(key + "_q")) < 1e-12);
  CHECK(relative_error(profile.mean[0], golden(key)) < near);
  CHECK(torch::equal(profile.samples[0] == 0, golden(key + "_empty").to(torch::kBool)));

  const auto face_on =
      radial_v(visibilities, dataset_coords(), geometry, RadialVisibilityOptions(options).flux_scale(FluxScale::face_on));
  CHECK(relative_error(at::real(face_on.mean[0]), at::real(golden(key + "_rescaled"))) < near);
  CHECK(relative_error(face_on.mean * std::cos(geometry.inclination), profile.mean) < 1e-14);
}

TEST_CASE("radial visibility profiles do not double the offset as MPoL's do", "[analysis][quick]") {
  const Golden golden("onedim");
  const auto profile = radial_v(golden_visibilities(golden), dataset_coords(), golden_geometry(golden),
                                RadialVisibilityOptions().edges(as_vector(golden("in_bins_q"))));
  CHECK(relative_error(profile.mean[0], golden("out_correct_radialV_bins_by_hand")) < 1e-12);
  CHECK(relative_error(profile.mean[0], golden("bug_radialV_bins")) > 0.1);
}

TEMPLATE_TEST_CASE("the profile of an inclined ring is the ring", "[analysis][quick]", float, double) {
  const GridCoords coords(0.02, 256);
  const auto ring = inclined_ring(coords, tilted, 0.9, 0.15).to(dtype_of<TestType>());
  std::vector<double> edges;
  for (int i = 0; i <= 60; ++i) edges.push_back(0.03 * i);
  const auto profile = radial_i(torch::cat({ring, 2 * ring}), coords, tilted, RadialImageOptions().edges(edges));
  const auto expected = at::exp(-0.5 * ((profile.radius - 0.9) / 0.15).square());
  CHECK(relative_error(profile.mean[0], expected) < 0.01);  // a ring of pixels is 0.03 arcsec wide
  CHECK(relative_error(profile.mean[1], 2 * profile.mean[0]) < 1e-14);
  auto wrong = tilted;
  wrong.offset_east = -tilted.offset_east;
  CHECK(relative_error(radial_i(ring, coords, wrong, RadialImageOptions().edges(edges)).mean[0], expected) > 0.1);
  wrong = tilted;
  wrong.position_angle = -tilted.position_angle;
  CHECK(relative_error(radial_i(ring, coords, wrong, RadialImageOptions().edges(edges)).mean[0], expected) > 0.1);
}

TEST_CASE("the visibilities of an offset, inclined ring are real after centring, and the Hankel transform of the ring",
          "[analysis][quick]") {
  const GridCoords coords(0.02, 256);
  const double radius = 0.9, width = 0.15;
  const auto visibilities = FourierCube(coords)->forward(inclined_ring(coords, tilted, radius, width));
  std::vector<double> edges;
  for (int i = 0; i <= 1500; ++i) edges.push_back(200.0 * i);  // so narrow that a bin's middle is where its cells are
  const auto profile = radial_v(visibilities, coords, tilted, RadialVisibilityOptions().edges(edges));
  const double flux = visibilities[0][0][0].abs().item<double>();
  CHECK(at::imag(profile.mean).abs().max().item<double>() < 1e-9 * flux);
  // V(q) = cos i int 2 pi r I(r) J0(2 pi q r) dr
  const auto filled = profile.samples[0] > 0;
  REQUIRE(filled.sum().item<std::int64_t>() > 50);
  const auto q = profile.q.index({filled}).unsqueeze(1), r = at::linspace(0, 2.2, 1000, torch::kFloat64);
  const auto brightness = r * at::exp(-0.5 * ((r - radius) / width).square());
  const auto kernel = at::special_bessel_j0(2 * units::pi * units::arcsec * q * r);
  const auto hankel = (kernel * brightness).sum(1) * (2 * units::pi * std::cos(tilted.inclination)) * (r[1] - r[0]);
  CHECK((at::real(profile.mean[0]).index({filled}) - hankel).abs().max().item<double>() < 3e-3 * flux);
}

TEST_CASE("error bars tell how far profiles of noise lie from the truth", "[analysis][quick]") {
  const GridCoords coords(0.05, 128);
  const auto noise = normal({200, 128, 128}, torch::kFloat64, 7);
  const auto profile = radial_i(noise, coords, {});
  const auto enough = profile.pixels > 30;
  const auto pulls = (profile.mean / profile.error).transpose(0, 1).index({enough});
  CHECK(pulls.std().item<double>() == Approx(1).epsilon(0.03));
  CHECK(profile.scatter.transpose(0, 1).index({enough}).mean().item<double>() == Approx(1).epsilon(0.01));
  const double beam = 9 * coords.cell_area();
  const auto blurred = radial_i(noise, coords, {}, RadialImageOptions().beam_area(beam));
  CHECK(relative_error(blurred.error.transpose(0, 1).index({enough}), 3 * profile.error.transpose(0, 1).index({enough})) < 1e-12);
}

TEST_CASE("loose visibilities have the profile of the model behind them, within their error bars", "[analysis][quick]") {
  const GridCoords coords(0.05, 64);
  const DiscGeometry geometry{.inclination = 0.5, .position_angle = 1.1, .offset_east = 0.1, .offset_north = -0.2};
  const auto sky = inclined_ring(coords, geometry, 0.6, 0.1);
  const auto u = (uniform({2000}, torch::kFloat64, 1) - 0.5) * coords.max_uv() * 1.9;
  const auto v = (uniform({2000}, torch::kFloat64, 2) - 0.5) * coords.max_uv() * 1.9;
  const auto baselines = Baselines::in_lambda(u, v);
  const auto weights = 1e4 * (0.1 + uniform({2, 2000}, torch::kFloat64, 3));
  const auto clean = fake_data(sky, coords, baselines, torch::full_like(weights, 1e24));
  const auto exact = radial_v(clean, geometry);
  CHECK(exact.q.numel() == 50);
  CHECK(exact.samples.sum().item<std::int64_t>() == 4000);
  CHECK(at::imag(exact.mean).abs().max().item<double>() < 1e-6);
  // weights of the noise on exact data: what noise alone adds to the profile
  const auto weighted = radial_v(Visibilities(baselines, clean.data(), weights), geometry);
  const auto noisy = radial_v(fake_data(sky, coords, baselines, weights, 5), geometry);
  const auto filled = noisy.samples > 0;
  const auto pulls = at::real(noisy.mean - weighted.mean).index({filled}) / at::real(noisy.error).index({filled});
  CHECK(pulls.square().mean().item<double>() == Approx(1).epsilon(0.5));
  CHECK(pulls.abs().max().item<double>() < 5);
}

TEST_CASE("profiles that cannot be are refused", "[analysis][quick]") {
  const GridCoords coords(0.05, 16);
  const auto sky = torch::zeros({1, 16, 16}, torch::kFloat64);
  const auto visibilities = torch::zeros({1, 16, 16}, torch::kComplexDouble);
  const DiscGeometry edge_on{.inclination = 90 * units::degree};
  CHECK_THROWS_AS(radial_i(torch::zeros({16, 16}), coords, {}), ShapeError);
  CHECK_THROWS_AS(radial_i(sky, coords, edge_on), ValueError);
  CHECK_THROWS_AS(radial_i(sky, coords, {}, RadialImageOptions().edges({0.0, 0.0, 1.0})), ValueError);
  CHECK_THROWS_AS(radial_i(sky, coords, {}, RadialImageOptions().beam_area(-1)), ValueError);
  CHECK_THROWS_AS(radial_v(sky, coords, {}), ShapeError);
  CHECK_THROWS_AS(radial_v(visibilities, coords, edge_on), ValueError);
  CHECK_THROWS_AS(radial_v(visibilities, coords, {}, RadialVisibilityOptions().edges({1.0})), ValueError);
}

TEMPLATE_TEST_CASE("the sampled error of a profile is the root mean square difference of the samples' rings", "[analysis][quick]",
                   float, double) {
  const GridCoords coords(0.1, 32);
  const auto dtype = dtype_of<TestType>();
  const auto how = RadialImageOptions().edges({0, 0.4, 0.8, 1.2});
  const auto image = uniform({1, 32, 32}, dtype, 3);
  // Planes that are the image and a constant more: every ring errs by it, and does not scatter.
  const auto shifts = torch::tensor({0.3, -0.1, 0.5}, dtype).view({3, 1, 1});
  const auto of_image = radial_i(image, coords, tilted, how);
  const auto error = sampled_error(of_image, radial_i(image + shifts, coords, tilted, how));
  CHECK(error.sizes() == of_image.mean.sizes());
  const double expected = std::sqrt((0.3 * 0.3 + 0.1 * 0.1 + 0.5 * 0.5) / 3);
  CHECK(relative_error(error, at::full_like(error, expected)) < tolerance<TestType>(1e-12, 1e-6));
  const auto larger = sampled_error(of_image, radial_i(image + shifts, coords, tilted, how), 2, of_image.mean / 4);
  CHECK(relative_error(larger, (4 * error.square() + of_image.mean.square() / 16).sqrt()) < tolerance<TestType>(1e-12, 1e-6));
  // Independent noise of pixels: it averages over a ring as the root of the number of pixels.
  constexpr std::int64_t samples = 400;
  const auto noisy = sampled_error(of_image, radial_i(image + normal({samples, 32, 32}, dtype, 4), coords, tilted, how));
  const Tensor ratio = noisy[0] * of_image.pixels.to(torch::kFloat64).sqrt();
  CHECK((ratio - 1).abs().max().item<double>() < 4 / std::sqrt(2.0 * samples));
  CHECK_THROWS_AS(sampled_error(of_image, of_image), ValueError);
  CHECK_THROWS_AS(sampled_error(of_image, radial_i(image + shifts, coords, tilted, RadialImageOptions().edges({0, 1}))),
                  ShapeError);
}
