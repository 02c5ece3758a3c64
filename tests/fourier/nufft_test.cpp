#include "catch.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/simulation/sky_gaussian.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "forced_isa.h"
#include "fourier/edge_baselines.h"
#include "golden.h"
#include "instruction_sets.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

double norm_error(const Tensor& value, const Tensor& reference) {
  const auto difference = value.to(reference.scalar_type()) - reference;
  return std::sqrt(inner_product(difference, difference) / inner_product(reference, reference));
}

enum class Picture { center, corner, edge, noise, smooth };

Tensor picture(Picture kind, const GridCoords& coords) {
  const auto npix = coords.npix();
  auto image = at::zeros({1, npix, npix}, torch::kFloat64);
  switch (kind) {
    case Picture::center:
      image[0][npix / 2][npix / 2 - 1] = 1.0;
      return image;
    case Picture::corner:
      image[0][0][0] = 1.0;
      return image;
    case Picture::edge:
      image[0][npix - 1][npix / 3] = 1.0;
      return image;
    case Picture::noise:
      return normal({1, npix, npix}, torch::kFloat64, 7);
    case Picture::smooth:
      break;
  }
  const auto x = coords.sky_x() / (coords.cell_size() * static_cast<double>(npix)),
             y = coords.sky_y() / (coords.cell_size() * static_cast<double>(npix));
  return (-((x - 0.1).square() + (y + 0.05).square()) * 60).exp().unsqueeze(0);
}

/// Where the plane is large enough for the crowd.
std::vector<Baselines> edges_and_crowd(const GridCoords& coords, std::int64_t random, std::int64_t crowded) {
  std::vector<Baselines> sets{edge_baselines(coords, random, 1)};
  if (coords.npix() >= 4) sets.push_back(crowd(coords, crowded, 3));
  return sets;
}

}  // namespace

TEMPLATE_TEST_CASE("the nonuniform transform agrees with direct sums to its tolerance", "[fourier][nufft][quick]", float,
                   double) {
  const auto npix = GENERATE(2, 4, 6, 8, 30, 64, 128);
  const GridCoords coords(0.03, npix);
  const auto tolerances = std::is_same_v<TestType, float> ? std::vector<double>{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}
                                                          : std::vector<double>{1e-2, 1e-5, 1e-6, 1e-8, 1e-11, 1e-12, 1e-13};
  for (const auto& baselines : edges_and_crowd(coords, 200, 300)) {
    for (const auto kind : {Picture::center, Picture::corner, Picture::edge, Picture::noise, Picture::smooth}) {
      const auto image = picture(kind, coords).to(dtype_of<TestType>()).to(torch::kFloat64);
      const auto expected = direct_visibilities(image, coords, baselines, 1);
      for (const double tolerance : tolerances) {
        CAPTURE(npix, static_cast<int>(kind), tolerance);
        // A single pixel at the border of the image has several times the error of the norm over all pixels.
        const double bound = (kind == Picture::corner || kind == Picture::edge ? 10 : 3) * tolerance + 1e-14;
        const auto nufft = Nufft(coords, baselines, 1, NufftOptions{tolerance});
        CHECK(norm_error(nufft->forward(image.to(dtype_of<TestType>())), expected) < bound);
      }
    }
  }
}

TEST_CASE("the error of the nonuniform transform falls with the tolerance", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 64);
  const auto baselines = edge_baselines(coords, 300, 5);
  const auto image = picture(Picture::noise, coords);
  const auto expected = direct_visibilities(image, coords, baselines, 1);
  double before = 1;
  for (const double tolerance : {1e-2, 1e-6, 1e-9, 1e-12, 1e-13}) {
    const double error = norm_error(Nufft(coords, baselines, 1, NufftOptions{tolerance})->forward(image), expected);
    CHECK(error < before);
    before = error;
  }
  CHECK(before < 1e-13);
}

TEMPLATE_TEST_CASE("the nonuniform transform and its adjoint are adjoint", "[fourier][nufft][quick]", float, double) {
  const auto npix = GENERATE(2, 4, 6, 8, 30, 64);
  const GridCoords coords(0.03, npix);
  for (const auto& baselines : edges_and_crowd(coords, 500, 500)) {
    const auto tolerances = std::is_same_v<TestType, float> ? std::vector<double>{1e-2, 1e-3, 1e-4, 1e-6}
                                                            : std::vector<double>{1e-2, 1e-3, 1e-6, 1e-9, 1e-11, 1e-12, 1e-13};
    for (const double tolerance : tolerances) {
      CAPTURE(npix, tolerance);
      const auto nufft = Nufft(coords, baselines, 2, NufftOptions{tolerance});
      const auto x = normal({3, 2, npix, npix}, dtype_of<TestType>(), 13);
      const auto y = normal({3, 2, baselines.nvis()}, complex_dtype_of<TestType>(), 14);
      const auto ax = nufft->forward(x), aty = nufft->adjoint(y);
      CHECK(ax.sizes() == at::IntArrayRef({3, 2, baselines.nvis()}));
      CHECK(adjoint_error(ax, y, x, aty) < mpol::testing::tolerance<TestType>(1e-13, 1e-6));
    }
  }
}

TEMPLATE_TEST_CASE("on the largest grids the transform and its adjoint are direct sums", "[fourier][nufft]", float, double) {
  // A dozen pixels and points: their sums need no image.
  constexpr std::int64_t pixels = 12;
  const std::int64_t npix = std::is_same_v<TestType, float> ? 8192 : 4096;
  const GridCoords coords(0.002, npix);
  const auto baselines = edge_baselines(coords, 30, 41);
  const auto places = [&](std::uint64_t seed) {
    auto chosen = (uniform({pixels}, torch::kFloat64, seed) * static_cast<double>(npix)).to(torch::kInt64);
    chosen[0] = 0, chosen[1] = npix - 1;
    return chosen;
  };
  const auto rows = places(42), columns = places(43);
  const auto values = normal({pixels}, torch::kFloat64, 44);
  const auto l = coords.l_centers().flip(0).index_select(0, columns), m = coords.m_centers().index_select(0, rows);
  const auto phase = -2 * units::pi * (at::outer(baselines.u().flatten(), l) + at::outer(baselines.v().flatten(), m));
  const auto waves = at::complex(phase.cos(), phase.sin());  // (nvis, pixels)
  const auto area = coords.cell_area();
  const double tolerance = mpol::testing::tolerance<TestType>(1e-11, 1e-6);
  const auto nufft = Nufft(coords, baselines, 1, NufftOptions{tolerance});

  auto image = at::zeros({1, npix, npix}, dtype_of<TestType>());
  image[0].index_put_({rows, columns}, values.to(dtype_of<TestType>()), /*accumulate=*/true);
  const auto expected = (waves * values).sum(1).unsqueeze(0) * area;
  // Single pixels at the border have several times the error of the norm over all of them.
  CHECK(norm_error(nufft->forward(image), expected) < 20 * tolerance);
  image.reset();

  const auto y = normal({1, baselines.nvis()}, torch::kComplexDouble, 45);
  const auto back = nufft->adjoint(y.to(complex_dtype_of<TestType>()))[0].index({rows, columns});
  CHECK(norm_error(back, at::real(waves.conj() * y[0].unsqueeze(1)).sum(0) * area) < 20 * tolerance);
}

TEMPLATE_TEST_CASE("loose visibilities and their gradient equal MPoL's correct ones", "[fourier][nufft][quick]", float, double) {
  const Golden shared("nufft_shared");
  const auto name = GENERATE("nufft_shared", "nufft_chan");
  const Golden golden(name);
  const double bound = mpol::testing::tolerance<TestType>(1e-11, 5e-6);
  const auto nufft = Nufft(dataset_coords(), Baselines::in_lambda(golden("in_uu"), golden("in_vv")), 2,
                           NufftOptions{mpol::testing::tolerance<TestType>(1e-12, 1e-6)});
  const auto image = packed_to_sky(shared("in_image_packed")).to(dtype_of<TestType>());
  CHECK(relative_error(nufft->forward(image), golden("out_correct_vis")) < bound);
  CHECK(relative_error(golden("bug_mpol_vis"), golden("out_correct_vis")) > 1e-4);  // MPoL's
  CHECK(nufft->forward(image).abs().max().template item<double>() == Approx(golden.number("out_peak_vis")).epsilon(bound));
  const auto c = golden("in_c").to(complex_dtype_of<TestType>());
  const auto gradient = gradient_of([&](const Tensor& x) { return at::real(c.conj() * nufft->forward(x)).sum(); }, image);
  CHECK(relative_error(sky_to_packed(gradient), golden("out_correct_gradient_packed")) < bound);
  CHECK(gradient.abs().max().template item<double>() == Approx(golden.number("out_peak_gradient")).epsilon(bound));
}

TEST_CASE("loose visibilities of a Gaussian are the analytic ones, in one channel and in several", "[fourier][nufft][quick]") {
  const GridCoords coords(0.005, 800);
  const SkyGaussian gaussian{.peak = 1,
                             .offset_east = 0.02,
                             .offset_north = -0.01,
                             .sigma_minor = 0.02,
                             .sigma_major = 0.01,
                             .position_angle = 20 * units::degree};
  const auto image = gaussian.brightness(coords.sky_x(), coords.sky_y());
  const auto several = GENERATE(false, true);
  const std::int64_t nchan = several ? 3 : 1, nvis = 400;
  const auto spread = [&](std::uint64_t seed) { return uniform({nchan, nvis}, torch::kFloat64, seed) * 2 - 1; };
  const auto u = spread(31) * (0.9 * coords.max_uv()), v = spread(32) * (0.9 * coords.max_uv());
  const auto baselines = Baselines::in_lambda(u, v);
  const auto visibilities = Nufft(coords, baselines, nchan, NufftOptions{1e-12})->forward(image.expand({nchan, -1, -1}));
  // What the pixels leave out at the grid's edge is below 1e-8 Jy; the rest is rounding. MPoL's bounds are 2.5e-6 and 2e-8.
  const auto error = (visibilities - gaussian.visibility(u, v)).abs();
  const auto inner = torch::hypot(u, v) < 0.5 * coords.max_uv();
  CHECK(error.max().item<double>() < 2e-8);
  CHECK(error.masked_select(inner).max().item<double>() < 1e-12);
}

TEST_CASE("an empty image has no visibilities, in every channel", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 64);
  const auto nufft = Nufft(coords, edge_baselines(coords, 200, 33), 10);
  const auto visibilities = nufft->forward(torch::zeros({10, 64, 64}));
  CHECK(visibilities.sizes() == at::IntArrayRef({10, nufft->baselines().nvis()}));
  CHECK((visibilities == 0).all().item<bool>());
}

TEST_CASE("on the cells of the grid loose visibilities are those of the FFT", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 30);
  const auto u = coords.packed_u().flatten().contiguous(), v = coords.packed_v().flatten().contiguous();
  const auto nufft = Nufft(coords, Baselines::in_lambda(u, v), 1, NufftOptions{1e-12});
  const auto image = normal({1, 30, 30}, torch::kFloat64, 15);
  CHECK(relative_error(nufft->forward(image), FourierCube(coords)->forward(image).flatten(-2)) < 1e-11);
}

TEST_CASE("loose visibilities of real images are Hermitian", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 30);
  const auto baselines = edge_baselines(coords, 300, 17);
  const auto mirrored = Baselines::in_lambda(-baselines.u(), -baselines.v());
  const auto image = normal({1, 30, 30}, torch::kFloat64, 18);
  const auto there = Nufft(coords, baselines, 1)->forward(image);
  const auto back = Nufft(coords, mirrored, 1)->forward(image).conj().resolve_conj();
  CHECK(relative_error(back, there) < 5e-6);
  const auto y = normal({1, baselines.nvis()}, torch::kComplexDouble, 19);
  CHECK(relative_error(Nufft(coords, mirrored, 1)->adjoint(y.conj()), Nufft(coords, baselines, 1)->adjoint(y)) < 5e-6);
}

TEMPLATE_TEST_CASE("nonuniform transforms are bitwise the same for any number of threads", "[fourier][nufft]", float, double) {
  const GridCoords coords(0.03, 128);
  // Tiles with one task, and one of many tasks.
  const auto spread = edge_baselines(coords, 150000, 21), dense = crowd(coords, 70000, 23);
  const auto baselines = Baselines::in_lambda(at::cat({spread.u(), dense.u()}), at::cat({spread.v(), dense.v()}));
  const auto x = normal({1, 128, 128}, dtype_of<TestType>(), 24);
  const auto y = normal({1, baselines.nvis()}, complex_dtype_of<TestType>(), 25);
  const auto run = [&](int threads) {
    const Threads setting(threads);
    const auto nufft = Nufft(coords, baselines, 1);
    return std::pair(nufft->forward(x), nufft->adjoint(y));
  };
  const auto [forward_1, adjoint_1] = run(1);
  for (const int threads : {2, 3, 7}) {
    const auto [forward, adjoint] = run(threads);
    CHECK(same(forward, forward_1));
    CHECK(same(adjoint, adjoint_1));
  }
}

TEMPLATE_TEST_CASE("every instruction set computes the same transforms to rounding", "[fourier][nufft][quick]", float, double) {
  const GridCoords coords(0.03, 30);
  for (const double tolerance : {1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-11, 1e-12, 1e-13}) {
    if (std::is_same_v<TestType, float> && tolerance < 1e-6) continue;
    for (const auto& baselines : {edge_baselines(coords, 300, 27), crowd(coords, 400, 29)}) {
      const auto x = normal({1, 30, 30}, dtype_of<TestType>(), 30);
      const auto y = normal({1, baselines.nvis()}, complex_dtype_of<TestType>(), 31);
      const auto run = [&](Isa isa) {
        const ForcedIsa forced(to_string(isa));
        const auto nufft = Nufft(coords, baselines, 1, NufftOptions{tolerance});
        return std::pair(nufft->forward(x), nufft->adjoint(y));
      };
      const auto [forward, adjoint] = run(Isa::portable);
      for (const auto isa : instruction_sets()) {
        CAPTURE(to_string(isa), tolerance);
        const auto [other_forward, other_adjoint] = run(isa);
        CHECK(relative_error(other_forward, forward) < mpol::testing::tolerance<TestType>(1e-14, 5e-6));
        CHECK(relative_error(other_adjoint, adjoint) < mpol::testing::tolerance<TestType>(1e-14, 5e-6));
      }
    }
  }
}

TEMPLATE_TEST_CASE("an image is transformed alike alone and among others, bit for bit", "[fourier][nufft][quick]", float,
                   double) {
  const GridCoords coords(0.03, 30);
  const auto spread = edge_baselines(coords, 333, 51), dense = crowd(coords, 101, 53);
  const auto baselines = Baselines::in_lambda(at::cat({spread.u(), dense.u()}), at::cat({spread.v(), dense.v()}));
  const std::int64_t nchan = 3, problems = 3;  // nine images: groups of four, four and one
  const auto x = normal({problems, nchan, 30, 30}, dtype_of<TestType>(), 54);
  const auto y = normal({problems, nchan, baselines.nvis()}, complex_dtype_of<TestType>(), 55);
  for (const auto isa : instruction_sets()) {
    for (const double tolerance : {1e-3, 1e-6}) {
      CAPTURE(to_string(isa), tolerance);
      const ForcedIsa forced(to_string(isa));
      const auto many = Nufft(coords, baselines, nchan, NufftOptions{tolerance}),
                 one = Nufft(coords, baselines, 1, NufftOptions{tolerance});
      const auto visibilities = many->forward(x), images = many->adjoint(y);
      for (std::int64_t problem = 0; problem < problems; ++problem) {
        for (std::int64_t channel = 0; channel < nchan; ++channel) {
          CHECK(same(visibilities[problem][channel], one->forward(x[problem].narrow(0, channel, 1))[0]));
          CHECK(same(images[problem][channel], one->adjoint(y[problem].narrow(0, channel, 1))[0]));
        }
      }
    }
  }
}

TEST_CASE("a nonuniform transform has derivatives of any order", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 16);
  const auto baselines = edge_baselines(coords, 50, 33);
  const auto nufft = Nufft(coords, baselines, 1, NufftOptions{1e-12});
  const auto x = normal({1, 16, 16}, torch::kFloat64, 34);
  const auto direction = normal({1, 16, 16}, torch::kFloat64, 35);
  const auto quartic = [&](const Tensor& image) { return at::view_as_real(nufft->forward(image)).square().sum().square(); };
  CHECK(finite_difference_error(quartic, x, direction) < 1e-7);
  CHECK(second_derivative_error(quartic, x, direction) < 1e-6);
}

TEST_CASE("shifts of the sky and factors of visibilities have derivatives", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 16);
  const auto baselines = edge_baselines(coords, 40, 61);
  const auto nufft = Nufft(coords, baselines, 1, NufftOptions{1e-12});
  const auto uv = baselines.channel(0);
  const Tensor& u = uv.first;
  const Tensor& v = uv.second;
  auto image = at::zeros({1, 16, 16}, torch::kFloat64);
  image[0][6][9] = 2.0;
  const auto at_shift = [&](const Tensor& shift) { return nufft->forward(image) * displacement_phase(u, v, shift); };
  // A whole cell to the East is one column to the left, one to the North one row up.
  const auto moved = image.roll({1, -1}, {1, 2});
  CHECK(norm_error(at_shift(at::tensor({coords.cell_size(), coords.cell_size()}, torch::kFloat64)), nufft->forward(moved)) <
        1e-10);
  const auto data = normal({1, baselines.nvis()}, torch::kComplexDouble, 62);
  const auto of_shift = [&](const Tensor& shift) { return at::view_as_real(at_shift(shift) - data).square().sum(); };
  CHECK(finite_difference_error(of_shift, at::tensor({0.01, -0.02}, torch::kFloat64), at::tensor({0.3, 0.7}, torch::kFloat64)) <
        1e-6);
  const auto of_gains = [&](const Tensor& gains) {
    return at::view_as_real(at_shift(at::tensor({0.01, -0.02}, torch::kFloat64)) * gains - data).square().sum();
  };
  const auto gains = uniform({baselines.nvis()}, torch::kFloat64, 63);
  CHECK(finite_difference_error(of_gains, gains, normal({baselines.nvis()}, torch::kFloat64, 64)) < 1e-6);
  CHECK_THROWS_AS(displacement_phase(u, v, at::zeros({3})), ShapeError);
  CHECK_THROWS_AS(displacement_phase(u, v.narrow(0, 0, 2), at::zeros({2})), ShapeError);
}

TEST_CASE("no, one, equal and duplicate visibilities", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 16);
  const auto image = normal({1, 16, 16}, torch::kFloat64, 36);
  const auto at_point = [&](std::int64_t count) {
    return Baselines::in_lambda(at::full({count}, 1.3 * coords.du(), torch::kFloat64),
                                at::full({count}, -2.2 * coords.du(), torch::kFloat64));
  };
  const auto single = Nufft(coords, at_point(1), 1)->forward(image);
  CHECK(relative_error(single, direct_visibilities(image, coords, at_point(1), 1)) < 5e-6);
  for (const std::int64_t count : {2, 23, 24, 257, 20000}) {
    const auto nufft = Nufft(coords, at_point(count), 1);
    CHECK(relative_error(nufft->forward(image), single.expand({1, count})) < 5e-6);
    const auto ones = at::ones({1, count}, torch::kComplexDouble);
    const auto expected = Nufft(coords, at_point(1), 1)->adjoint(at::ones({1, 1}, torch::kComplexDouble)) * count;
    CHECK(relative_error(nufft->adjoint(ones), expected) < 5e-6);
  }
  CHECK_THROWS_AS(at_point(0), DataError);
  const ops::NufftPlan<double> none({16, coords.dl(), 1e-6}, nullptr, nullptr, 0, 0, 0);
  auto empty = at::ones({1, 16, 16}, torch::kFloat64);
  none.type2(image.const_data_ptr<double>(), 1, nullptr);
  none.type1(nullptr, 1, empty.mutable_data_ptr<double>(), Accumulate::overwrite);
  CHECK(same(empty, at::zeros_like(empty)));
}

TEST_CASE("baselines in metres are transformed channel by channel", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 16);
  const auto frequencies = at::tensor(std::vector<double>{2.2e11, 2.3e11, 2.4e11}, torch::kFloat64);
  const double metres = 0.4 / coords.dl() * units::speed_of_light / 2.4e11;
  const auto spread = [&](std::uint64_t seed) { return (uniform({40}, torch::kFloat64, seed) * 2 - 1) * metres; };
  const auto baselines = Baselines::in_metres(spread(37), spread(38), frequencies);
  const auto image = normal({3, 16, 16}, torch::kFloat64, 39);
  CHECK(norm_error(Nufft(coords, baselines, 3)->forward(image), direct_visibilities(image, coords, baselines, 3)) < 3e-6);
}

TEST_CASE("what a nonuniform transform cannot do is refused", "[fourier][nufft][quick]") {
  const GridCoords coords(0.03, 16);
  const auto at_u = [&](double u) {
    return Baselines::in_lambda(at::full({1}, u, torch::kFloat64), at::zeros({1}, torch::kFloat64));
  };
  const double limit = 0.5 / coords.dl();
  CHECK_NOTHROW(Nufft(coords, at_u(-limit), 1));
  CHECK_THROWS_AS(Nufft(coords, at_u(limit * 1.0001), 1), DataError);
  CHECK_THROWS_AS(at_u(std::nan("")), DataError);
  CHECK_THROWS_AS(Nufft(coords, at_u(0), 1, NufftOptions{1e-15}), ValueError);
  CHECK_THROWS_AS(Nufft(coords, at_u(0), 1, NufftOptions{std::nan("")}), ValueError);
  CHECK_THROWS_AS(Nufft(coords, at_u(0), 0), ShapeError);
  const auto nufft = Nufft(coords, at_u(0), 1, NufftOptions{1e-9});
  CHECK_THROWS_AS(nufft->forward(at::zeros({1, 16, 16}, torch::kFloat32)), ValueError);
  CHECK_THROWS_AS(nufft->forward(at::zeros({2, 16, 16}, torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(nufft->forward(at::zeros({1, 16, 16}, torch::kInt64)), ShapeError);
  CHECK_THROWS_AS(nufft->forward(at::zeros({1, 16, 16}, torch::TensorOptions(torch::kFloat64).device(torch::kMeta))),
                  DeviceError);
  CHECK_THROWS_AS(nufft->adjoint(at::zeros({1, 2}, torch::kComplexDouble)), ShapeError);
}
