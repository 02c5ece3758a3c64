#pragma once

#include <cstdint>
#include <string>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// Hands out the tensors of a saved optimizer's state, each of which must be asked for once. Everything throws FileError with the
/// name of the tensor that is not as it must be.
class SavedTensors {
 public:
  explicit SavedTensors(NamedTensors tensors) : tensors_(std::move(tensors)) {}

  bool is_empty() const { return tensors_.empty(); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  Tensor take(const std::string& name);
  /// @return a tensor of no dimension, whole or real as Number is: std::int64_t, double or bool
  template <typename Number>
  Number take_number(const std::string& name);
  /// Copies into a tensor of the same shape.
  void copy_to(const Tensor& to, const std::string& name);
  /// @return a copy with the layout, dtype and device of the parameter
  Tensor take_like(const std::string& name, const Tensor& parameter);
  /// @return a tensor of so many elements, as all parameters together have
  Tensor take_vector(const std::string& name, std::int64_t elements);
  /// Refuses what nobody asked for.
  void check_empty() const;

 private:
  NamedTensors tensors_;
};

}  // namespace mpol::detail
