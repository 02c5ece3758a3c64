#pragma once

#include <set>
#include <string>
#include <utility>

#include <torch/nn/cloneable.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

namespace mpol {

using torch::Tensor;

namespace detail {
/// Moves and casts the parameters and buffers of one module (not its children) in place: real floating tensors to
/// `dtype`, complex ones to the complex type of the same precision; integers, booleans and `metadata` keep theirs.
void cast_module(torch::nn::Module& module, const std::set<std::string>& metadata, const torch::Device* device,
                 const torch::Dtype* dtype, bool non_blocking);

/// Writes the labels of a module that has them (LabeledState) into an archive of torch::save.
void write_labels(const torch::nn::Module& module, torch::serialize::OutputArchive& archive);
/// @throws FileError where an archive of torch::load has other labels, shapes or dtypes than the module (not its children)
void check_archive(const torch::nn::Module& module, torch::serialize::InputArchive& archive);
}  // namespace detail

/// Base of every module of this library. LibTorch's own `Module::to(dtype)` casts every buffer, complex ones to real
/// and indices to floating point; this one casts what it should and spoils nothing:
///   real floating -> dtype, complex -> the matching complex dtype, bool and integer stay,
///   buffers registered with `register_metadata` (float64 coordinates, kernels) keep their dtype and only move.
/// It holds also when a plain torch::nn::Module contains the module and is moved or cast.
///
/// torch::save also writes what the tensors belong to (LabeledState), and torch::load refuses a state of another grid, shape
/// or dtype, as save_model and load_model do.
template <typename Derived>
class Module : public torch::nn::Cloneable<Derived> {
 public:
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override {
    apply_cast(&device, &dtype, non_blocking);
  }
  void to(torch::Dtype dtype, bool non_blocking = false) override { apply_cast(nullptr, &dtype, non_blocking); }
  void to(torch::Device device, bool non_blocking = false) override { apply_cast(&device, nullptr, non_blocking); }

  void save(torch::serialize::OutputArchive& archive) const override {
    torch::nn::Cloneable<Derived>::save(archive);
    detail::write_labels(*this, archive);
  }
  /// @throws FileError
  void load(torch::serialize::InputArchive& archive) override {
    detail::check_archive(*this, archive);
    torch::nn::Cloneable<Derived>::load(archive);
  }

 protected:
  /// Registers a buffer whose dtype never changes.
  Tensor& register_metadata(const std::string& name, Tensor tensor) {
    metadata_.insert(name);
    return this->register_buffer(name, std::move(tensor));
  }

 private:
  void apply_cast(const torch::Device* device, const torch::Dtype* dtype, bool non_blocking) {
    for (const auto& child : this->children()) {
      if (device != nullptr && dtype != nullptr) child->to(*device, *dtype, non_blocking);
      else if (device != nullptr) child->to(*device, non_blocking);
      else child->to(*dtype, non_blocking);
    }
    detail::cast_module(*this, metadata_, device, dtype, non_blocking);
  }

  std::set<std::string> metadata_;
};

}  // namespace mpol
