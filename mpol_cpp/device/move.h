#pragma once

#include <array>
#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <torch/data/example.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/fields.h>

namespace torch::optim {
class Optimizer;
}

namespace mpol {

using torch::Tensor;

namespace detail {

/// What is done with each thing that lives on a device. `path` says where it was found.
class LeafVisitor {
 public:
  virtual ~LeafVisitor() = default;
  virtual void tensor(Tensor& tensor, const std::string& path) = 0;
  virtual void module(torch::nn::Module& module, const std::string& path) = 0;
  virtual void optimizer(torch::optim::Optimizer& optimizer, const std::string& path) = 0;
  /// What is put in the place of a module that is held by a pointer; null to leave it, and see module().
  virtual std::shared_ptr<torch::nn::Module> replacement(torch::nn::Module&, const std::string&) { return nullptr; }
};

/// Batches of torch::data loaders.
template <typename Data, typename Target>
auto device_fields(torch::data::Example<Data, Target>& example) {
  return std::tuple(field("data", example.data), field("target", example.target));
}
template <typename Data>
auto device_fields(torch::data::Example<Data, torch::data::example::NoTarget>& example) {
  return std::tuple(field("data", example.data));
}

template <typename T>
concept HasDeviceFields = requires(T& object) {
  device_fields(object);
};
template <typename T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <typename T>
concept PointerLike = requires(T& object) {
  *object;
  object == nullptr;
};
template <typename T>
concept DictionaryItem = requires(T& item) {
  item.key();
  item.value();
};

/// What has no device of its own.
template <typename T>
inline constexpr bool is_plain =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_convertible_v<T, std::string_view> ||
    std::is_same_v<T, std::filesystem::path> || std::is_same_v<T, std::monostate> || std::is_same_v<T, torch::Device>;
template <typename T>
inline constexpr bool not_movable = false;

template <typename T>
inline constexpr bool is_shared_module = false;
template <typename T>
inline constexpr bool is_shared_module<std::shared_ptr<T>> = std::is_base_of_v<torch::nn::Module, T>;

/// What refers to tensors of somebody else, so that its copy would change these.
template <typename T>
inline constexpr bool holds_references = std::is_pointer_v<T> || std::is_reference_v<T>;
template <typename... Each>
inline constexpr bool holds_references<std::tuple<Each...>> = (holds_references<Each> || ...);
template <typename First, typename Second>
inline constexpr bool holds_references<std::pair<First, Second>> = holds_references<First> || holds_references<Second>;

template <typename T>
void visit_leaves(T& object, const std::string& path, LeafVisitor& visitor);

template <typename T>
void visit_field(T& value, const std::string& path, LeafVisitor& visitor) {
  visit_leaves(value, path, visitor);
}
template <typename T>
void visit_field(Field<T>& named, const std::string& path, LeafVisitor& visitor) {
  visit_leaves(named.value, path.substr(0, path.rfind('.') + 1) + std::string(named.name), visitor);
}

template <typename Tuple>
void visit_tuple(Tuple&& fields, const std::string& path, LeafVisitor& visitor) {
  std::size_t index = 0;
  std::apply([&](auto&... each) { (visit_field(each, fmt::format("{}.{}", path, index++), visitor), ...); }, fields);
}

template <typename Range>
void visit_range(Range& range, const std::string& path, LeafVisitor& visitor) {
  std::size_t index = 0;
  for (auto& element : range) {
    if constexpr (DictionaryItem<decltype(element)>) {
      visit_leaves(element.value(), fmt::format("{}['{}']", path, element.key()), visitor);
    } else if constexpr (requires { typename Range::mapped_type; }) {
      if constexpr (fmt::is_formattable<typename Range::key_type>::value) {
        visit_leaves(element.second, fmt::format("{}['{}']", path, element.first), visitor);
      } else {
        visit_leaves(element.second, fmt::format("{}[{}]", path, index), visitor);
      }
    } else {
      visit_leaves(element, fmt::format("{}[{}]", path, index), visitor);
    }
    ++index;
  }
}

/// Calls the visitor for everything in an object that lives on a device.
template <typename T>
void visit_leaves(T& object, const std::string& path, LeafVisitor& visitor) {
  if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor(object, path);
  } else if constexpr (std::is_base_of_v<torch::nn::Module, T>) {
    visitor.module(object, path);
  } else if constexpr (std::is_base_of_v<torch::optim::Optimizer, T>) {
    visitor.optimizer(object, path);
  } else if constexpr (std::is_base_of_v<torch::detail::ModuleHolderIndicator, T>) {
    if (object.is_empty()) return;
    using Held = typename std::remove_cvref_t<decltype(object.ptr())>::element_type;
    if (const auto own = visitor.replacement(*object.ptr(), path)) object = T(std::dynamic_pointer_cast<Held>(own));
    else visitor.module(*object.ptr(), path);
  } else if constexpr (is_shared_module<T>) {
    if (object == nullptr) return;
    if (const auto own = visitor.replacement(*object, path)) object = std::dynamic_pointer_cast<typename T::element_type>(own);
    else visitor.module(*object, path);
  } else if constexpr (HasDeviceFields<T>) {
    visit_tuple(device_fields(object), path, visitor);
  } else if constexpr (is_plain<T>) {
    return;
  } else if constexpr (requires { object.has_value(); }) {
    if (object.has_value()) visit_leaves(*object, path, visitor);
  } else if constexpr (requires { object.valueless_by_exception(); }) {
    std::visit([&](auto& alternative) { visit_leaves(alternative, path, visitor); }, object);
  } else if constexpr (std::ranges::range<T>) {
    if constexpr (!is_plain<std::ranges::range_value_t<T>>) visit_range(object, path, visitor);
  } else if constexpr (TupleLike<T>) {
    visit_tuple(object, path, visitor);
  } else if constexpr (PointerLike<T>) {
    if (object != nullptr) visit_leaves(*object, path, visitor);
  } else {
    static_assert(not_movable<T>, "declare the fields of this struct: auto device_fields(T& object) (mpol_cpp/device/move.h)");
  }
}

std::unique_ptr<LeafVisitor> make_mover(torch::Device device, std::optional<torch::Dtype> dtype);
std::unique_ptr<LeafVisitor> make_copier(torch::Device device);
std::unique_ptr<LeafVisitor> make_tensor_visitor(const std::function<void(const Tensor&, const std::string&)>& function);

/// Collects the devices of tensors.
class DeviceFinder {
 public:
  void add(const Tensor& tensor, const std::string& path);
  /// @throws DeviceError when there are several, ValueError when there is none
  torch::Device found() const;

 private:
  std::vector<std::pair<torch::Device, std::string>> leaves_;
};

}  // namespace detail

/// Moves everything in an object to a device: tensors, modules (datasets and likelihoods among them), optimisers with their
/// state, and, to any depth, std::vector, array, map, optional, tuple, pair, variant and pointers of them, and structs that
/// declare their fields (device/fields.h). What is there already stays the same tensor. Tensors that were one stay one; modules
/// and tensors that require gradients are moved in place, so that optimisers go on with them, and their gradients come along.
/// @param dtype  float32 or float64: real tensors get it, complex ones the complex type of that precision; integers,
///               booleans and the float64 metadata of our modules stay. Without it no dtype changes.
/// @return       the object
/// @throws ValueError for another dtype; DeviceError for an optimiser whose state it does not know
template <typename T>
T& move_to(T& object, torch::Device device, std::optional<torch::Dtype> dtype = std::nullopt) {
  detail::visit_leaves(object, "object", *detail::make_mover(device, dtype));
  return object;
}
/// The same of an object that is handed over, such as the result of a function.
template <typename T>
requires(!std::is_lvalue_reference_v<T>) T
    move_to(T&& object, torch::Device device, std::optional<torch::Dtype> dtype = std::nullopt) {
  detail::visit_leaves(object, "object", *detail::make_mover(device, dtype));
  return std::forward<T>(object);
}

/// Calls a function for every tensor in an object, with its path: "object.model.bcube.base_cube", "object[3]", …: of modules
/// the parameters and buffers, of optimisers the parameters and their state. It sees everything that move_to moves, and may
/// change values in place.
/// @param function  takes (const Tensor&, const std::string& path)
template <typename T, std::invocable<const Tensor&, const std::string&> Function>
void visit_tensors(const T& object, Function&& function) {
  const auto visitor = detail::make_tensor_visitor(std::ref(function));
  detail::visit_leaves(const_cast<T&>(object), "object", *visitor);  // NOLINT(cppcoreguidelines-pro-type-const-cast): reads
}

/// The device of everything in an object.
/// @throws DeviceError that names the leaves when they are on several devices; ValueError when nothing has a device
template <typename T>
torch::Device device_of(const T& object) {
  detail::DeviceFinder finder;
  visit_tensors(object, [&](const Tensor& tensor, const std::string& path) { finder.add(tensor, path); });
  return finder.found();
}

/// A copy of an object on a device; the object itself stays where and as it is. Modules are cloned, wherever they are;
/// tensors that are on the device already are shared with the object, as by Tensor::to. To move the object itself: move_to.
/// @throws ValueError for an optimiser or a module by value, which cannot be copied; DeviceError when the device is not there
template <typename T>
T copy_to(const T& object, torch::Device device) {
  static_assert(!detail::holds_references<T>, "a copy of references would change what they refer to: copy each object");
  T copy(object);
  detail::visit_leaves(copy, "object", *detail::make_copier(device));
  return copy;
}

/// A copy of the object on the CPU: copy_to(object, torch::kCPU). To move the object itself: move_to(object, torch::kCPU).
template <typename T>
T to_host(const T& object) {
  return copy_to(object, torch::kCPU);
}

/// A function of the same arguments that takes copies of them to a device, computes there, and brings a copy of the result back
/// to the host. The arguments stay where they are, modules too.
template <typename Function>
auto on_device(torch::Device device, Function function) {
  return [device, function = std::move(function)](const auto&... arguments) {
    return std::apply(
        [&](auto... own) {
          if constexpr (std::is_void_v<decltype(function(own...))>) function(own...);
          else return to_host(function(own...));
        },
        std::tuple(copy_to(arguments, device)...));
  };
}

}  // namespace mpol
