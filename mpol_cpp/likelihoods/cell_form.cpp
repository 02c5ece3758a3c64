#include <mpol_cpp/likelihoods/cell_form.h>

#include <vector>

#include <ATen/ops/tensor.h>

namespace mpol::losses::detail {

CellForm::Mark CellForm::mark_of(const Tensor& tensor) {
  const auto& version = tensor.unsafeGetTensorImpl()->version_counter();
  return {tensor.storage().getWeakStorageImpl(), version.enabled() ? version.current_version() : 0};
}

Tensor CellForm::value_and_gradient(const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient) {
  const Marks marks{mark_of(data.cells), mark_of(data.data), mark_of(data.weights)};
  if (made_of_ != marks) {
    single_.reset(), double_.reset();
    made_of_ = marks;
  }
  return sky.scalar_type() == torch::kFloat32 ? run(single_, data, cell_area, sky, gradient)
                                              : run(double_, data, cell_area, sky, gradient);
}

template <typename T>
Tensor CellForm::run(Passes<T>& passes, const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient) {
  const auto npix = sky.size(-1);
  if (!passes) {
    passes = std::make_shared<ops::CellChiSquared<T>>(
        ops::column_cells<T>(data.cells, data.data.to(c10::CppTypeToScalarType<c10::complex<T>>::value),
                             data.weights.to(c10::CppTypeToScalarType<T>::value), data.nchan, npix),
        npix, cell_area);
  }
  const auto images = sky.contiguous();
  const auto problems = sky.numel() / (data.nchan * npix * npix);
  const auto values = passes->run(images.template const_data_ptr<T>(), problems, gradient.template mutable_data_ptr<T>());
  return at::tensor(values, torch::kFloat64).view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 3)));
}

}  // namespace mpol::losses::detail
