#include "catch.h"

#include <cmath>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/gridding/taper.h>
#include <mpol_cpp/likelihoods/prediction.h>

#include "compare.h"
#include "failing_allocator.h"
#include "observation.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

DirtyImagerOptions natural(Imaging imaging = Imaging::exact) {
  return DirtyImagerOptions().weighting(Weighting::natural).imaging(imaging);
}
Imaging each_imaging() { return GENERATE(Imaging::exact, Imaging::cells); }

/// What nonuniform transforms of tolerance 1e-12 may be off by.
constexpr double of_transform = 1e-11;

/// The image of samples with given imaging weights (nvis), pixel by pixel, (npix, npix).
Tensor direct_image(const GridCoords& coords, const Visibilities& samples, std::int64_t channel, const Tensor& visibilities,
                    const Tensor& imaging_weights) {
  const auto npix = coords.npix();
  const auto [u, v] = samples.baselines().channel(channel);
  const std::int64_t middle = npix / 2;
  const auto half = static_cast<double>(middle);
  const auto m = (torch::arange(npix, torch::kDouble) - half).view({npix, 1, 1}) * coords.dl();
  const auto l = (half - 1 - torch::arange(npix, torch::kDouble)).view({1, npix, 1}) * coords.dl();
  const auto phase = 2 * units::pi * (u * l + v * m);
  const auto terms = at::real(visibilities) * phase.cos() - at::imag(visibilities) * phase.sin();
  return (imaging_weights * terms).sum(-1) / imaging_weights.sum();
}

/// D of each sample of a channel, by its cell and that cell's partner, from sums over the whole plane.
Tensor density_of_samples(const GridCoords& coords, const Visibilities& samples, std::int64_t channel, Weighting weighting,
                          double robust) {
  const auto npix = coords.npix();
  const auto [u, v] = samples.baselines().channel(channel);
  const auto place = [&](const Tensor& x) {
    return (x / coords.du() + 0.5 * static_cast<double>(npix) + 0.5).floor().to(torch::kLong);
  };
  const auto cell = place(v) * npix + place(u), partner = (npix - place(v)) * npix + npix - place(u);
  const auto weights = samples.weights()[channel].to(torch::kDouble);
  auto plane = torch::zeros({(npix + 1) * (npix + 1)}, torch::kDouble);
  plane.index_add_(0, cell, weights).index_add_(0, partner, weights);
  if (weighting == Weighting::natural) return torch::ones_like(weights);
  const auto of_cell = plane.index_select(0, cell);
  if (weighting == Weighting::uniform) return 1 / of_cell;
  const double f_squared =
      std::pow(5 * std::pow(10, -robust), 2) * plane.sum().item<double>() / plane.square().sum().item<double>();
  return 1 / (1 + of_cell * f_squared);
}

/// A point source of 1 Jy at offsets in arcsec, at the samples given.
Visibilities point_source(const Visibilities& sampled, double east, double north) {
  const auto [u, v] = sampled.baselines().channel(0);
  const auto phase = -2 * units::pi * units::arcsec * (u * east + v * north);
  return {sampled.baselines(), at::polar(torch::ones_like(u), phase), sampled.weights()};
}

/// One sample at the centre of every cell of the grid that has one, of visibility 1, with the given weights (cells).
Visibilities filled_plane(const GridCoords& coords, const std::function<Tensor(const Tensor& u, const Tensor& v)>& weight) {
  const auto axis = coords.u_centers().slice(0, 1);
  const auto count = axis.size(0);
  const auto u = axis.unsqueeze(0).expand({count, count}).flatten(), v = axis.unsqueeze(1).expand({count, count}).flatten();
  return {Baselines::in_lambda(u, v), torch::ones({count * count}, torch::kComplexDouble), weight(u, v)};
}

/// Fourier transform of a Gaussian of unit flux with those FWHM (arcsec) and position angle (degrees East of North).
Tensor gaussian_visibility(const Tensor& u, const Tensor& v, double major, double minor, double angle) {
  const double a = angle * units::degree, scale = units::arcsec / units::fwhm_per_sigma;
  const auto along = u * std::sin(a) + v * std::cos(a), across = u * std::cos(a) - v * std::sin(a);
  return (-2 * std::pow(units::pi * scale, 2) * ((along * major).square() + (across * minor).square())).exp();
}

/// The beam within its first null, as explicit passes over the image for each of the 24 wedges.
Tensor nulled(const Tensor& beam) {
  const auto npix = beam.size(0), half = npix / 2;
  const auto pixels = torch::arange(npix, torch::kDouble);
  const auto m = (pixels - half).unsqueeze(1).expand({npix, npix});
  const auto l = (half - 1 - pixels).unsqueeze(0).expand({npix, npix});
  const auto radius = torch::hypot(l, m);
  const auto theta = torch::atan2(m, l) + units::pi;
  auto result = beam.clone();
  for (int k = 0; k < 24; ++k) {
    auto wedge = torch::zeros({npix, npix}, torch::kBool);
    for (const int turn : {-24, 0, 24}) {
      wedge |= (theta >= (k + turn - 0.3) * (units::pi / 12)) & (theta <= (k + turn + 1.3) * (units::pi / 12));
    }
    const auto negative = radius.masked_select(wedge & (beam < 0));
    if (negative.numel() > 0) result.masked_fill_(wedge & (radius >= negative.min()), 0.0);
  }
  return result;
}

}  // namespace

TEST_CASE("a dirty beam peaks at 1 on the phase centre and is symmetric about it", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 64);
  const auto visibilities = random_observation(coords, 2, 300, torch::kDouble, 1);
  const auto imaging = each_imaging();
  const double tolerance = imaging == Imaging::exact ? of_transform : 1e-13;
  for (const auto weighting : {Weighting::natural, Weighting::uniform, Weighting::briggs}) {
    const auto beam = DirtyImager(coords, visibilities, DirtyImagerOptions().weighting(weighting).imaging(imaging)).beam();
    const auto peaks = beam.flatten(1).argmax(1);
    for (const std::int64_t channel : {0, 1}) {
      CHECK(peaks[channel].item<std::int64_t>() == 32 * 64 + 31);
      CHECK_THAT(beam[channel][32][31].item<double>(), WithinAbs(1, tolerance));
      // Row 0 and column npix - 1 have no mirror image.
      const auto inner = beam[channel].slice(0, 1).slice(1, 0, 63);
      CHECK(relative_error(inner.flip({0, 1}), inner) < tolerance);
    }
  }
}

TEST_CASE("an exact dirty image is the sum over samples that it claims to be", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 24);
  const auto dtype = GENERATE(torch::kFloat, torch::kDouble);
  const auto weighting = GENERATE(Weighting::natural, Weighting::uniform, Weighting::briggs);
  const auto samples = random_observation(coords, 2, 700, dtype, 31);
  const bool tapered = GENERATE(false, true);
  const auto taper = tapered ? gaussian_taper(0.1) : [](const Tensor& u, const Tensor&) { return torch::ones_like(u); };
  auto options = DirtyImagerOptions().weighting(weighting).robust(-0.3);
  if (tapered) options.taper(taper);
  const DirtyImager imager(coords, samples, options);
  CHECK(imager.imaging() == Imaging::exact);
  const auto image = imager.image(), beam = imager.beam();
  for (const std::int64_t channel : {0, 1}) {
    const auto [u, v] = samples.baselines().channel(channel);
    const auto weights = samples.weights()[channel].to(torch::kDouble);
    const auto imaging_weights = weights * density_of_samples(coords, samples, channel, weighting, -0.3) * taper(u, v);
    const auto data = samples.data()[channel].to(torch::kComplexDouble);
    CHECK(relative_error(image[channel], direct_image(coords, samples, channel, data, imaging_weights)) < of_transform);
    CHECK(relative_error(beam[channel], direct_image(coords, samples, channel, torch::ones_like(data), imaging_weights)) <
          of_transform);
    const double noise = (imaging_weights.square() / weights).sum().sqrt().item<double>() / imaging_weights.sum().item<double>();
    CHECK_THAT(imager.noise()[channel].item<double>(), WithinRel(noise, 1e-10));
    CHECK_THAT(imager.normalization()[channel].item<double>(), WithinRel(0.5 / imaging_weights.sum().item<double>(), 1e-10));
  }
}

TEST_CASE("a source far off centre keeps its flux in an exact image and loses it by cells", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 64);
  const auto sampled = random_observation(coords, 1, 4000, torch::kDouble, 32);
  const std::int64_t east = 22, north = -27;  // pixels
  const auto source = point_source(sampled, 0.05 * east, 0.05 * north);
  const auto peak = [&](Imaging imaging) {
    return DirtyImager(coords, source, DirtyImagerOptions().imaging(imaging)).image()[0][32 + north][31 - east].item<double>();
  };
  CHECK_THAT(peak(Imaging::exact), WithinAbs(1, of_transform));
  const auto sinc = [](double x) { return std::sin(units::pi * x) / (units::pi * x); };
  CHECK_THAT(peak(Imaging::cells), WithinAbs(sinc(east / 64.0) * sinc(north / 64.0), 0.03));
}

TEST_CASE("exact images made in parts and in blocks are those made at once", "[gridding][dirty][quick]") {
  const auto npix = GENERATE(130, 256);  // parts of 130 overlap
  const GridCoords coords(0.02, npix);
  const auto samples = random_observation(coords, 2, 40'000, torch::kFloat, 33);
  const auto options = natural().channel_map(ChannelMap::continuum(2)).weighting(Weighting::briggs);
  const auto with = [&](std::int64_t bytes) {
    auto own = options;
    return DirtyImager(coords, samples, own.working_bytes(bytes));
  };
  const auto whole = with(std::int64_t{1} << 40).image(), in_parts = with(0).image();
  CHECK(relative_error(in_parts, whole) < of_transform);
  std::int64_t most = 0, asked = 0;
  const auto count = [&](std::int64_t channel, std::int64_t begin, std::int64_t end) {
    most = std::max(most, end - begin);
    asked += end - begin;
    return samples.data()[channel].slice(0, begin, end);
  };
  CHECK(torch::equal(with(0).image_of(count), in_parts));
  CHECK(most < 40'000);
  CHECK(asked >= std::int64_t{4} * 80'000);
}

TEST_CASE("baselines in metres are imaged at each channel's own wavelengths", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto sampled = random_observation(coords, 1, 500, torch::kDouble, 34);
  const auto frequencies = torch::tensor({2.0e11, 2.2e11, 2.5e11}, torch::kDouble);
  const auto [u, v] = sampled.baselines().channel(0);
  const double shortest = units::speed_of_light / 2.5e11;
  const auto data = normal({3, 500}, torch::kComplexDouble, 35), weights = uniform({3, 500}, torch::kDouble, 36) + 0.5;
  const Visibilities in_metres(Baselines::in_metres(u * shortest, v * shortest, frequencies), data, weights);
  const auto scale = (frequencies / 2.5e11).view({3, 1});
  const Visibilities in_lambda(Baselines::in_lambda(u * scale, v * scale), data, weights);
  for (const auto& map : {ChannelMap::cube(3), ChannelMap::continuum(3), ChannelMap{{{2}, {0, 1}}}}) {
    const DirtyImager a(coords, in_metres, DirtyImagerOptions().channel_map(map));
    const DirtyImager b(coords, in_lambda, DirtyImagerOptions().channel_map(map));
    CHECK(relative_error(a.image(), b.image()) < of_transform);
    CHECK(relative_error(a.beam(), b.beam()) < of_transform);
  }
}

TEST_CASE("exact images are bitwise the same for any number of threads", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 64);
  const auto samples = random_observation(coords, 1, 50'000, torch::kFloat, 37);
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = DirtyImager(coords, samples).image();
  at::set_num_threads(3);
  CHECK(torch::equal(DirtyImager(coords, samples).image(), alone));
  at::set_num_threads(threads);
}

TEST_CASE("the dirty image of cells is the sum over cells that it claims to be", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 1, 200, torch::kDouble, 2);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const auto u = coords.packed_u().flatten().index_select(0, dataset->cells());
  const auto v = coords.packed_v().flatten().index_select(0, dataset->cells());
  const auto w = dataset->weights();
  const auto image = DirtyImager(coords, visibilities, natural(Imaging::cells)).image();
  for (const auto& [row, column] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {16, 15}, {7, 29}, {31, 31}}) {
    const double l = coords.dl() * static_cast<double>(15 - column), m = coords.dl() * static_cast<double>(row - 16);
    const auto phase = 2 * units::pi * (u * l + v * m);
    const auto terms = w * (at::real(dataset->visibilities()) * phase.cos() - at::imag(dataset->visibilities()) * phase.sin());
    CHECK_THAT(image[0][row][column].item<double>(), WithinAbs((terms.sum() / w.sum()).item<double>(), 1e-13));
  }
}

TEST_CASE("a source to the East is imaged to the left, one to the North above", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 64);
  const auto sampled = random_observation(coords, 1, 3000, torch::kDouble, 3);
  const auto [u, v] = sampled.baselines().channel(0);
  const double east = 5 * coords.dl(), north = 12 * coords.dl();
  const auto data = at::polar(torch::ones_like(u), -2 * units::pi * (u * east + v * north));
  const auto image = DirtyImager(coords, {sampled.baselines(), data, torch::ones_like(u)}, natural(each_imaging())).image();
  CHECK(image[0].argmax().item<std::int64_t>() == (32 + 12) * 64 + 31 - 5);
}

TEST_CASE("exact images of other visibilities are linear and give the residual image", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto samples = random_observation(coords, 2, 400, torch::kDouble, 38);
  const auto model = normal({2, 400}, torch::kComplexDouble, 39);
  for (const auto unit : {ImageUnit::jy_per_beam, ImageUnit::jy_per_arcsec2}) {
    const DirtyImager imager(coords, samples, DirtyImagerOptions().unit(unit));
    CHECK(torch::equal(imager.image_of(samples.data()), imager.image()));
    const auto residual = imager.image_of(samples.data() - 2 * model);
    CHECK(relative_error(imager.image() - 2 * imager.image_of(model), residual) < 1e-11);
  }
  const DirtyImager imager(coords, samples), of_cells(coords, samples, natural(Imaging::cells));
  CHECK_THROWS_AS(imager.image_of(torch::zeros({2, 3}, torch::kComplexDouble)), ShapeError);
  CHECK_THROWS_AS(imager.image_of(torch::zeros({2, 400}, torch::kDouble)), ShapeError);
  const VisibilityBlocks short_ones = [](std::int64_t, std::int64_t, std::int64_t) {
    return torch::zeros({3}, torch::kComplexDouble);
  };
  CHECK_THROWS_AS(imager.image_of(short_ones), ShapeError);
  CHECK_THROWS_AS(of_cells.image_of(short_ones), ValueError);
}

TEMPLATE_TEST_CASE("data compared with a model give the images that are made one by one", "[gridding][dirty][quick]", float,
                   double) {
  constexpr auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const auto npix = GENERATE(std::int64_t{130}, std::int64_t{1030});  // density weights in a plane, and searched for
  const GridCoords coords(0.02, npix);
  const auto samples = random_observation(coords, 3, 20'000, dtype, 40);
  const ChannelMap map{{{2}, {0, 1}}};
  const auto sky = uniform({2, npix, npix}, torch::kFloat64, 41);
  const auto with = [&](std::int64_t bytes) {
    return DirtyImager(coords, samples, DirtyImagerOptions().channel_map(map).robust(0).working_bytes(bytes));
  };
  const auto predicted = losses::predicted_visibilities(coords, sky, samples, map);
  const double of_prediction = 10 * losses::prediction_tolerance;
  auto seen = torch::zeros({3, 20'000}, torch::kFloat64);
  const auto count = [&](const ComparedSamples& block) {
    const auto n = block.model.size(0);
    seen[block.channel].narrow(0, block.begin, n).add_(1);
    const auto place = [&](const Tensor& all) { return all[block.channel].narrow(0, block.begin, n); };
    CHECK(relative_error(block.model, place(predicted)) < of_prediction);
    CHECK(torch::equal(block.samples.data, place(samples.data()).to(torch::kComplexDouble)));
    CHECK(torch::equal(block.samples.weights, place(samples.weights()).to(torch::kFloat64)));
  };
  const auto imager = with(std::int64_t{1} << 40), small = with(0);  // in one pass, and in three
  const auto together = imager.compare(sky, count);
  CHECK(torch::equal(seen, torch::ones_like(seen)));
  const auto apart = small.compare(sky, count);
  CHECK(torch::equal(seen, 2 * torch::ones_like(seen)));
  const auto alone = with(std::int64_t{1} << 40);
  const auto residual = alone.image_of(samples.data().to(torch::kComplexDouble) - predicted);
  for (const auto& [image, of_rest] : {together, apart}) {
    CHECK(relative_error(image, alone.image()) < of_transform);
    CHECK(relative_error(of_rest, residual) < of_prediction);
  }
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const auto own = imager.fitted_beam()[channel], expected = alone.fitted_beam()[channel];
    REQUIRE(own.has_value() == expected.has_value());
    if (!own) continue;
    CHECK_THAT(own->major, WithinRel(expected->major, 1e-9));
    CHECK_THAT(own->minor, WithinRel(expected->minor, 1e-9));
  }
  const auto averages = DataAverager(coords, samples, unchecked().channel_map(map)).to_dataset();
  const auto of_averages = [&](DirtyImagerOptions options) { return DirtyImager(averages, samples, options.channel_map(map)); };
  CHECK(relative_error(of_averages({}).image(), DirtyImager(coords, samples, DirtyImagerOptions().channel_map(map)).image()) <
        of_transform);
  const auto tapered = DirtyImagerOptions().taper(gaussian_taper(0.1)).channel_map(map);
  CHECK(relative_error(of_averages(tapered).image(), DirtyImager(coords, samples, tapered).image()) < of_transform);
}

TEST_CASE("data compared with a model give bitwise the same for any number of threads", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 64);
  const auto samples = random_observation(coords, 1, 50'000, torch::kFloat, 42);
  const auto sky = uniform({1, 64, 64}, torch::kFloat64, 43);
  const auto nothing = [](const ComparedSamples&) {};
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = DirtyImager(coords, samples).compare(sky, nothing);
  at::set_num_threads(3);
  const auto shared = DirtyImager(coords, samples).compare(sky, nothing);
  at::set_num_threads(threads);
  CHECK(torch::equal(shared.image, alone.image));
  CHECK(torch::equal(shared.residual, alone.residual));
}

TEST_CASE("a model that does not fit the data is not compared with them", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto samples = random_observation(coords, 1, 30, torch::kDouble, 44);
  const auto compare = [&](Imaging imaging, const Tensor& sky) {
    return DirtyImager(coords, samples, natural(imaging)).compare(sky, [](const ComparedSamples&) {});
  };
  const auto sky = torch::zeros({1, 32, 32}, torch::kFloat64);
  CHECK(compare(Imaging::exact, sky).residual.size(0) == 1);
  CHECK_THROWS_AS(compare(Imaging::cells, sky), ValueError);
  CHECK_THROWS_AS(compare(Imaging::exact, sky[0]), ShapeError);
  CHECK_THROWS_AS(compare(Imaging::exact, sky.to(torch::kFloat32)), ShapeError);
  const auto averages = DataAverager(coords, samples, unchecked()).to_dataset();
  const auto two = random_observation(coords, 2, 30, torch::kDouble, 45);
  CHECK_THROWS_AS(DirtyImager(averages, two), ValueError);
}

TEST_CASE("images of other visibilities in cells are linear and give the residual image", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 2, 400, torch::kDouble, 4);
  for (const auto unit : {ImageUnit::jy_per_beam, ImageUnit::jy_per_arcsec2}) {
    const DirtyImager imager(coords, visibilities, DirtyImagerOptions().unit(unit).imaging(Imaging::cells));
    const auto cells = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
    CHECK(torch::equal(imager.image_of(cells->visibilities()), imager.image()));
    const auto model = normal({imager.cells().size(0)}, torch::kComplexDouble, 5);
    const auto residual = imager.image_of(cells->visibilities() - 2 * model);
    CHECK(relative_error(imager.image() - 2 * imager.image_of(model), residual) < 1e-13);
  }
  const DirtyImager imager(coords, visibilities, natural(Imaging::cells));
  CHECK_THROWS_AS(imager.image_of(torch::zeros({3}, torch::kComplexDouble)), ShapeError);
  CHECK_THROWS_AS(imager.image_of(torch::zeros_like(imager.cells(), torch::kDouble)), ShapeError);
}

TEST_CASE("every channel is imaged as if it were alone", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto cube = random_observation(coords, 3, 100, torch::kDouble, 6);
  const auto options = natural(each_imaging()).weighting(Weighting::briggs);
  const DirtyImager together(coords, cube, options);
  for (const std::int64_t channel : {0, 1, 2}) {
    // Largest baselines of other channels leave the fine grid of a nonuniform transform as it is here.
    const DirtyImager alone(coords, cube.select_channels({channel}), options);
    CHECK(torch::equal(together.image()[channel], alone.image()[0]));
    CHECK(torch::equal(together.beam()[channel], alone.beam()[0]));
    CHECK(torch::equal(together.beam_area()[channel], alone.beam_area()[0]));
    CHECK(torch::equal(together.peak_sidelobe()[channel], alone.peak_sidelobe()[0]));
    CHECK(torch::equal(together.noise()[channel], alone.noise()[0]));
  }
}

TEST_CASE("a continuum image takes all channels", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto cube = random_observation(coords, 3, 100, torch::kDouble, 7);
  const auto imaging = each_imaging();
  const auto continuum = DirtyImager(coords, cube, natural(imaging).channel_map(ChannelMap::continuum(3)));
  const DirtyImager apart(coords, cube, natural(imaging));
  const auto weights = cube.weights().sum(1).view({3, 1, 1});
  CHECK(continuum.nchan() == 1);
  CHECK(relative_error(continuum.image(), ((apart.image() * weights).sum(0) / weights.sum()).unsqueeze(0)) < of_transform);
}

TEST_CASE("the fitted beam has the axes and the angle of the beam", "[gridding][dirty][quick]") {
  const GridCoords coords(0.02, 128);
  for (const double angle : {-80.0, -45.0, 0.0, 20.0, 63.0, 90.0}) {
    INFO(angle);
    const double major = 0.21, minor = 0.13;
    const auto observed = filled_plane(
        coords, [&](const Tensor& u, const Tensor& v) { return gaussian_visibility(u, v, major, minor, angle) + 1e-30; });
    const DirtyImager imager(coords, observed, natural());
    const auto beam = imager.fitted_beam()[0];
    REQUIRE(beam.has_value());
    CHECK_THAT(beam->major, WithinRel(major, 1e-5));
    CHECK_THAT(beam->minor, WithinRel(minor, 1e-5));
    CHECK(std::abs(std::remainder(beam->position_angle / units::degree - angle, 180)) < 1e-3);
    CHECK(beam->position_angle > -units::pi / 2);
    CHECK(beam->position_angle <= units::pi / 2);
  }
}

TEST_CASE("a Gaussian taper widens the beam in quadrature", "[gridding][dirty][quick]") {
  const GridCoords coords(0.02, 128);
  const auto observed =
      filled_plane(coords, [](const Tensor& u, const Tensor& v) { return gaussian_visibility(u, v, 0.2, 0.12, 30) + 1e-30; });
  const DirtyImager imager(coords, observed, natural().taper(gaussian_taper(0.15)));
  const auto beam = imager.fitted_beam()[0];
  REQUIRE(beam.has_value());
  CHECK_THAT(beam->major, WithinRel(std::hypot(0.2, 0.15), 1e-5));
  CHECK_THAT(beam->minor, WithinRel(std::hypot(0.12, 0.15), 1e-5));
  CHECK_THAT(imager.beam()[0][64][63].item<double>(), WithinAbs(1, 1e-12));
  // At cell centres a taper of the cells is one of the samples.
  const DirtyImager gridded(DataAverager(coords, observed).to_dataset(), natural().taper(gaussian_taper(0.15)));
  CHECK(relative_error(gridded.image(), imager.image()) < of_transform);
  CHECK(relative_error(gridded.noise(), imager.noise()) < 1e-12);
  CHECK_THROWS_AS(gaussian_taper(-0.1), ValueError);
  CHECK_THROWS_AS(gaussian_taper(std::nan("")), ValueError);
  const DirtyImager untapered(coords, observed, natural());
  CHECK(relative_error(DirtyImager(coords, observed, natural().taper(gaussian_taper(0))).image(), untapered.image()) < 1e-12);
}

TEST_CASE("beam area and sidelobe level are those within and beyond the first null", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 48);
  for (const std::int64_t nvis : {1, 2, 5, 40, 2000}) {
    const DirtyImager imager(coords, random_observation(coords, 1, nvis, torch::kDouble, 100 + static_cast<std::uint64_t>(nvis)),
                             natural());
    const auto beam = imager.beam()[0], inside = nulled(beam);
    CHECK_THAT(imager.beam_area()[0].item<double>(), WithinRel(coords.cell_area() * inside.sum().item<double>(), 1e-10));
    const double outside = beam.masked_fill(inside != 0, 0.0).abs().max().item<double>();
    CHECK_THAT(imager.peak_sidelobe()[0].item<double>(), WithinAbs(outside, 1e-14));
  }
}

TEST_CASE("a beam that is no ellipse has no fit", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto at_one_place = [&](double u) {
    return Visibilities(
        Baselines::in_lambda(torch::full({1}, u * coords.du(), torch::kDouble), torch::zeros({1}, torch::kDouble)),
        torch::ones({1}, torch::kComplexDouble), torch::ones({1}, torch::kDouble));
  };
  const DirtyImager constant(coords, at_one_place(0)), fringe(coords, at_one_place(7));
  CHECK(relative_error(constant.beam(), torch::ones({1, 32, 32}, torch::kDouble)) < of_transform);
  CHECK_FALSE(constant.fitted_beam()[0].has_value());
  CHECK(constant.peak_sidelobe()[0].item<double>() == 0);
  CHECK_FALSE(fringe.fitted_beam()[0].has_value());
}

TEST_CASE("beams that ran out of memory while they were measured are all measured the next time", "[gridding][dirty][quick]") {
  const GridCoords coords(0.1, 16);
  const auto options = natural(each_imaging());
  /// How many allocations the measuring of so many channels failed at, each in an imager of its own.
  const auto failures_with = [&](std::int64_t nchan) {
    const auto samples = random_observation(coords, nchan, 60, torch::kDouble, 17);
    const auto expected = DirtyImager(coords, samples, options).beam_area();
    int failures = 0;
    for (int k = 0; failures == k; ++k) {
      const DirtyImager imager(coords, samples, options);
      {
        const FailingAllocator allocator(k);
        try {
          static_cast<void>(imager.fitted_beam());
        } catch (const c10::OutOfMemoryError&) {
          ++failures;
        }
      }
      CHECK(same(imager.beam_area(), expected));
    }
    return failures;
  };
  const int alone = failures_with(1);
  CHECK(alone > 0);
  CHECK(failures_with(3) > alone);  // some when a channel had been measured already
}

TEST_CASE("the promised noise is what pure noise makes", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto sampled = random_observation(coords, 1, 500, torch::kDouble, 8);
  const auto taper = gaussian_taper(0.1);
  for (const auto& options : {natural(), natural(Imaging::cells), DirtyImagerOptions(),
                              DirtyImagerOptions().weighting(Weighting::uniform).taper(taper)}) {
    double squares = 0;
    const int trials = 40;
    for (std::uint64_t trial = 0; trial < trials; ++trial) {
      const auto noise = normal({1, 500}, torch::kComplexDouble, 200 + trial) * std::sqrt(2.0) / sampled.weights().sqrt();
      const auto image = DirtyImager(coords, {sampled.baselines(), noise, sampled.weights()}, options).image();
      squares += image.square().mean().item<double>() / trials;
    }
    const auto promised = DirtyImager(coords, sampled, options).noise()[0].item<double>();
    CHECK_THAT(std::sqrt(squares), WithinRel(promised, 0.03));
  }
  const auto point = DirtyImager(coords, sampled, natural()).noise()[0];
  CHECK_THAT(point.item<double>(), WithinRel(1 / std::sqrt(sampled.weights().sum().item<double>()), 1e-12));
}

TEST_CASE("Briggs weighting runs from uniform to natural", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 1, 3000, torch::kDouble, 9);
  const auto beam_with = [&](DirtyImagerOptions options) { return DirtyImager(coords, visibilities, std::move(options)).beam(); };
  const auto briggs = [&](double robust) { return beam_with(DirtyImagerOptions().robust(robust)); };
  CHECK(relative_error(briggs(2), beam_with(natural())) < 0.01);
  CHECK(relative_error(briggs(-2), beam_with(DirtyImagerOptions().weighting(Weighting::uniform))) < 0.01);
  CHECK(relative_error(briggs(-2), briggs(2)) > 0.02);
  CHECK_THROWS_AS(briggs(2.1), ValueError);
  CHECK_THROWS_AS(briggs(std::nan("")), ValueError);
}

TEST_CASE("an imager knows the scatter of loose data", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 1, 3000, torch::kDouble, 11);
  const DataAverager averager(coords, visibilities, unchecked());
  const DirtyImager imager(coords, visibilities);
  REQUIRE(imager.scatter());
  CHECK(imager.scatter()->real == averager.scatter().real);
  CHECK(imager.scatter()->imag == averager.scatter().imag);
  CHECK_FALSE(DirtyImager(averager.to_dataset()).scatter());
  CHECK_FALSE(DirtyImager(coords, visibilities, natural().taper(gaussian_taper(0.1))).scatter());
}

TEST_CASE("an imager refuses what it cannot do", "[gridding][dirty][quick]") {
  const GridCoords coords(0.05, 32);
  const auto visibilities = random_observation(coords, 1, 30, torch::kDouble, 10);
  const auto with_taper = [&](Taper taper) { DirtyImager(coords, visibilities, natural().taper(std::move(taper))); };
  CHECK_THROWS_AS(with_taper([](const Tensor&, const Tensor&) { return torch::ones({2}); }), ShapeError);
  CHECK_THROWS_AS(with_taper([](const Tensor& u, const Tensor&) { return torch::zeros_like(u); }), DataError);
  CHECK_THROWS_AS(DirtyImager(GridCoords(0.5, 32), visibilities), DataError);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  CHECK_THROWS_AS(DirtyImager(dataset, natural().channel_map(ChannelMap::continuum(1))), ValueError);
}
