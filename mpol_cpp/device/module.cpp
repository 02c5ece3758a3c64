#include <mpol_cpp/device/module.h>

#include <ATen/ops/_has_compatible_shallow_copy_type.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/tensor_data.h>

namespace mpol::detail {

torch::Dtype target_dtype(const Tensor& tensor, torch::Dtype dtype) {
  if (tensor.is_complex()) return c10::toComplexType(dtype);
  return tensor.is_floating_point() ? dtype : tensor.scalar_type();
}

void replace_data(Tensor& tensor, const Tensor& data) {
  // set_data refuses tensors of another implementation, as Meta ones (shapes without data) are.
  if (at::_has_compatible_shallow_copy_type(tensor, data)) tensor.set_data(data);
  else tensor.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

void cast_module(torch::nn::Module& module, const std::set<std::string>& metadata, const torch::Device* device,
                 const torch::Dtype* dtype, bool non_blocking) {
  if (dtype != nullptr && *dtype != torch::kFloat32 && *dtype != torch::kFloat64) {
    throw ValueError(std::string("modules hold float32 or float64, not ") + c10::toString(*dtype) +
                     ": choose torch::kFloat32 or torch::kFloat64");
  }
  const auto cast = [&](Tensor& tensor, bool keep_dtype) {
    if (!tensor.defined()) return;
    auto options = tensor.options();
    if (device != nullptr) options = options.device(*device);
    if (dtype != nullptr && !keep_dtype) options = options.dtype(target_dtype(tensor, *dtype));
    replace_data(tensor, tensor.to(options, non_blocking));
    if (tensor.grad().defined()) tensor.mutable_grad() = tensor.grad().to(options, non_blocking);
  };
  for (auto& parameter : module.named_parameters(/*recurse=*/false)) cast(parameter.value(), false);
  for (auto& buffer : module.named_buffers(/*recurse=*/false)) cast(buffer.value(), metadata.contains(buffer.key()));
}

}  // namespace mpol::detail
