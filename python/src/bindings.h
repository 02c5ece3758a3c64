#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/nn/module.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/visibilities.h>

/// The Python module mpol_cpp: names, arguments and errors of the library in Python's words. Tensors are shared with torch of
/// Python, in both directions, and so are their gradients; arrays of NumPy are taken without a copy.
namespace mpol::python {

namespace py = pybind11;
using torch::Tensor;

/// Work that takes long lets other threads of Python go on meanwhile.
using Unlocked = py::call_guard<py::gil_scoped_release>;

/// A tensor as it is, or of an array of NumPy, whose memory it shares, or of what numpy.asarray makes one of: lists are float64,
/// unlike torch's.
Tensor tensor_of(const py::object& array);

/// A device of a torch.device or its name; `auto` is what select_device() gives.
torch::Device device_of(const py::object& device);

/// One of several names. @throws ValueError that lists them
template <typename Value>
Value value_named(const char* what, const std::string& name, const std::vector<std::pair<std::string, Value>>& values) {
  std::string names;
  for (const auto& [known, value] : values) {
    if (known == name) return value;
    names += (names.empty() ? "" : ", ") + known;
  }
  throw ValueError(fmt::format("{}: {}; it must be one of {}", what, name, names));
}

/// `mode`: one image channel for each of the data's, or one of all.
ChannelMap channel_map(const Visibilities& visibilities, const std::string& mode);

/// Copies tensors into the parameters and buffers of a module. @throws ShapeError unless names and shapes are its own
void load_state(torch::nn::Module& module, const std::map<std::string, Tensor>& state);

/// What torch.nn.Module has, of modules that are C++'s.
template <typename Impl, typename... Bases>
void add_module_methods(py::class_<Impl, Bases...>& type) {
  type.def(
      "parameters", [](const Impl& self) { return self.parameters(); },
      "The tensors that an optimizer trains, as in torch.nn.Module.");
  type.def(
      "named_parameters",
      [](const Impl& self) {
        std::map<std::string, Tensor> named;
        for (const auto& item : self.named_parameters()) named.emplace(item.key(), item.value());
        return named;
      },
      "The same by name.");
  type.def(
      "state_dict",
      [](const Impl& self) {
        std::map<std::string, Tensor> state;
        for (const auto& item : self.named_parameters()) state.emplace(item.key(), item.value().detach());
        for (const auto& item : self.named_buffers()) state.emplace(item.key(), item.value().detach());
        return state;
      },
      "Parameters and buffers by name; they share their memory with the module.");
  type.def(
      "load_state_dict", [](Impl& self, const std::map<std::string, Tensor>& state) { load_state(self, state); },
      py::arg("state_dict"), "Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.");
  type.def(
      "to",
      [](const std::shared_ptr<Impl>& self, const py::object& device, const std::optional<at::ScalarType>& dtype) {
        if (!device.is_none()) self->to(device_of(device));
        if (dtype) self->to(*dtype);
        return self;
      },
      py::arg("device") = py::none(), py::arg("dtype") = py::none(), "Moves and casts the module itself, and gives it back.");
  type.def(
      "zero_grad", [](Impl& self) { self.zero_grad(); }, "Forgets the gradients of the parameters.");
}

void bind_errors(py::module_& module);
void bind_data(py::module_& module);
void bind_images(py::module_& module);
void bind_likelihoods(py::module_& module);
void bind_fit(py::module_& module);
void bind_choice(py::module_& module);
void bind_losses(py::module_& module);
void bind_files(py::module_& module);

}  // namespace mpol::python
