#pragma once

#include <memory>
#include <utility>

#include <ATen/core/ivalue.h>

namespace mpol::detail {

/// Holds a share of an object for autograd's graph, whose nodes keep IValues only.
template <typename T>
struct GraphShare : torch::CustomClassHolder {
  explicit GraphShare(std::shared_ptr<T> shared) : object(std::move(shared)) {}
  std::shared_ptr<T> object;
};

/// Makes what a node of autograd's graph keeps of an object (AutogradContext::saved_data).
template <typename T>
c10::IValue keep_in_graph(const std::shared_ptr<T>& object) {
  return c10::IValue::make_capsule(c10::make_intrusive<GraphShare<T>>(object));
}

/// Gives the object that keep_in_graph() of the same T was given.
template <typename T>
std::shared_ptr<T> kept_in_graph(const c10::IValue& kept) {
  return c10::static_intrusive_pointer_cast<GraphShare<T>>(kept.toCapsule())->object;
}

}  // namespace mpol::detail
