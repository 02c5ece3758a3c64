#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/objective/guess_weights.h>

#include "comma_locale.h"
#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("guessed weights are MPoL's in size, and positive, which MPoL's are not", "[train][quick]") {
  const Golden golden("dirty");
  const auto coords = dataset_coords();
  const auto of_mpol = golden("bug_lambda_guess_sparsity_tv_tsv_entropy");
  CHECK((of_mpol < 0).all().item<bool>());
  const std::vector<Term> terms = {terms::sparsity(1), terms::tv_image(1), terms::tsv(1),
                                   terms::entropy(1, golden.number("in_prior_intensity"))};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    INFO(terms[i].name());
    const double weight = guess_weight(terms[i], coords, golden("out_briggs_0_image_sky"), golden("out_briggs_0p5_image_sky"));
    CHECK(weight == Approx(-of_mpol[static_cast<std::int64_t>(i)].item<double>()).epsilon(1e-10));
  }
}

TEST_CASE("weights are guessed from dirty images in the unit of the regularisers, to two digits", "[train][quick]") {
  const Golden file("dataset");
  const auto coords = dataset_coords();
  const Visibilities visibilities(Baselines::in_lambda(file("in_uu"), file("in_vv")), file("in_data"), file("in_weight"));
  const auto dataset = DataAverager(coords, visibilities).to_dataset();
  const std::vector<Term> terms = {terms::tv_image(0), terms::tsv(7)};
  const auto guessed = guess_weights(terms, dataset);
  REQUIRE(guessed.size() == 2);
  const auto image_with = [&](double robust) {
    return DirtyImager(dataset, DirtyImagerOptions().robust(robust).unit(ImageUnit::jy_per_arcsec2)).image();
  };
  const auto probe = random_image(coords, 2, torch::kFloat64, 1);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    CHECK(guessed[i].name() == terms[i].name());
    CHECK(guessed[i].kind() == terms[i].kind());
    CHECK(guessed[i].settings() == terms[i].settings());
    const double alone = guess_weight(terms[i], coords, image_with(0), image_with(0.5));
    CHECK(guessed[i].weight(0) == Approx(alone / 2).epsilon(0.051));  // two terms share
    CHECK(guess_weights({terms[i]}, dataset).front().weight(0) == Approx(alone).epsilon(0.051));
    const ModelOutput output(coords, probe, probe);
    CHECK(torch::equal(guessed[i].evaluate(output), terms[i].evaluate(output)));
  }
  CHECK(guess_weights({}, dataset).empty());
}

TEST_CASE("weights are guessed the same under a locale with a decimal comma", "[train]") {
  const Golden file("dataset");
  const Visibilities visibilities(Baselines::in_lambda(file("in_uu"), file("in_vv")), file("in_data"), file("in_weight"));
  const auto dataset = DataAverager(dataset_coords(), visibilities).to_dataset();
  const auto guess = [&dataset] { return guess_weights({terms::tv_image(0)}, dataset).front().weight(0); };
  const double expected = guess();
  REQUIRE(expected != std::floor(expected));  // a decimal point matters
  const CommaLocale comma;
  CHECK(guess() == expected);
}

TEST_CASE("images that do not differ in a regulariser say nothing of its weight", "[train][quick]") {
  const GridCoords coords(0.05, 16);
  const auto image = random_image(coords, 1, torch::kFloat64, 2);
  CHECK_THROWS_AS(guess_weight(terms::tv_image(1), coords, image, image.clone()), DataError);
  CHECK_THROWS_AS(guess_weight(terms::tv_channel(1), coords, image, 2 * image), DataError);  // a single channel
  CHECK(guess_weight(terms::sparsity(1), coords, 3 * image, image) ==
        Approx(1 / (2 * image.abs().sum().item<double>())).epsilon(1e-12));
}
