#include "catch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/fft/real_fft.h>

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
  const auto base = random_base(settings, torch::kFloat64);
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

TEST_CASE("the fused gradient is the slope of the fused total", "[ops][fused][quick]") {
  const std::int64_t npix = GENERATE(2, 6, 30, 64), nchan = GENERATE(1, 3);
  const auto likelihood = GENERATE(LikelihoodOf::cells, LikelihoodOf::images);
  const auto settings = settings_for(npix, nchan, all_terms());
  const Samples samples(npix, nchan, 0.4, 31);
  const auto base = normal({1, nchan, npix, npix}, torch::kFloat64, 32) * 3 - 1;
  const auto gradient = evaluate<double>(base, samples, settings, likelihood).gradient;
  for (const std::uint64_t seed : {33, 34, 35}) {
    const auto direction = normal(base.sizes(), torch::kFloat64, seed);
    const auto total = [&](double step) {
      return evaluate<double>(base + step * direction, samples, settings, likelihood).totals[0].item<double>();
    };
    constexpr double step = 1e-5;
    const double slope = (total(step) - total(-step)) / (2 * step);
    const double scale = std::sqrt(inner_product(gradient, gradient) * inner_product(direction, direction));
    CAPTURE(npix, nchan, seed);
    CHECK(std::abs(slope - inner_product(gradient, direction)) < 1e-7 * scale);
  }
}

TEMPLATE_TEST_CASE("the fused gradient is that of autograd for large images, prime factors and the taller blocks of rows",
                   "[ops][fused]", float, double) {
  const std::int64_t npix = GENERATE(330, 1018, 1026, 1250);
  check_against_autograd<TestType>(Samples(npix, 1, 0.02, 36), settings_for(npix, 1, all_terms()));
}

TEMPLATE_TEST_CASE("the fused gradient with a likelihood of images is that of autograd", "[ops][fused][quick]", float, double) {
  const std::int64_t npix = GENERATE(2, 6, 30, 64, 106), nchan = GENERATE(1, 3);
  auto settings = settings_for(npix, nchan, all_terms());
  settings.terms.weight(TermKind::psd) *= GENERATE(0, 1);
  settings.problems = npix < 64 ? 2 : 1;
  check_against_autograd<TestType>(Samples(npix, nchan, 0.4, 5), settings, LikelihoodOf::images);
}

TEMPLATE_TEST_CASE("a likelihood of images alone is fitted by the fused passes", "[ops][fused][quick]", float, double) {
  check_against_autograd<TestType>(Samples(38, 2, 0.3, 7), settings_for(38, 2, {}), LikelihoodOf::images);
}

TEMPLATE_TEST_CASE("the fused gradient is that of autograd on every instruction set", "[ops][fused]", float, double) {
  auto settings = settings_for(210, 2, all_terms());
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa));
    settings.isa = isa;
    check_against_autograd<TestType>(Samples(210, 2, 0.1, 6), settings);
  }
}

TEMPLATE_TEST_CASE("the fused gradient is right for each regulariser alone", "[ops][fused][quick]", float, double) {
  const auto every = all_terms();
  const auto kind = GENERATE(from_range(fused_regularizers()));
  CAPTURE(regularizer_of(kind).name, every.weight(kind));
  REQUIRE(every.weight(kind) > 0);
  auto terms = every;
  for (double& weight : terms.weights) weight = 0;
  check_against_autograd<TestType>(Samples(38, 3, 0.3, 7), settings_for(38, 3, terms));
  terms.weight(kind) = every.weight(kind);
  check_against_autograd<TestType>(Samples(38, 3, 0.3, 7), settings_for(38, 3, terms));
  terms = every;
  terms.weight(kind) = 0;
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

namespace {

/// Base pixels of a fit by Adam after some steps, each problem with its own weights, cells, rate and number of steps.
template <typename T>
class Scan {
 public:
  static constexpr std::int64_t npix = 30, nchan = 2;

  explicit Scan(const Tensor& base) : base_(base.to(dtype_of<T>()).clone(at::MemoryFormat::Contiguous)) {
    settings_.problems = base.size(0);
    settings_.own.clear();
  }

  void add(std::int64_t which) {
    const auto factor = static_cast<double>(which + 1);
    auto terms = all_terms();
    terms.weight(TermKind::sparsity) *= factor, terms.weight(TermKind::tsv) *= which == 1 ? 1 : 0;
    terms.weight(TermKind::psd) *= which > 0 ? 1 : 0, terms.settings(TermKind::entropy)[1] += factor;
    terms.weight(TermKind::group_sparsity) *= which < 2 ? 1 : 0;
    settings_.own.push_back({1e-2 / factor, terms});
    const Samples fold(npix, nchan, 0.1 + 0.1 * factor, 20 + static_cast<std::uint64_t>(which));
    for (auto& cells : ops::column_cells<T>(fold.cells, fold.data, fold.weights, nchan, npix)) cells_.push_back(std::move(cells));
    ops::UpdateSettings update;
    update.rate = 0.1 * factor;
    updates_.push_back(update);
    last_step_.push_back(2 + which);
  }

  /// The totals of each step, (steps, problems).
  Tensor run() {
    ops::FusedPipeline<T> pipeline(settings_, cells_);
    auto first = torch::zeros_like(base_), second = torch::zeros_like(base_);
    const ops::UpdateRow<T> pixels{base_.template mutable_data_ptr<T>(), first.template mutable_data_ptr<T>(),
                                   second.template mutable_data_ptr<T>(), nullptr};
    std::vector<Tensor> history;
    for (std::int64_t step = 0; step < 6; ++step) {
      for (std::size_t i = 0; i < last_step_.size(); ++i) {
        if (last_step_[i] == step) pipeline.stop(static_cast<std::int64_t>(i));
      }
      std::vector<double> totals;
      for (const auto& values : pipeline.run_each(ops::FusedUpdate::adam, pixels, updates_))
        totals.push_back(values.of(TermKind::sparsity));
      history.push_back(torch::tensor(totals, torch::kFloat64));
    }
    return at::stack(history);
  }

  const Tensor& base() const { return base_; }

 private:
  ops::FusedSettings settings_ = settings_for(npix, nchan, {});
  Tensor base_;
  std::vector<ops::ColumnCells<T>> cells_;
  std::vector<ops::UpdateSettings> updates_;
  std::vector<std::int64_t> last_step_;
};

}  // namespace

TEMPLATE_TEST_CASE("problems with weights, cells, rates and ends of their own are what each is alone", "[ops][fused][quick]",
                   float, double) {
  constexpr std::int64_t problems = 4;
  const auto start = normal({problems, 2, 30, 30}, torch::kFloat64, 19);
  Scan<TestType> together(start);
  for (std::int64_t i = 0; i < problems; ++i) together.add(i);
  const auto history = together.run();
  for (std::int64_t i = 0; i < problems; ++i) {
    Scan<TestType> alone(start.narrow(0, i, 1));
    alone.add(i);
    CHECK(torch::equal(history.select(1, i), alone.run().select(1, 0)));
    CHECK(torch::equal(together.base()[i], alone.base()[0]));
    CHECK_FALSE(torch::equal(alone.base()[0], start[i].to(alone.base().scalar_type())));
  }
}

TEST_CASE("the fused gradient of problems with weights of their own is that of autograd", "[ops][fused][quick]") {
  const std::int64_t npix = 20, nchan = 2;
  auto settings = settings_for(npix, nchan, {});
  auto second = all_terms();
  second.weight(TermKind::tv_image) = 0, second.weight(TermKind::sparsity) = 1.5, second.settings(TermKind::entropy)[1] = 0.7;
  settings.problems = 2;
  settings.own = {{1e-2, all_terms()}, {3e-2, second}};
  const Samples samples(npix, nchan, 0.3, 21);
  const auto base = normal({2, nchan, npix, npix}, torch::kFloat64, 22);
  const auto gradient = evaluate<double>(base, samples, settings).gradient;
  for (std::int64_t i = 0; i < 2; ++i) {
    auto one = settings_for(npix, nchan, settings.own[static_cast<std::size_t>(i)].terms);
    one.likelihood_scale = settings.own[static_cast<std::size_t>(i)].likelihood_scale;
    const auto expected = gradient_of([&](const Tensor& x) { return reference(x, samples, one); }, base.narrow(0, i, 1));
    CHECK(relative_error(gradient.narrow(0, i, 1), expected) < 1e-12);
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
  auto settings = settings_for(12, 2, {});
  settings.problems = 2;
  settings.own = {{}};
  const auto fitting = ops::column_cells<float>(samples.cells, samples.data, samples.weights, 2, 12);
  CHECK_THROWS_AS(ops::FusedPipeline<float>(settings, fitting), ValueError);
  settings.own.clear();
  ops::FusedPipeline<float> pipeline(settings, fitting);
  CHECK_THROWS_AS(pipeline.stop(2), ValueError);
  CHECK_THROWS_AS(pipeline.stop(-1), ValueError);
  CHECK_THROWS_AS(pipeline.run_each(ops::FusedUpdate::none, {}, {{}}), ValueError);
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
