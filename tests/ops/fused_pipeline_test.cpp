#include "catch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused_pipeline.h>
#include <mpol_cpp/ops/hann.h>
#include <mpol_cpp/ops/real_fft.h>

#include "compare.h"
#include "instruction_sets.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Cells of the half plane with data, some of them twice.
struct Samples {
  Tensor cells, data, weights;

  Samples(std::int64_t npix, std::int64_t nchan, double fraction, std::uint64_t seed) {
    const auto places = nchan * npix * (npix / 2 + 1);
    const auto once = (uniform({places}, torch::kFloat64, seed) < fraction).nonzero().squeeze(1);
    const auto again = once.index({uniform({once.size(0)}, torch::kFloat64, seed + 1) < 0.2});
    cells = at::cat({once, again});
    data = normal({cells.size(0)}, torch::kComplexDouble, seed + 2);
    weights = uniform({cells.size(0)}, torch::kFloat64, seed + 3) + 0.5;
  }
  /// Without the rows and columns of the half plane that `keep` maps to false.
  void only(const std::function<Tensor(const Tensor& flat)>& keep) {
    const auto kept = keep(cells);
    cells = cells.index({kept}), data = data.index({kept}), weights = weights.index({kept});
  }
};

constexpr double cell_area = 0.3;

/// chi^2 of each problem at the cells.
Tensor chi_squared_of(const Tensor& image, const Samples& samples) {
  const auto model = ops::half_plane_fft(image).flatten(-3).index_select(-1, samples.cells) * cell_area;
  return ((model - samples.data).abs().square() * samples.weights).sum({-1});
}

/// The same as a likelihood of images, by autograd in float64.
ops::ImageLikelihood image_likelihood(const Samples& samples) {
  return [samples](const Tensor& images, Tensor& gradient) {
    const auto precise = images.to(torch::kFloat64).contiguous();
    gradient.copy_(gradient_of([&](const Tensor& x) { return chi_squared_of(x, samples); }, precise));
    return chi_squared_of(precise, samples);
  };
}

enum class LikelihoodOf { cells, images };

/// The objective by autograd, in float64.
Tensor reference(const Tensor& base, const Samples& samples, const ops::FusedSettings& settings) {
  const auto& terms = settings.terms;
  const auto image = ops::hann(at::softplus(base));
  const auto n = settings.npix;
  auto total = settings.likelihood_scale * chi_squared_of(image, samples);
  const auto corner = image.narrow(-1, 0, n - 1).narrow(-2, 0, n - 1);
  const auto squares = (image.narrow(-1, 1, n - 1).narrow(-2, 0, n - 1) - corner).square() +
                       (image.narrow(-1, 0, n - 1).narrow(-2, 1, n - 1) - corner).square();
  const auto cube_sum = [](const Tensor& cube) { return cube.sum({-3, -2, -1}); };
  total = total + terms.sparsity * cube_sum(image) + terms.tsv * cube_sum(squares) +
          terms.tv_image * cube_sum((squares + terms.tv_image_epsilon).sqrt()) +
          terms.entropy / terms.total_flux * cube_sum(image * (image / terms.prior_intensity).log());
  if (terms.psd > 0) {
    const auto power = (ops::half_plane_fft(image).abs() * cell_area).square() * settings.inverse_power;
    total = total + terms.psd * (2 * cube_sum(power) - cube_sum(power.narrow(-1, 0, 1)) - cube_sum(power.narrow(-1, n / 2, 1)));
  }
  const auto step = image.narrow(-3, 1, image.size(-3) - 1) - image.narrow(-3, 0, image.size(-3) - 1);
  total = total + terms.tv_channel * cube_sum((step.square() + terms.tv_channel_epsilon).sqrt());
  for (const auto edge : {0L, n - 1}) {
    total = total +
            terms.edge_clamp * (image.select(-2, edge).square().sum({-2, -1}) + image.select(-1, edge).square().sum({-2, -1}));
  }
  return total;
}

double total_of(const ops::FusedValues& values, const ops::FusedSettings& settings) {
  const auto& terms = settings.terms;
  return settings.likelihood_scale * values.chi_squared + terms.sparsity * values.sparsity + terms.tv_image * values.tv_image +
         terms.tsv * values.tsv + terms.entropy * values.entropy + terms.tv_channel * values.tv_channel +
         terms.edge_clamp * values.edge_clamp + terms.psd * values.psd;
}

struct Evaluation {
  Tensor totals, gradient, image;
};

template <typename T>
std::unique_ptr<ops::FusedPipeline<T>> make_pipeline(const Samples& samples, const ops::FusedSettings& settings,
                                                     LikelihoodOf likelihood) {
  if (likelihood == LikelihoodOf::images) {
    return std::make_unique<ops::FusedPipeline<T>>(settings, image_likelihood(samples));
  }
  return std::make_unique<ops::FusedPipeline<T>>(
      settings, ops::column_cells<T>(samples.cells, samples.data, samples.weights, settings.nchan, settings.npix));
}

template <typename T>
Evaluation evaluate(const Tensor& base, const Samples& samples, const ops::FusedSettings& settings,
                    LikelihoodOf likelihood = LikelihoodOf::cells) {
  const auto pipeline = make_pipeline<T>(samples, settings, likelihood);
  const auto typed = base.to(dtype_of<T>()).contiguous();
  auto gradient = torch::full_like(typed, 9.0);
  const ops::UpdateRow<T> pixels{typed.template mutable_data_ptr<T>(), nullptr, nullptr, gradient.template mutable_data_ptr<T>()};
  std::vector<double> totals;
  for (const auto& values : pipeline->run(ops::FusedUpdate::none, pixels, {})) totals.push_back(total_of(values, settings));
  CHECK(torch::equal(typed.nan_to_num(), base.to(dtype_of<T>()).nan_to_num()));
  return {torch::tensor(totals, torch::kFloat64), gradient, pipeline->image()};
}

/// Values, gradients and images are those of autograd.
template <typename T>
void check_against_autograd(const Samples& samples, const ops::FusedSettings& settings,
                            LikelihoodOf likelihood = LikelihoodOf::cells) {
  const auto base = normal({settings.problems, settings.nchan, settings.npix, settings.npix}, torch::kFloat64, 17) * 3 - 1;
  const auto rounded = base.to(dtype_of<T>()).to(torch::kFloat64);
  const auto expected = reference(rounded, samples, settings);
  const auto gradient = gradient_of([&](const Tensor& x) { return reference(x, samples, settings); }, rounded);
  const auto evaluation = evaluate<T>(rounded, samples, settings, likelihood);
  CHECK(relative_error(evaluation.totals, expected) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(evaluation.gradient, gradient) < tolerance<T>(1e-12, 1e-5));
  CHECK(relative_error(evaluation.image, ops::hann(at::softplus(rounded))) < tolerance<T>(1e-14, 1e-6));
}

ops::FusedTerms all_terms() {
  ops::FusedTerms terms;
  terms.sparsity = 0.3, terms.tv_image = 0.2, terms.tsv = 0.11, terms.entropy = 0.4, terms.tv_channel = 0.25;
  terms.edge_clamp = 0.17, terms.psd = 0.02, terms.prior_intensity = 0.02, terms.total_flux = 3;
  terms.tv_image_epsilon = 1e-3, terms.tv_channel_epsilon = 2e-3;
  return terms;
}

ops::FusedSettings settings_for(std::int64_t npix, std::int64_t nchan, const ops::FusedTerms& terms) {
  ops::FusedSettings settings;
  settings.npix = npix, settings.nchan = nchan, settings.problems = 1, settings.cell_area = cell_area;
  settings.likelihood_scale = 1e-2, settings.terms = terms;
  settings.inverse_power = uniform({npix, npix / 2 + 1}, torch::kFloat64, 16) + 0.1;
  return settings;
}

}  // namespace

TEMPLATE_TEST_CASE("the fused gradient is that of autograd for every size", "[ops][fused][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 4, 6, 30, 64, 106), nchan = GENERATE(1, 3);
  const double fraction = GENERATE(0.3, 1.0);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.problems = npix < 64 ? 2 : 1;
  check_against_autograd<TestType>(Samples(npix, nchan, fraction, 5), settings);
}

TEMPLATE_TEST_CASE("the fused gradient with a likelihood of images is that of autograd", "[ops][fused][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 6, 30, 64, 106), nchan = GENERATE(1, 3);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.terms.psd *= GENERATE(0, 1);
  settings.problems = npix < 64 ? 2 : 1;
  check_against_autograd<TestType>(Samples(npix, nchan, 0.4, 5), settings, LikelihoodOf::images);
}

TEMPLATE_TEST_CASE("a likelihood of images alone is fitted by the fused passes", "[ops][fused][quick]", float, double) {
  check_against_autograd<TestType>(Samples(38, 2, 0.3, 7), settings_for(38, 2, {}), LikelihoodOf::images);
}

TEMPLATE_TEST_CASE("the fused gradient is that of autograd on every instruction set", "[ops][fused]", float, double) {
  auto settings = settings_for(210, 2, all_terms());
  for (const auto isa : instruction_sets()) {
    for (const auto fft : {ops::FftBackend::mkl, ops::FftBackend::aten}) {
      if (!ops::fft_backend_available(fft)) continue;
      CAPTURE(to_string(isa), to_string(fft));
      settings.isa = isa, settings.fft = fft;
      check_against_autograd<TestType>(Samples(210, 2, 0.1, 6), settings);
    }
  }
}

TEMPLATE_TEST_CASE("the fused gradient is right for each regulariser alone", "[ops][fused][quick]", float, double) {
  const auto every = all_terms();
  const auto weight =
      GENERATE(&ops::FusedTerms::sparsity, &ops::FusedTerms::tv_image, &ops::FusedTerms::tsv, &ops::FusedTerms::entropy,
               &ops::FusedTerms::tv_channel, &ops::FusedTerms::edge_clamp, &ops::FusedTerms::psd);
  auto terms = every;
  terms.sparsity = terms.tv_image = terms.tsv = terms.entropy = terms.tv_channel = terms.edge_clamp = terms.psd = 0;
  check_against_autograd<TestType>(Samples(38, 3, 0.3, 7), settings_for(38, 3, terms));
  terms.*weight = every.*weight;
  check_against_autograd<TestType>(Samples(38, 3, 0.3, 7), settings_for(38, 3, terms));
  terms = every;
  terms.*weight = 0;
  check_against_autograd<TestType>(Samples(38, 3, 0.3, 7), settings_for(38, 3, terms));
}

TEST_CASE("the fused gradient is right with columns, rows, channels or all of the half plane empty", "[ops][fused][quick]") {
  const std::int64_t npix = 40, half = npix / 2 + 1;
  const auto settings = settings_for(npix, 3, all_terms());
  const auto check_with = [&](const std::function<Tensor(const Tensor&)>& keep) {
    Samples samples(npix, 3, 0.4, 8);
    samples.only(keep);
    check_against_autograd<double>(samples, settings);
  };
  check_with([&](const Tensor& flat) { return flat.remainder(half) % 3 == 1; });
  check_with([&](const Tensor& flat) { return flat.remainder(half) == 0; });
  check_with([&](const Tensor& flat) { return flat.remainder(half) == half - 1; });
  check_with([&](const Tensor& flat) { return at::floor_divide(flat, half).remainder(npix) > 20; });
  check_with([&](const Tensor& flat) { return at::floor_divide(flat, half * npix) == 1; });
  check_with([&](const Tensor& flat) { return flat < 0; });
}

TEMPLATE_TEST_CASE("fused results are bitwise the same for any number of threads", "[ops][fused]", float, double) {
  const Samples samples(150, 2, 0.2, 9);
  auto settings = settings_for(150, 2, all_terms());
  const auto base = normal({1, 2, 150, 150}, torch::kFloat64, 10);
  const auto likelihood = GENERATE(LikelihoodOf::cells, LikelihoodOf::images);
  for (const auto isa : instruction_sets()) {
    settings.isa = isa;
    const auto run = [&](int threads) {
      const Threads used(threads);
      return evaluate<TestType>(base, samples, settings, likelihood);
    };
    const auto expected = run(1);
    for (const int threads : {2, 3}) {
      const auto evaluation = run(threads);
      CHECK(torch::equal(evaluation.gradient, expected.gradient));
      CHECK(torch::equal(evaluation.totals, expected.totals));
    }
  }
}

TEMPLATE_TEST_CASE("a fused problem is bitwise the same alone and among others", "[ops][fused]", float, double) {
  const std::int64_t npix = GENERATE(6, 90, 128);
  const Samples samples(npix, 2, 0.2, 11);
  auto settings = settings_for(npix, 2, all_terms());
  const auto base = normal({3, 2, npix, npix}, torch::kFloat64, 12);
  settings.problems = 3;
  const auto together = evaluate<TestType>(base, samples, settings);
  settings.problems = 1;
  for (std::int64_t problem = 0; problem < 3; ++problem) {
    const auto alone = evaluate<TestType>(base.narrow(0, problem, 1), samples, settings);
    CHECK(torch::equal(together.gradient[problem], alone.gradient[0]));
    CHECK(torch::equal(together.totals[problem], alone.totals[0]));
  }
}

TEST_CASE("a pixel that is not a number shows in the fused sums", "[ops][fused][quick]") {
  const Samples samples(12, 1, 0.2, 13);
  const auto settings = settings_for(12, 1, {});
  auto base = normal({1, 1, 12, 12}, torch::kFloat64, 14);
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    base[0][0][5][11] = value;
    CHECK_FALSE(std::isfinite(evaluate<double>(base, samples, settings).totals[0].item<double>()));
  }
}

TEST_CASE("the fused pipeline refuses cells that do not fit it", "[ops][fused][quick]") {
  const Samples samples(12, 2, 0.2, 15);
  CHECK_THROWS_AS(ops::column_cells<float>(samples.cells, samples.data, samples.weights, 1, 12), ValueError);
  auto cells = ops::column_cells<float>(samples.cells, samples.data, samples.weights, 2, 12);
  CHECK_THROWS_AS(ops::FusedPipeline<float>(settings_for(12, 3, {}), std::move(cells)), ValueError);
  CHECK_THROWS_AS(ops::FusedPipeline<float>(settings_for(12, 3, {}), ops::ImageLikelihood{}), ValueError);
}

TEST_CASE("the fused pipeline refuses a likelihood of images that mixes its problems", "[ops][fused][quick]") {
  auto settings = settings_for(12, 1, {});
  settings.problems = 2;
  ops::FusedPipeline<double> pipeline(settings, [](const Tensor& images, Tensor& gradient) {
    gradient.zero_();
    return images.sum();
  });
  auto base = torch::zeros({2, 1, 12, 12}, torch::kFloat64), gradient = torch::empty_like(base);
  CHECK_THROWS_AS(pipeline.run(ops::FusedUpdate::none,
                               {base.mutable_data_ptr<double>(), nullptr, nullptr, gradient.mutable_data_ptr<double>()}, {}),
                  ShapeError);
}
