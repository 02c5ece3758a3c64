#pragma once

#include <concepts>
#include <memory>
#include <string>

#include <torch/nn/module.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

/// A module holder, of this library (GriddedNet) or of one's own (TORCH_MODULE), whose module has an interface.
template <typename Holder, typename Interface>
concept HolderOf = requires(const Holder& holder) {
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<Interface>>;
};

/// A module as the interface that its class has: what Module::clone() gives, whose type does not tell.
/// @param what  names the interface in messages
/// @throws ValueError where its class has not that interface
template <typename Interface>
std::shared_ptr<Interface> with_interface(const std::shared_ptr<torch::nn::Module>& module, const std::string& what) {
  auto found = std::dynamic_pointer_cast<Interface>(module);
  if (module && !found) throw ValueError("a " + module->name() + " is no " + what + ": derive its class from mpol::" + what);
  return found;
}

}  // namespace mpol
