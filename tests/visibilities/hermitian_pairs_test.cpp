#include "catch.h"

#include <ATen/ops/cat.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Arrays {
  Tensor u, v, data, weights;

  static Arrays random(std::int64_t nvis, std::uint64_t seed) {
    return {normal({nvis}, torch::kFloat64, seed) * 1e5, normal({nvis}, torch::kFloat64, seed + 1) * 1e5,
            normal({nvis}, torch::kComplexDouble, seed + 2), uniform({nvis}, torch::kFloat64, seed + 3) + 0.5};
  }
  /// The partners of all samples come behind them, and all are shuffled.
  Arrays with_partners() const {
    const auto order = torch::randperm(2 * u.size(0), generator(9), torch::kInt64);
    const auto both = [&](const Tensor& first, const Tensor& second) { return at::cat({first, second}).index_select(0, order); };
    return {both(u, -u), both(v, -v), both(data, data.conj().resolve_conj()), both(weights, weights)};
  }
  Visibilities visibilities() const { return {Baselines::in_lambda(u, v), data, weights}; }
};

}  // namespace

TEST_CASE("Hermitian pairs are found in any order, and only where there are some", "[visibilities][quick]") {
  const auto arrays = Arrays::random(30'000, 1);
  const auto without = find_hermitian_pairs(arrays.visibilities());
  CHECK(without.tested == 8);
  CHECK(without.paired == 0);
  CHECK_NOTHROW(check_no_hermitian_pairs(arrays.visibilities()));
  const auto with = find_hermitian_pairs(arrays.with_partners().visibilities());
  CHECK(with.tested == 8);
  CHECK(with.paired == 8);
  CHECK_THROWS_AS(check_no_hermitian_pairs(arrays.with_partners().visibilities()), DataError);
}

TEST_CASE("baselines there and back with other data are no Hermitian pairs", "[visibilities][quick]") {
  auto arrays = Arrays::random(500, 2).with_partners();
  arrays.data = arrays.data + normal({1000}, torch::kComplexDouble, 11);
  CHECK(find_hermitian_pairs(arrays.visibilities()).paired == 0);
}

TEST_CASE("samples at the origin are their own partners and are not tested", "[visibilities][quick]") {
  auto arrays = Arrays::random(4, 3);
  arrays.u.zero_();
  arrays.v.zero_();
  arrays.data = at::real(arrays.data).to(torch::kComplexDouble);
  const auto pairs = find_hermitian_pairs(arrays.visibilities());
  CHECK(pairs.tested == 0);
  CHECK_FALSE(pairs.present());
}

TEST_CASE("Hermitian pairs are found in the channel that is asked for, in metres too", "[visibilities][quick]") {
  const auto arrays = Arrays::random(200, 4), both = arrays.with_partners();
  const auto frequencies = torch::tensor({2e11, 3e11}, torch::kFloat64);
  const auto other = both.data + normal({400}, torch::kComplexDouble, 12);
  const Visibilities visibilities(Baselines::in_metres(both.u, both.v, frequencies), at::stack({other, both.data}),
                                  at::stack({both.weights, both.weights}));
  CHECK_FALSE(find_hermitian_pairs(visibilities, 0).present());
  CHECK(find_hermitian_pairs(visibilities, 1).present());
  CHECK_THROWS_AS(find_hermitian_pairs(visibilities, 2), ValueError);
}
