#include "bindings.h"

#include <mpol_cpp/core/version.h>
#include <mpol_cpp/device/select.h>

namespace mpol::python {

Tensor tensor_of(const py::object& array) {
  const auto torch = py::module_::import("torch");
  if (py::isinstance(array, torch.attr("Tensor"))) return array.cast<Tensor>();
  return torch.attr("as_tensor")(py::module_::import("numpy").attr("asarray")(array)).cast<Tensor>();
}

torch::Device device_of(const py::object& device) {
  if (py::isinstance<py::str>(device)) {
    const auto name = device.cast<std::string>();
    if (name == "auto" || name == "least-loaded") return select_device(DeviceRequest::parse(name));
  }
  const auto parsed = py::module_::import("torch").attr("device")(device).cast<torch::Device>();
  check_device(parsed);
  return parsed;
}

void load_state(torch::nn::Module& module, const std::map<std::string, Tensor>& state) {
  const torch::NoGradGuard no_grad;
  auto own = module.named_parameters();
  own.update(module.named_buffers());
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) throw ShapeError(fmt::format("load_state_dict: {} is none of the module's tensors", name));
  }
  for (const auto& item : own) {
    const auto found = state.find(item.key());
    if (found == state.end() || found->second.sizes() != item.value().sizes()) {
      throw ShapeError(fmt::format(
          "load_state_dict: {} {}; it must have the shape ({})", item.key(),
          found == state.end() ? "is missing" : fmt::format("has the shape ({})", fmt::join(found->second.sizes(), ", ")),
          fmt::join(item.value().sizes(), ", ")));
    }
  }
  for (auto& item : own) item.value().copy_(state.at(item.key()));
}

ChannelMap channel_map(const Visibilities& visibilities, const std::string& mode) {
  return value_named<ChannelMap (*)(std::int64_t)>(
      "mode", mode, {{"cube", &ChannelMap::cube}, {"continuum", &ChannelMap::continuum}})(visibilities.nchan());
}

}  // namespace mpol::python

PYBIND11_MODULE(_core, module) {
  using namespace mpol::python;
  module.doc() = "Images from the visibilities of radio interferometers by regularised maximum likelihood";
  py::module_::import("torch");  // whose types are used below
  module.attr("__version__") = mpol::version();
  bind_errors(module);
  bind_data(module);
  bind_images(module);
  bind_likelihoods(module);
  bind_fit(module);
  bind_choice(module);
  bind_losses(module);
  bind_files(module);
  module.def(
      "select_device", [](const std::string& request) { return mpol::select_device(mpol::DeviceRequest::parse(request)); },
      py::arg("request") = "auto",
      "The torch.device for `auto`, `cpu`, `cuda`, `cuda:N` or `least-loaded`; says once why `auto` gives the CPU.");
}
