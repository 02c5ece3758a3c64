// Parity with MPoL, and with explicit sums where MPoL is wrong.
#include "catch.h"

#include <ATen/ops/fft_fft2.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/losses/visibility_losses.h>

#include "compare.h"
#include "golden.h"
#include "gridding/observation.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Observed {
  Golden file{"dataset"};
  GridCoords coords{file.number("in_cell_size"), file.number<std::int64_t>("in_npix")};

  Visibilities visibilities(torch::Dtype dtype = torch::kFloat64) const { return with_data(file("in_data"), dtype); }
  Visibilities with_data(const Tensor& data, torch::Dtype dtype = torch::kFloat64) const {
    return {Baselines::in_lambda(file("in_uu"), file("in_vv")), data.to(c10::toComplexType(dtype)), file("in_weight").to(dtype)};
  }
};

Tensor medians(const Scatter& scatter) { return at::tensor({scatter.real, scatter.imag}, torch::kFloat64); }

/// A value of each cell of the cube in ground order, zero in empty cells.
Tensor ground_cube(const DataAverager& averager, const Tensor& values) {
  const auto npix = averager.coords().npix();
  auto cube = torch::zeros({averager.nchan() * npix * npix}, values.options());
  return packed_to_ground(cube.index_copy_(0, averager.cell_statistics().cells, values).view({averager.nchan(), npix, npix}));
}

}  // namespace

TEMPLATE_TEST_CASE("cell averages equal MPoL's", "[gridding][quick]", double, float) {
  const Observed observed;
  const Golden golden("gridding");
  const auto dataset = DataAverager(observed.coords, observed.visibilities(dtype_of<TestType>())).to_dataset();
  const double near = tolerance<TestType>(1e-13, 1e-6);
  CHECK(torch::equal(dataset->mask(), golden("out_mask_packed").to(torch::kBool)));
  CHECK(relative_error(dataset->packed_visibilities(), golden("out_vis_packed")) < near);
  CHECK(relative_error(dataset->packed_weights(), golden("out_weight_packed")) < near);
  CHECK(relative_error(dataset->visibilities(), golden("out_vis_indexed")) < near);
  CHECK(relative_error(dataset->weights(), golden("out_weight_indexed")) < near);
  CHECK(dataset->nvis() == observed.file("in_data").numel());
  CHECK(dataset->visibilities().scalar_type() == torch::kComplexDouble);
}

TEST_CASE("the cell of every sample is MPoL's", "[gridding][quick]") {
  const Observed observed;
  const Golden golden("gridding");
  const auto npix = observed.coords.npix();
  const auto samples = observed.file("in_uu").size(1);
  // Each sample alone in a channel of its own tells its cell: as many at a time as memory likes.
  constexpr std::int64_t parts = 7;
  for (std::int64_t part = 0; part < 2 * parts; ++part) {
    const auto channel = part / parts, first = part % parts;
    const auto row = [&](const char* name) { return observed.file(name)[channel].slice(0, first, samples, parts); };
    const auto count = row("in_uu").size(0);
    const Visibilities single(Baselines::in_lambda(row("in_uu").unsqueeze(1), row("in_vv").unsqueeze(1)),
                              row("in_data").unsqueeze(1), row("in_weight").unsqueeze(1));
    const auto dataset = DataAverager(observed.coords, single).to_dataset();
    REQUIRE(dataset->ncells() == count);
    const auto cell = dataset->cells() - torch::arange(count) * npix * npix;
    const auto ground = [&](const Tensor& packed) { return (packed + npix / 2).remainder(npix); };
    CHECK(torch::equal(ground(cell.remainder(npix)), golden("out_cell_index_u")[channel].slice(0, first, samples, parts)));
    CHECK(torch::equal(ground(cell.floor_divide(npix)), golden("out_cell_index_v")[channel].slice(0, first, samples, parts)));
  }
}

TEST_CASE("gridding with Hermitian pairs equals MPoL v0.1", "[gridding][quick]") {
  const Observed observed;
  const Golden golden("gridding");
  const DataAverager averager(observed.coords, observed.visibilities(), DataAveragerOptions().hermitian_pairs(true));
  const auto dataset = averager.to_dataset();
  CHECK(torch::equal(dataset->mask(), golden("out_hermitian_mask_packed").to(torch::kBool)));
  CHECK_FALSE(torch::equal(dataset->mask(), golden("bug_v01_mask_packed").to(torch::kBool)));  // MPoL's swaps channels
  CHECK(relative_error(dataset->packed_visibilities(), golden("out_hermitian_vis_packed")) < 1e-13);
  CHECK(relative_error(dataset->packed_weights(), golden("out_hermitian_weight_packed")) < 1e-13);
  CHECK(relative_error(medians(averager.scatter()), golden("out_hermitian_scatter_median_re_im")) < 1e-12);
  CHECK(relative_error(medians(averager.scatter()), Golden("weights")("out_scatter_median_dirty_imager")) < 1e-12);
}

TEST_CASE("the likelihood of cells with Hermitian pairs is that of MPoL v0.1 with the mask of each channel its own",
          "[gridding][quick]") {
  const Observed observed;
  const Golden golden("losses_vis");
  const auto options = DataAveragerOptions().hermitian_pairs(true);
  const auto dataset = DataAverager(observed.coords, observed.visibilities(), options).to_dataset();
  const auto model = at::fft_fft2(sky_to_packed(observed.file("in_image_sky"))) * observed.coords.cell_area();
  const double value = losses::nll_gridded(model, dataset).item<double>();
  CHECK(value == Approx(golden.number("out_v01_nll_gridded_hermitian")).epsilon(1e-12));
  const double shifted_mask = golden.number("bug_v01_nll_gridded_shifted_mask");
  CHECK(std::abs(value / shifted_mask - 1) > 1e-4);
}

TEMPLATE_TEST_CASE("the scatter of every cell and its medians equal MPoL's", "[gridding][quick]", float, double) {
  const Observed observed;
  const Golden golden("weights");
  const DataAverager averager(observed.coords, observed.visibilities(dtype_of<TestType>()));
  const auto statistics = averager.cell_statistics();
  const double near = tolerance<TestType>(1e-12, 1e-6);
  CHECK(relative_error(ground_cube(averager, statistics.real), golden("out_std_re_ground")) < near);
  CHECK(relative_error(ground_cube(averager, statistics.imag), golden("out_std_im_ground")) < near);
  CHECK(torch::equal(ground_cube(averager, statistics.samples), golden("out_nvis_cell_ground").to(torch::kInt64)));
  CHECK(relative_error(medians(averager.scatter()), Golden("gridding")("out_scatter_median_re_im")) < near);
  CHECK(averager.scatter().cells == (statistics.samples > 1).sum().item<std::int64_t>());
  CHECK(relative_error(averager.to_dataset()->packed_weights().sum({-2, -1}), golden("out_sum_weight")) <
        tolerance<TestType>(1e-13, 1e-6));
}

TEST_CASE("noise twice as large as the weights say fails the scatter check as in MPoL", "[gridding][quick]") {
  const Observed observed;
  const Golden golden("gridding");
  const auto noisy = observed.with_data(golden("in_data_noise_x2"));
  REQUIRE(golden.number<std::int64_t>("out_scatter_noise_x2_raises") == 1);
  const DataAverager averager(observed.coords, noisy);
  CHECK(relative_error(medians(averager.scatter()), golden("out_scatter_median_noise_x2")) < 1e-12);
  CHECK_THROWS_AS(averager.to_dataset(), DataError);
  CHECK_NOTHROW(DataAverager(observed.coords, noisy, unchecked()).to_dataset());
}

namespace {

/// Sums of the beams of all channels within the first null of the first one, arcsec^2, (nchan).
Tensor nulled_as_the_first(const DirtyImager& imager) {
  constexpr int wedges = 24;
  constexpr double width = 2 * units::pi / wedges, overlap = 0.3;
  const auto beams = imager.beam();
  const auto npix = beams.size(-1);
  const auto l = (npix / 2 - 1 - torch::arange(npix)).expand({npix, npix});
  const auto m = (torch::arange(npix) - npix / 2).unsqueeze(1).expand({npix, npix});
  const auto squared = l * l + m * m;
  const auto theta = torch::atan2(m.to(torch::kFloat64), l.to(torch::kFloat64)) + units::pi;
  auto kept = torch::ones({npix, npix}, torch::kBool);
  for (int wedge = 0; wedge < wedges; ++wedge) {
    auto inside = torch::zeros({npix, npix}, torch::kBool);
    for (const int turn : {-wedges, 0, wedges}) {
      inside |= (theta >= (wedge + turn - overlap) * width) & (theta <= (wedge + turn + 1 + overlap) * width);
    }
    const auto negative = squared.masked_select(inside & (beams[0] < 0));
    if (negative.numel() > 0) kept &= ~(inside & (squared >= negative.min()));
  }
  return (beams * kept).sum({-2, -1}) * imager.coords().cell_area();
}

template <typename T>
void check_dirty(const std::string& name, const DirtyImagerOptions& options) {
  INFO(name);
  const Observed observed;
  const Golden golden("dirty");
  const DirtyImager imager(observed.coords, observed.visibilities(dtype_of<T>()), options);
  const auto reference = [&](const char* what) { return golden("out_" + name + what); };
  const double near = tolerance<T>(1e-12, 1e-6);
  CHECK(relative_error(imager.image(), reference("_image_sky")) < near);
  CHECK(relative_error(imager.beam()[0], reference("_beam_sky_chan0")) < near);
  CHECK(relative_error(imager.normalization(), reference("_C")) < near);
  const auto area = imager.beam_area();
  const double near_area = tolerance<T>(1e-10, 1e-5);
  CHECK(relative_error(area, golden("out_correct_" + name + "_area_each_channel")) < near_area);
  // MPoL nulls the beams of all channels where the first one's is below its threshold: of the others the area differs.
  const auto as_the_first = golden("out_correct_" + name + "_area");
  CHECK(relative_error(area[0], as_the_first[0]) < near_area);
  CHECK(relative_error(nulled_as_the_first(imager), as_the_first) < near_area);
}

/// MPoL's images are those of cells.
DirtyImagerOptions mpol_options(Weighting weighting) { return DirtyImagerOptions().imaging(Imaging::cells).weighting(weighting); }
DirtyImagerOptions briggs(double robust) { return mpol_options(Weighting::briggs).robust(robust); }

}  // namespace

TEMPLATE_TEST_CASE("dirty images, beams, C and beam areas equal MPoL's", "[gridding][quick]", float, double) {
  check_dirty<TestType>("natural", mpol_options(Weighting::natural));
  check_dirty<TestType>("uniform", mpol_options(Weighting::uniform));
  check_dirty<TestType>("briggs_m0p5", briggs(-0.5));
  check_dirty<TestType>("briggs_0", briggs(0));
  check_dirty<TestType>("briggs_0p5", briggs(0.5));
  check_dirty<TestType>("briggs_2", briggs(2));
  const double sigma = Golden("dirty").number("in_taper_sigma_lambda");
  check_dirty<TestType>("briggs_0p5_taper", briggs(0.5).taper([sigma](const Tensor& u, const Tensor& v) {
    return torch::exp(-0.5 * (u.square() + v.square()) / (sigma * sigma));
  }));
}

TEST_CASE("beam areas are measured about the middle of the beam, which MPoL's are not", "[gridding][quick]") {
  const Observed observed;
  const Golden golden("dirty");
  const DirtyImager imager(observed.coords, observed.visibilities(), briggs(0.5));
  CHECK(relative_error(imager.beam_area(), golden("bug_briggs_0p5_area_each_channel")) > 1e-3);
  const auto image = DirtyImager(observed.coords, observed.visibilities(), briggs(0.5).unit(ImageUnit::jy_per_arcsec2)).image();
  CHECK(relative_error(image[0], golden("bug_briggs_0p5_image_Jy_arcsec2_chan0")) > 1e-3);
}

TEST_CASE("dirty images per square arcsecond equal MPoL's with the right beam area", "[gridding][quick]") {
  const Observed observed;
  const DirtyImager imager(observed.coords, observed.visibilities(), briggs(0.5).unit(ImageUnit::jy_per_arcsec2));
  CHECK(relative_error(imager.image()[0], Golden("dirty")("out_correct_briggs_0p5_image_Jy_arcsec2_chan0")) < 1e-10);
}

TEST_CASE("the ends of Briggs weighting are natural and uniform weighting, as near as in MPoL's own tests", "[gridding][quick]") {
  const Observed observed;
  const auto compare = [&](DirtyImagerOptions one, DirtyImagerOptions other, double beams, double images) {
    const DirtyImager a(observed.coords, observed.visibilities(), std::move(one));
    const DirtyImager b(observed.coords, observed.visibilities(), std::move(other));
    CHECK((a.beam() - b.beam()).abs().max().item<double>() < beams);
    CHECK((a.image() - b.image()).abs().max().item<double>() < images);
  };
  compare(mpol_options(Weighting::uniform), briggs(-2), 1e-4, 1e-4);
  compare(mpol_options(Weighting::natural), briggs(2), 1.5e-3, 2e-4);
}

TEST_CASE("visibilities of one jansky average to one jansky, and no weight is lost", "[gridding][quick]") {
  const Observed observed;
  const auto ones = observed.with_data(torch::ones_like(observed.file("in_data")));
  const auto dataset = DataAverager(observed.coords, ones, unchecked()).to_dataset();
  CHECK((dataset->visibilities() == c10::complex<double>(1, 0)).all().item<bool>());
  CHECK((dataset->packed_visibilities().masked_select(dataset->mask().logical_not()) == 0).all().item<bool>());
  CHECK(relative_error(dataset->weights().sum(), observed.file("in_weight").sum()) < 1e-13);
}

TEST_CASE("an imager of gridded data makes the same images as one of the loose data", "[gridding][quick]") {
  const Observed observed;
  const DirtyImager loose(observed.coords, observed.visibilities(), briggs(0.5));
  auto dataset = DataAverager(observed.coords, observed.visibilities()).to_dataset();
  const DirtyImager gridded(dataset, briggs(0.5));
  CHECK(torch::equal(gridded.image(), loose.image()));
  CHECK(torch::equal(gridded.beam(), loose.beam()));
  CHECK(torch::equal(gridded.cells(), loose.cells()));
  dataset->to(torch::kFloat32);
  CHECK(relative_error(DirtyImager(dataset, briggs(0.5)).image(), loose.image()) < 1e-5);
}
