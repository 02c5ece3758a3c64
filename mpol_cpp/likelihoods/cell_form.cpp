#include <mpol_cpp/likelihoods/cell_form.h>

#include <vector>

#include <ATen/ops/tensor.h>

namespace mpol::losses::detail {

CellForm::Mark CellForm::mark_of(const Tensor& tensor) {
  const auto& version = tensor.unsafeGetTensorImpl()->version_counter();
  return {tensor.storage().getWeakStorageImpl(), version.enabled() ? version.current_version() : 0};
}

bool CellForm::has(const Tensor& sky) {
  return sky.is_cpu() || (sky.is_cuda() && ops::GpuCellChiSquared::has(sky.size(-1), sky.scalar_type(), sky.device()));
}

Tensor CellForm::values_and_gradient(const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient) {
  const Marks marks{mark_of(data.cells), mark_of(data.data), mark_of(data.weights)};
  if (made_of_ != marks) {
    single_.reset(), double_.reset(), on_gpu_.clear();
    made_of_ = marks;
  }
  if (!sky.is_cpu()) return run_on_gpu(data, cell_area, sky, gradient);
  return sky.scalar_type() == torch::kFloat32 ? run(single_, data, cell_area, sky, gradient)
                                              : run(double_, data, cell_area, sky, gradient);
}

Tensor CellForm::run_on_gpu(const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient) {
  const auto npix = sky.size(-1);
  const auto dtype = sky.scalar_type();
  auto& form = on_gpu_[dtype];
  if (!form) {
    form = std::make_unique<ops::GpuCellChiSquared>(data.cells, data.data, data.weights, data.nchan, npix, cell_area, dtype,
                                                    sky.device());
  }
  const auto values = form->run(sky.contiguous().view({-1, data.nchan, npix, npix}), gradient.view({-1, data.nchan, npix, npix}));
  return values.view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
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
  return at::tensor(values, torch::kFloat64).view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
}

}  // namespace mpol::losses::detail
