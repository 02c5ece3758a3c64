#include "catch.h"

#include <numbers>
#include <numeric>

#include <ATen/ops/outer.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_kernels.h>

#include "compare.h"
#include "instruction_sets.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double untouched = 5;

/// Panels of columns, (panels, rows, 2, batch): real and imaginary parts.
template <typename T>
class Panels {
 public:
  static constexpr auto batch = ops::LineTransforms<T>::batch;

  Panels(std::vector<std::int32_t> columns, std::int64_t rows)
      : columns_(std::move(columns)),
        parts_(torch::full({ops::LineTransforms<T>::panels(count()), rows, 2, batch}, untouched, dtype_of<T>())) {}

  std::int64_t count() const { return static_cast<std::int64_t>(columns_.size()); }
  T* panel(std::int64_t i) { return parts_[i].template mutable_data_ptr<T>(); }
  ops::FftPanels<T> from_row(std::int64_t row) {
    return {columns_.data(), count(), parts_.template mutable_data_ptr<T>() + row * 2 * batch, parts_.stride(0)};
  }

  /// (rows, columns of all panels)
  Tensor complex() const { return at::complex(parts_.select(2, 0), parts_.select(2, 1)).permute({1, 0, 2}).flatten(1, 2); }
  void set(const Tensor& values) {
    const auto all = torch::zeros({values.size(0), parts_.size(0) * batch}, values.options());
    all.narrow(1, 0, values.size(1)).copy_(values);
    const auto split = all.view({values.size(0), -1, batch}).permute({1, 0, 2});
    parts_.copy_(torch::stack({at::real(split), at::imag(split)}, 2));
  }

 private:
  std::vector<std::int32_t> columns_;
  Tensor parts_;
};

std::vector<std::int32_t> all_columns(std::int64_t length) {
  std::vector<std::int32_t> columns(static_cast<std::size_t>(length / 2 + 1));
  std::iota(columns.begin(), columns.end(), 0);
  return columns;
}
std::vector<std::int32_t> some_columns(std::int64_t length) {
  std::vector<std::int32_t> columns;
  for (std::int32_t k = 1; k <= length / 2; k += 1 + k % 3) columns.push_back(k);
  return columns;
}

template <typename T>
Tensor scratch_for(const ops::LineTransforms<T>& transforms) {
  return torch::full({transforms.scratch_size()}, std::numeric_limits<double>::quiet_NaN(), dtype_of<T>());
}

/// exp(-2 pi i k n / length) at row k and column n: the transform itself. A library's is no judge of the last digits: on some
/// processors MKL's error at a length of 2 x 53 is ten times ours.
Tensor exponentials(std::int64_t length) {
  const auto index = torch::arange(length);
  const auto turns = at::outer(index, index).remainder(length).to(torch::kFloat64) / static_cast<double>(length);
  return at::polar(torch::ones_like(turns), -2 * std::numbers::pi * turns);
}

template <typename T>
void check_rows(const ops::LineTransforms<T>& transforms, const std::vector<std::int32_t>& columns, std::int64_t count) {
  const double bound = tolerance<T>(1e-14, 1e-6);
  const auto length = transforms.length();
  const auto scratch = scratch_for(transforms);
  auto* memory = scratch.template mutable_data_ptr<T>();
  const auto index = torch::tensor(std::vector<std::int64_t>(columns.begin(), columns.end()));
  const auto kept = static_cast<std::int64_t>(columns.size());

  // Lines with room between them, which is not read.
  auto roomy = torch::full({count, length + 6}, std::numeric_limits<double>::quiet_NaN(), dtype_of<T>());
  auto lines = roomy.narrow(1, 0, length);
  lines.copy_(normal({count, length}, dtype_of<T>(), 1));
  Panels<T> panels(columns, count + 2);
  transforms.forward_rows(roomy.template const_data_ptr<T>(), length + 6, count, transforms.everything(), panels.from_row(1),
                          memory);
  const auto given = panels.complex();
  const auto unit = exponentials(length).index_select(1, index);  // (length, kept)
  const auto expected = lines.to(torch::kComplexDouble).matmul(unit);
  CHECK(relative_error(given.narrow(0, 1, count).narrow(1, 0, kept), expected) < bound);
  CHECK((given.narrow(0, 1, count).slice(1, kept) == 0).all().template item<bool>());
  CHECK((at::real(given[0]) == untouched).all().template item<bool>());
  CHECK((at::imag(given[count + 1]) == untouched).all().template item<bool>());

  // Re <forward(x), h> = <x, adjoint(h)>, number by number: forward of the unit lines are the exponentials.
  const auto half_spectra = normal({count + 2, kept}, complex_dtype_of<T>(), 2);
  panels.set(half_spectra);
  transforms.adjoint_rows(panels.from_row(1), roomy.template mutable_data_ptr<T>(), length + 6, count, transforms.everything(),
                          memory);
  const auto adjoint = at::real(half_spectra.narrow(0, 1, count).to(torch::kComplexDouble).matmul(unit.conj().t()));
  CHECK(relative_error(lines, adjoint) < bound);
  CHECK(at::isnan(roomy.narrow(1, length, 6)).all().template item<bool>());
}

template <typename T>
void check_columns(const ops::LineTransforms<T>& transforms) {
  const double bound = tolerance<T>(1e-14, 1e-6);
  const auto length = transforms.length();
  const auto scratch = scratch_for(transforms);
  const auto slots = torch::tensor(std::vector<std::int64_t>(transforms.slots().begin(), transforms.slots().end()));
  CHECK(torch::equal(std::get<0>(slots.sort()), torch::arange(length)));

  Panels<T> panels(std::vector<std::int32_t>(static_cast<std::size_t>(Panels<T>::batch)), length);
  const auto columns = normal({length, Panels<T>::batch}, complex_dtype_of<T>(), 3);
  panels.set(columns);
  transforms.forward_panel(panels.panel(0), scratch.template mutable_data_ptr<T>());
  const auto expected = exponentials(length).matmul(columns.to(torch::kComplexDouble));
  CHECK(relative_error(panels.complex().index_select(0, slots), expected) < bound);
  transforms.inverse_panel(panels.panel(0), scratch.template mutable_data_ptr<T>());
  CHECK(relative_error(panels.complex(), static_cast<double>(length) * columns.to(torch::kComplexDouble)) < bound);
}

template <typename T>
T* complex_data(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.mutable_data_ptr<c10::complex<T>>());
}

}  // namespace

TEMPLATE_TEST_CASE("line transforms equal the discrete Fourier transform", "[ops][fft][quick]", float, double) {
  const std::int64_t length = GENERATE(2, 4, 6, 8, 10, 14, 22, 26, 30, 34, 64, 106, 180, 210, 256, 420, 512, 1018, 1024);
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa));
    const ops::LineTransforms<TestType> transforms(length, isa);
    CHECK(transforms.length() == length);
    for (const auto count : {std::int64_t{1}, std::int64_t{3}, transforms.batch - 1, transforms.batch}) {
      check_rows(transforms, all_columns(length), count);
      check_rows(transforms, some_columns(length), count);
    }
    check_columns(transforms);
  }
}

TEMPLATE_TEST_CASE("line transforms of long lines equal the discrete Fourier transform", "[ops][fft]", float, double) {
  // Stages that do not fit the first-level cache are worked off block by block.
  const std::int64_t length = GENERATE(2048, 2310, 3000, 4096, 8192, 2 * 1009);
  for (const auto isa : instruction_sets()) check_columns(ops::LineTransforms<TestType>(length, isa));
}

TEMPLATE_TEST_CASE("parts of lines are transformed as lines that are 0 elsewhere", "[ops][fft][quick]", float, double) {
  const std::int64_t length = GENERATE(4, 8, 12, 20, 32, 34, 60, 64, 256, 424, 1018);
  const auto half = length / 2, quarter = length / 4;
  const auto [head, tail] = GENERATE_COPY(std::pair{half, std::int64_t{0}}, std::pair{quarter, quarter},
                                          std::pair{quarter, half - quarter}, std::pair{std::int64_t{1}, half});
  constexpr auto batch = ops::LineTransforms<TestType>::batch;
  const ops::FftSupport support{head, tail};
  const auto gap = length - head - tail;
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa), head, tail);
    const ops::LineTransforms<TestType> transforms(length, isa);
    const auto scratch = scratch_for(transforms);
    auto* memory = scratch.template mutable_data_ptr<TestType>();
    const auto equal_to_rounding = [](const Tensor& a, const Tensor& b) {
      return relative_error(a, b) < tolerance<TestType>(1e-14, 1e-6);
    };

    auto lines = normal({batch, length}, dtype_of<TestType>(), 3), partial = lines.clone();
    lines.narrow(1, head, gap).zero_();
    partial.narrow(1, head, gap).fill_(std::numeric_limits<double>::quiet_NaN());
    Panels<TestType> whole(all_columns(length), batch), part(all_columns(length), batch);
    transforms.forward_rows(lines.template const_data_ptr<TestType>(), length, batch, transforms.everything(), whole.from_row(0),
                            memory);
    transforms.forward_rows(partial.template const_data_ptr<TestType>(), length, batch, support, part.from_row(0), memory);
    CHECK(equal_to_rounding(part.complex(), whole.complex()));
    transforms.adjoint_rows(whole.from_row(0), lines.template mutable_data_ptr<TestType>(), length, batch,
                            transforms.everything(), memory);
    transforms.adjoint_rows(whole.from_row(0), partial.template mutable_data_ptr<TestType>(), length, batch, support, memory);
    CHECK(equal_to_rounding(partial.narrow(1, 0, head), lines.narrow(1, 0, head)));
    if (tail > 0) CHECK(equal_to_rounding(partial.narrow(1, length - tail, tail), lines.narrow(1, length - tail, tail)));
    CHECK(at::isnan(partial.narrow(1, head, gap)).all().template item<bool>());

    const std::vector<std::int32_t> columns(static_cast<std::size_t>(batch));
    const auto rows = normal({tail + head, batch}, complex_dtype_of<TestType>(), 4);
    Panels<TestType> given(columns, tail + head), panel(columns, length), expected(columns, length);
    given.set(rows);
    expected.set(at::cat({rows.narrow(0, tail, head), at::zeros({gap, batch}, rows.options()), rows.narrow(0, 0, tail)}));
    transforms.forward_panel(expected.panel(0), memory);
    transforms.forward_part(given.panel(0), support, panel.panel(0), memory);
    CHECK(equal_to_rounding(panel.complex(), expected.complex()));
    transforms.inverse_part(panel.panel(0), given.panel(0), support, memory);
    CHECK(equal_to_rounding(given.complex(), static_cast<double>(length) * rows));
  }
}

TEMPLATE_TEST_CASE("a line is transformed alike alone and among others", "[ops][fft][quick]", float, double) {
  const std::int64_t length = GENERATE(64, 180, 1018);
  constexpr auto batch = ops::LineTransforms<TestType>::batch;
  for (const auto isa : instruction_sets()) {
    const ops::LineTransforms<TestType> transforms(length, isa);
    const auto scratch = scratch_for(transforms);
    const auto lines = normal({batch, length}, dtype_of<TestType>(), 3);
    Panels<TestType> together(all_columns(length), batch), apart(all_columns(length), batch);
    transforms.forward_rows(lines.template const_data_ptr<TestType>(), length, batch, transforms.everything(),
                            together.from_row(0), scratch.template mutable_data_ptr<TestType>());
    for (std::int64_t row = 0; row < batch; ++row) {
      transforms.forward_rows(lines[row].template const_data_ptr<TestType>(), length, 1, transforms.everything(),
                              apart.from_row(row), scratch.template mutable_data_ptr<TestType>());
    }
    CHECK(torch::equal(together.complex(), apart.complex()));
  }
}

TEMPLATE_TEST_CASE("numbers move between panels and columns", "[ops][fft][quick]", float, double) {
  constexpr auto batch = ops::LineTransforms<TestType>::batch;
  const std::int64_t length = 90, count = GENERATE(1, 7, 32, 75), kept = GENERATE_COPY(std::int64_t{1}, std::int64_t{3}, batch);
  for (const auto isa : instruction_sets()) {
    const ops::LineTransforms<TestType> transforms(length, isa);
    const auto& kernels = transforms.kernels();
    const auto* rows = transforms.slots().data();
    const auto slots = torch::tensor(std::vector<std::int64_t>(rows, rows + count));
    const auto values = normal({length, batch}, complex_dtype_of<TestType>(), 4);
    Panels<TestType> panels(std::vector<std::int32_t>(static_cast<std::size_t>(batch)), length);
    panels.set(values);

    const auto columns = torch::full({kept, count + 3}, untouched, complex_dtype_of<TestType>());
    kernels.panel_to_columns(panels.panel(0), rows, count, complex_data<TestType>(columns), 2 * (count + 3), kept);
    CHECK(torch::equal(columns.narrow(1, 0, count), values.index_select(0, slots).narrow(1, 0, kept).t()));
    CHECK((columns.narrow(1, count, 3) == untouched).all().template item<bool>());

    const auto factors = normal({kept, count}, dtype_of<TestType>(), 5), of_column = normal({batch}, dtype_of<TestType>(), 6);
    ops::toeplitz_kernels<TestType>(isa).multiply_panel(panels.panel(0), rows, count, factors.template const_data_ptr<TestType>(),
                                                        kept, of_column.template const_data_ptr<TestType>());
    const auto product = panels.complex().index_select(0, slots).narrow(1, 0, kept);
    CHECK(torch::equal(product, columns.narrow(1, 0, count).t() * (of_column.narrow(0, 0, kept) * factors.t())));

    panels.set(values);
    kernels.columns_to_panel(complex_data<TestType>(columns), 2 * (count + 3), kept, rows, count, panels.panel(0));
    auto expected = values.clone();
    expected.index_fill_(0, slots, 0);
    expected.narrow(1, 0, kept).index_copy_(0, slots, columns.narrow(1, 0, count).t());
    CHECK(torch::equal(panels.complex(), expected));
  }
}

TEST_CASE("line transforms refuse odd lengths", "[ops][fft][quick]") {
  CHECK_THROWS_AS(ops::LineTransforms<float>(7), ValueError);
  CHECK_THROWS_AS(ops::LineTransforms<float>(0), ValueError);
  CHECK_THROWS_AS(ops::LineTransforms<double>(-4), ValueError);
}
