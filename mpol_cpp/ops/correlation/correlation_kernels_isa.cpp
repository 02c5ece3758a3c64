// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/correlation/correlation_kernels.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {
namespace {

constexpr int models_at_once = 3;  // with four channels twelve sums stay in registers

template <typename T>
MPOL_INLINE double sum_of(Vector<T> values) {
  double sum = 0;
  for (int lane = 0; lane < lanes<T>; ++lane) sum += static_cast<double>(values[lane]);
  return sum;
}

/// Sums over n numbers of each of some rows with each of some others, added to out[a * out_row + b].
template <int rows, int others, typename T>
MPOL_INLINE void add_dots(const T* a, std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t n, double* out,
                          std::int64_t out_row) {
  Vector<T> sum[rows][others] = {};
  each_vector<T>(n, [&](std::int64_t at, std::int64_t count) {
    Vector<T> of_b[others];
    for (int k = 0; k < others; ++k) of_b[k] = load_first<T>(b + k * b_row + at, count);
    for (int c = 0; c < rows; ++c) {
      const auto of_a = load_first<T>(a + c * a_row + at, count);
      for (int k = 0; k < others; ++k) sum[c][k] += of_a * of_b[k];
    }
  });
  for (int c = 0; c < rows; ++c)
    for (int k = 0; k < others; ++k) out[c * out_row + k] += sum_of<T>(sum[c][k]);
}

template <int rows, typename T>
MPOL_INLINE void add_rows(const T* a, std::int64_t a_row, const T* b, std::int64_t b_row, std::int64_t count, std::int64_t n,
                          double* out, std::int64_t out_row) {
  std::int64_t k = 0;
  for (; k + models_at_once <= count; k += models_at_once)
    add_dots<rows, models_at_once, T>(a, a_row, b + k * b_row, b_row, n, out + k, out_row);
  for (; k < count; ++k) add_dots<rows, 1, T>(a, a_row, b + k * b_row, b_row, n, out + k, out_row);
}

/// Four channels, or the last, one by one.
template <typename T>
void add_all(const T* a, std::int64_t a_row, std::int64_t rows, const T* b, std::int64_t b_row, std::int64_t count,
             std::int64_t n, double* out) {
  if (rows == correlated_channels) {
    add_rows<correlated_channels, T>(a, a_row, b, b_row, count, n, out, count);
    return;
  }
  for (std::int64_t c = 0; c < rows; ++c) add_rows<1, T>(a + c * a_row, a_row, b, b_row, count, n, out + c * count, count);
}

/// Data times weights, real and imaginary parts side by side.
template <typename T>
MPOL_INLINE void weigh(const T* data, const T* weights, std::int64_t n, T* out) {
  for (std::int64_t j = 0; j < n; ++j) {
    out[2 * j] = data[2 * j] * weights[j];
    out[2 * j + 1] = data[2 * j + 1] * weights[j];
  }
}

template <typename T>
void add(const CorrelatedBlock<T>& block, double* product, double* norm, T* scratch) {
  const auto n = block.samples, models = block.models;
  constexpr auto width = 2 * correlated_samples;
  auto* squares = scratch + correlation_scratch;
  const auto* model = reinterpret_cast<const T*>(block.model);
  for (std::int64_t m = 0; m < models; ++m) {
    const auto* own = model + 2 * m * block.model_row;
    for (std::int64_t j = 0; j < n; ++j)
      squares[m * correlated_samples + j] = own[2 * j] * own[2 * j] + own[2 * j + 1] * own[2 * j + 1];
  }
  for (std::int64_t first = 0; first < block.channels; first += correlated_channels) {
    const auto rows = block.channels - first < correlated_channels ? block.channels - first : correlated_channels;
    const auto* weights = block.weights + first * block.weight_row;
    for (std::int64_t c = 0; c < rows; ++c)
      weigh<T>(reinterpret_cast<const T*>(block.data + (first + c) * block.row), weights + c * block.weight_row, n,
               scratch + c * width);
    add_all<T>(scratch, width, rows, model, 2 * block.model_row, models, 2 * n, product + first * models);
    add_all<T>(weights, block.weight_row, rows, squares, correlated_samples, models, n, norm + first * models);
  }
}

}  // namespace

template <typename T>
CorrelationKernels<T> correlation_kernels() {
  return {add<T>};
}

template CorrelationKernels<float> correlation_kernels();
template CorrelationKernels<double> correlation_kernels();

}  // namespace mpol::ops::MPOL_ISA
