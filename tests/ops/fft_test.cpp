#include "catch.h"

#include <ATen/ops/fft_fft.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fft.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::vector<ops::FftBackend> backends() {
  std::vector<ops::FftBackend> available;
  for (const auto backend : {ops::FftBackend::mkl, ops::FftBackend::aten}) {
    if (ops::fft_backend_available(backend)) available.push_back(backend);
  }
  return available;
}

template <typename T>
std::complex<T>* complex_data(const Tensor& tensor) {
  return reinterpret_cast<std::complex<T>*>(tensor.mutable_data_ptr<c10::complex<T>>());
}

/// Lines with room between them, filled with `filling` there.
Tensor with_room(const Tensor& lines, std::int64_t distance, double filling) {
  auto roomy = torch::full({lines.size(0), distance}, filling, lines.options());
  roomy.narrow(1, 0, lines.size(1)).copy_(lines);
  return roomy;
}

}  // namespace

TEMPLATE_TEST_CASE("line transforms equal the discrete Fourier transform", "[ops][fft][quick]", float, double) {
  const std::int64_t length = GENERATE(2, 4, 6, 8, 10, 14, 30, 64, 106, 180, 210, 256, 420, 512, 1018, 1024);
  const std::int64_t count = GENERATE(1, 3, 8, 19);
  const double bound = tolerance<TestType>(1e-14, 2e-6);
  const std::int64_t real_distance = length + 6, half = length / 2 + 1, half_distance = half + 3;
  const auto lines = normal({count, length}, dtype_of<TestType>(), 1);
  for (const auto backend : backends()) {
    const auto plan = ops::plan_line_transforms<TestType>({length, real_distance, half_distance}, backend);
    const auto expected = at::fft_rfft(lines.to(torch::kFloat64));

    const auto real = with_room(lines, real_distance, 3);
    auto halves = torch::full({count, half_distance}, 5.0, complex_dtype_of<TestType>());
    plan->forward_rows(real.template const_data_ptr<TestType>(), complex_data<TestType>(halves), count);
    CHECK(relative_error(halves.narrow(1, 0, half), expected) < bound);
    CHECK((halves.narrow(1, half, 3) == 5.0).all().template item<bool>());

    auto back = torch::full({count, real_distance}, 7.0, dtype_of<TestType>());
    plan->inverse_rows(complex_data<TestType>(halves), back.template mutable_data_ptr<TestType>(), count);
    CHECK(relative_error(back.narrow(1, 0, length), static_cast<double>(length) * lines.to(torch::kFloat64)) < bound);
    CHECK((back.narrow(1, length, 6) == 7.0).all().template item<bool>());

    const auto column = normal({length}, complex_dtype_of<TestType>(), 2);
    auto transformed = column.clone();
    plan->forward_column(complex_data<TestType>(transformed));
    CHECK(relative_error(transformed, at::fft_fft(column.to(torch::kComplexDouble))) < bound);
    plan->inverse_column(complex_data<TestType>(transformed));
    CHECK(relative_error(transformed, static_cast<double>(length) * column.to(torch::kComplexDouble)) < bound);
  }
}

TEST_CASE("a line is transformed alike alone and in a batch of whole lines", "[ops][fft][quick]") {
  const std::int64_t length = GENERATE(64, 180, 1018), batch = ops::LineTransforms<float>::batch;
  const std::int64_t distance = (length + 15) / 16 * 16, half_distance = (length / 2 + 8) / 8 * 8;
  const auto plan = ops::plan_line_transforms<float>({length, distance, half_distance});
  const auto lines = with_room(normal({2 * batch, length}, torch::kFloat32, 3), distance, 0);
  auto together = torch::zeros({2 * batch, half_distance}, torch::kComplexFloat), apart = together.clone();
  plan->forward_rows(lines.const_data_ptr<float>(), complex_data<float>(together), 2 * batch);
  plan->forward_rows(lines.const_data_ptr<float>(), complex_data<float>(apart), batch);
  plan->forward_rows(lines[batch].const_data_ptr<float>(), complex_data<float>(apart[batch]), batch);
  CHECK(torch::equal(together, apart));
}

TEST_CASE("line transforms refuse what they cannot do", "[ops][fft][quick]") {
  CHECK_THROWS_AS(ops::plan_line_transforms<float>({7, 8, 8}), ValueError);
  CHECK_THROWS_AS(ops::plan_line_transforms<float>({0, 8, 8}), ValueError);
  CHECK_THROWS_AS(ops::plan_line_transforms<float>({8, 7, 8}), ValueError);
  CHECK_THROWS_AS(ops::plan_line_transforms<float>({8, 8, 4}), ValueError);
  CHECK(ops::fft_backend_available(ops::FftBackend::aten));
  if (!ops::fft_backend_available(ops::FftBackend::mkl)) {
    CHECK_THROWS_AS(ops::plan_line_transforms<float>({8, 8, 8}, ops::FftBackend::mkl), ValueError);
  }
}
