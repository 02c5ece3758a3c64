#include "catch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused_pipeline.h>
#include <mpol_cpp/ops/hann.h>
#include <mpol_cpp/ops/real_fft.h>

#include "compare.h"
#include "fused_problem.h"
#include "instruction_sets.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

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
