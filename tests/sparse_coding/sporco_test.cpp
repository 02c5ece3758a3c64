#include "catch.h"

#include <cmath>
#include <functional>
#include <string>

#include <mpol_cpp/sparse_coding/basis_pursuit.h>
#include <mpol_cpp/sparse_coding/convolutional_coder.h>
#include <mpol_cpp/sparse_coding/dictionary_learner.h>
#include <mpol_cpp/sparse_coding/robust_pca.h>
#include <mpol_cpp/sparse_coding/tv_restoration.h>

#include "compare.h"
#include "golden.h"

using namespace mpol;
using namespace mpol::testing;

/// SPORCO's functional values, iterations and penalties, with its own options (make_reference.py).
namespace {

const Golden& sporco() {
  static const Golden golden("sporco");
  return golden;
}

Tensor gray_image(const std::string& name = "gray") { return sporco()(name).unsqueeze(0); }

/// Solves, and compares what SPORCO came to after the same iterations.
void compare(const std::string& name, IterativeSolver& solver) {
  CAPTURE(name);
  const auto report = solver.solve();
  CHECK(report.iterations == sporco().number<std::int64_t>(name + "_iterations"));
  REQUIRE(report.objective.size() == 1);
  CHECK(report.objective[0] == Approx(sporco().number(name + "_objective")).epsilon(1e-6));
}

template <typename Options>
Options of_iterations(Options options, std::int64_t iterations, double tolerance = 1e-3) {
  options.most_iterations = iterations;
  options.tolerance = tolerance;
  return options;
}

template <typename Options>
Options with_fixed_rho(Options options) {
  options.balance.rho = AdmmOptions::Balance::Rho::fixed;
  return options;
}

void compare_coder(const std::string& name, const Tensor& filters, const Tensor& image,
                   const std::function<void(ConvolutionalCodingOptions&)>& change = {}) {
  auto options = of_iterations(ConvolutionalCodingOptions(0.05), 40, 1e-6);
  if (change) change(options);
  ConvolutionalCoder coder(filters, image, options);
  compare(name, coder.solver());
}

}  // namespace

TEST_CASE("basis pursuit has SPORCO's values", "[sparse_coding][quick]") {
  const auto single = basis_pursuit(sporco()("dictionary"), sporco()("signals"), of_iterations(BasisPursuitOptions(0.2), 60));
  compare("bpdn", *single);
  CHECK(relative_error(single->auxiliary()[0], sporco()("bpdn_x")) < 1e-9);
  auto joint = of_iterations(BasisPursuitOptions(0.1), 60);
  joint.l21_weight = 0.3;
  compare("bpdn_joint", *basis_pursuit(sporco()("dictionary"), sporco()("signals"), joint));
  compare("bpdn_tall",
          *basis_pursuit(sporco()("wide"), sporco()("bpdn_tall_signals"), of_iterations(BasisPursuitOptions(0.2), 30)));
}

TEST_CASE("robust principal components have SPORCO's values", "[sparse_coding][quick]") {
  const auto& matrix = sporco()("matrix");
  const auto solver = robust_pca(matrix, of_iterations(RobustPcaOptions::for_rows(matrix.size(0)), 40, 1e-5));
  compare("rpca", *solver);
  CHECK(relative_error(low_rank(*solver), sporco()("rpca_low_rank")) < 1e-8);
  CHECK(relative_error(sparse_part(*solver), sporco()("rpca_sparse")) < 1e-8);
}

TEST_CASE("total variation has SPORCO's values: denoising and deconvolution, squared and absolute, in color",
          "[sparse_coding][quick]") {
  using Options = TvRestorationOptions;
  const auto example = [](double lambda) {
    auto options = of_iterations(Options(lambda), 60);
    options.objective_at = AdmmOptions::ObjectiveAt::primal;
    return options;
  };
  compare("tvl2", *tv_denoiser(gray_image(), with_fixed_rho(of_iterations(Options(0.1), 50))));
  compare("tvl2_example", *tv_denoiser(gray_image(), example(0.1)));
  auto color = example(0.1);
  compare("tvl2_color_apart", *tv_denoiser(sporco()("color"), color));
  color.variation = Variation::across_channels;
  compare("tvl2_color", *tv_denoiser(sporco()("color"), color));
  compare("tvl2_deconv", *tv_deconvolver(sporco()("kernel"), gray_image("blurred"), of_iterations(Options(0.005), 50, 1e-6)));

  auto absolute = with_fixed_rho(of_iterations(Options(0.8), 50));
  absolute.fidelity = Options::Fidelity::absolute;
  compare("tvl1", *tv_denoiser(gray_image("spikes"), absolute));
  auto spikes = example(0.8);
  spikes.fidelity = Options::Fidelity::absolute;
  spikes.tolerance = 1e-4;
  compare("tvl1_example", *tv_denoiser(gray_image("spikes"), spikes));
  auto blurred = with_fixed_rho(of_iterations(Options(0.02), 50, 1e-6));
  blurred.fidelity = Options::Fidelity::absolute;
  compare("tvl1_deconv", *tv_deconvolver(sporco()("kernel"), gray_image("blurred"), blurred));
}

TEST_CASE("convolutional sparse coding has SPORCO's values", "[sparse_coding][quick]") {
  const auto& filters = sporco()("filters");
  compare_coder("cbpdn", filters, gray_image());
  compare_coder("cbpdn_stops", filters, gray_image(), [](auto& options) {
    options.most_iterations = 500;
    options.tolerance = 5e-3;
  });
  compare_coder("cbpdn_positive", filters, gray_image(), [](auto& options) {
    options.sign = ConvolutionalCodingOptions::Sign::nonnegative;
    options.objective_at = AdmmOptions::ObjectiveAt::auxiliary;
  });
  compare_coder("cbpdn_color", filters, sporco()("color"));
  compare_coder("cbpdn_color_filters", sporco()("color_filters"), sporco()("color"));
  compare_coder("cbpdn_joint", filters, sporco()("color"), [](auto& options) { options.l21_weight = 0.02; });
  compare_coder("cbpdn_gradient", filters, gray_image(), [](auto& options) { options.gradient_weight = 0.02; });
  compare_coder("cbpdn_mask", filters, gray_image(), [](auto& options) {
    options.mask = sporco()("mask");
    options.rho = options.balance.target = 1;
    options.balance.period = 10;
    options.balance.largest_factor = 2;
    options.balance.scaling = AdmmOptions::Balance::Scaling::constant;
    options.balance.ratio = 10;
  });
  compare_coder("cbpdn_mask_fixed", filters, gray_image(), [](auto& options) {
    options.mask = sporco()("mask");
    options.rho = 1;
    options.balance.rho = AdmmOptions::Balance::Rho::fixed;
  });
  compare_coder("cbpdn_tv", filters, gray_image(), [](auto& options) {
    options.tv_weight = 0.02;
    options.rho = options.balance.target = 1;
  });
}

TEST_CASE("a dictionary learned image by image is SPORCO's", "[sparse_coding][quick]") {
  DictionaryLearningOptions options(0.1);
  options.coding.most_iterations = 20;
  DictionaryLearner learner(sporco()("filters"), options);
  SolverReport report;
  for (const std::int64_t index : {0, 1, 2, 0}) report = learner.learn(sporco()("color").narrow(0, index, 1));
  CHECK(report.objective[0] == Approx(sporco().number("learned_objective")).epsilon(1e-6));
  CHECK(relative_error(learner.filters(), sporco()("learned_filters")) < 1e-8);
}
