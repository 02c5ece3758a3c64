#include <mpol_cpp/train/optimizers/saved_tensors.h>

#include <type_traits>

#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {

Tensor SavedTensors::take(const std::string& name) {
  auto node = tensors_.extract(name);
  if (node.empty()) throw FileError(fmt::format("the optimiser's state has no {}", name));
  return node.mapped();
}

template <typename Number>
Number SavedTensors::take_number(const std::string& name) {
  const auto saved = take(name);
  const bool whole = c10::isIntegralType(saved.scalar_type(), /*includeBool=*/false);
  if (saved.dim() != 0 || (std::is_integral_v<Number> ? !whole : !saved.is_floating_point())) {
    throw FileError(fmt::format("the optimiser's state {} is {} of shape {}: it must be one {} number", name,
                                c10::toString(saved.scalar_type()), saved.sizes().vec(),
                                std::is_integral_v<Number> ? "whole" : "real"));
  }
  return saved.item<Number>();
}

template std::int64_t SavedTensors::take_number(const std::string&);
template double SavedTensors::take_number(const std::string&);

void SavedTensors::copy_to(const Tensor& to, const std::string& name) {
  const auto from = take(name);
  if (from.sizes() != to.sizes()) {
    throw FileError(fmt::format("the optimiser's state {} has shape {}, its parameter has shape {}", name, from.sizes().vec(),
                                to.sizes().vec()));
  }
  to.copy_(from);
}

Tensor SavedTensors::take_like(const std::string& name, const Tensor& parameter) {
  auto copy = at::empty_like(parameter.detach());
  copy_to(copy, name);
  return copy;
}

Tensor SavedTensors::take_vector(const std::string& name, std::int64_t elements) {
  const auto vector = take(name);
  if (vector.numel() == elements) return vector;
  throw FileError(
      fmt::format("the optimiser's state {} has {} elements, the parameters have {}", name, vector.numel(), elements));
}

void SavedTensors::check_empty() const {
  if (!tensors_.empty()) throw FileError(fmt::format("the optimiser's state has an unknown {}", tensors_.begin()->first));
}

}  // namespace mpol::detail
