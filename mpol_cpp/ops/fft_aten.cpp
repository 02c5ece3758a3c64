#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/types.h>

#include <mpol_cpp/ops/fft_backends.h>

namespace mpol::ops::detail {
namespace {

using torch::Tensor;

constexpr std::int64_t unnormalised = 0;

template <typename T>
class AtenTransforms : public LineTransforms<T> {
 public:
  explicit AtenTransforms(const FftLayout& layout) : layout_(layout) {}

  void forward_rows(const T* lines, std::complex<T>* halves, std::int64_t count) const override {
    const c10::InferenceMode no_autograd;
    auto out = half_lines(halves, count);
    at::_fft_r2c_out(out, real_lines(const_cast<T*>(lines), count), {1}, unnormalised, /*onesided=*/true);
  }

  void inverse_rows(std::complex<T>* halves, T* lines, std::int64_t count) const override {
    const c10::InferenceMode no_autograd;
    auto out = real_lines(lines, count);
    at::_fft_c2r_out(out, half_lines(halves, count), {1}, unnormalised, layout_.length);
  }

  void forward_column(std::complex<T>* column) const override { transform_column(column, /*forward=*/true); }
  void inverse_column(std::complex<T>* column) const override { transform_column(column, /*forward=*/false); }

 private:
  Tensor real_lines(T* lines, std::int64_t count) const {
    return at::from_blob(lines, {count, layout_.length}, {layout_.real_distance, 1}, c10::CppTypeToScalarType<T>::value);
  }
  Tensor half_lines(std::complex<T>* halves, std::int64_t count) const {
    return at::from_blob(halves, {count, layout_.length / 2 + 1}, {layout_.half_distance, 1},
                         c10::CppTypeToScalarType<c10::complex<T>>::value);
  }
  void transform_column(std::complex<T>* column, bool forward) const {
    const c10::InferenceMode no_autograd;
    const auto line = at::from_blob(column, {layout_.length}, c10::CppTypeToScalarType<c10::complex<T>>::value);
    line.copy_(at::_fft_c2c(line, {0}, unnormalised, forward));
  }

  FftLayout layout_;
};

}  // namespace

template <typename T>
std::unique_ptr<LineTransforms<T>> plan_aten_transforms(const FftLayout& layout) {
  return std::make_unique<AtenTransforms<T>>(layout);
}

template std::unique_ptr<LineTransforms<float>> plan_aten_transforms(const FftLayout&);
template std::unique_ptr<LineTransforms<double>> plan_aten_transforms(const FftLayout&);

}  // namespace mpol::ops::detail
