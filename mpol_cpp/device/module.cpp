#include <mpol_cpp/device/module.h>

#include <ATen/ops/_has_compatible_shallow_copy_type.h>

#include <ATen/core/ivalue.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/labeled_state.h>
#include <mpol_cpp/device/select.h>
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
  if (device != nullptr) check_device(*device);
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

namespace {

const char* const label_prefix = "label_";

/// What an archive has under the name of a tensor of ours must be like it.
void check_tensor(torch::serialize::InputArchive& archive, const std::string& name, const Tensor& own, bool is_buffer) {
  Tensor saved;
  if (!own.defined() || !archive.try_read(name, saved, is_buffer)) return;  // what is missing, LibTorch refuses by name
  if (saved.sizes() == own.sizes() && saved.scalar_type() == own.scalar_type()) return;
  throw FileError(fmt::format("the archive has {} of shape {} as {}, the module's is {} as {}: make the module alike", name,
                              saved.sizes().vec(), c10::toString(saved.scalar_type()), own.sizes().vec(),
                              c10::toString(own.scalar_type())));
}

}  // namespace

void write_labels(const torch::nn::Module& module, torch::serialize::OutputArchive& archive) {
  const auto* labeled = dynamic_cast<const LabeledState*>(&module);
  if (labeled == nullptr) return;
  for (const auto& [name, words] : labeled->state_labels()) archive.write(label_prefix + name, c10::IValue(words));
}

void check_archive(const torch::nn::Module& module, torch::serialize::InputArchive& archive) {
  if (const auto* labeled = dynamic_cast<const LabeledState*>(&module)) {
    for (const auto& [name, words] : labeled->state_labels()) {
      c10::IValue saved;
      if (!archive.try_read(label_prefix + name, saved) || saved.toStringRef() == words) continue;
      throw FileError(
          fmt::format("the archive is of {} {}, the module of {}: make the module alike", name, saved.toStringRef(), words));
    }
  }
  for (const auto& item : module.named_parameters(/*recurse=*/false)) check_tensor(archive, item.key(), item.value(), false);
  for (const auto& item : module.named_buffers(/*recurse=*/false)) check_tensor(archive, item.key(), item.value(), true);
}

}  // namespace mpol::detail
