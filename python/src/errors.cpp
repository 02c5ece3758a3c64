#include "bindings.h"

namespace mpol::python {

void bind_errors(py::module_& module) {
  const auto base = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  base.attr("__doc__") = "Base of all errors of mpol_cpp; the text names the value, the limit and the remedy.";
  const auto also = [&](PyObject* builtin) { return py::make_tuple(base, py::reinterpret_borrow<py::object>(builtin)); };
  py::register_exception<ValueError>(module, "ValueError", also(PyExc_ValueError)).attr("__doc__") =
      "A setting or argument is out of its range.";
  py::register_exception<ShapeError>(module, "ShapeError", also(PyExc_ValueError)).attr("__doc__") =
      "A tensor has not the shape, dtype or orientation that is asked for.";
  py::register_exception<DataError>(module, "DataError", also(PyExc_ValueError)).attr("__doc__") =
      "The data cannot be used: not finite, weights that are not positive, baselines beyond the grid, ...";
  py::register_exception<DeviceError>(module, "DeviceError", base).attr("__doc__") =
      "A device that is not there, or objects on different ones.";
  py::register_exception<FileError>(module, "FileError", also(PyExc_OSError)).attr("__doc__") =
      "A file is missing, unreadable, malformed, or cannot be written.";
  py::register_exception<DivergedError>(module, "DivergedError", also(PyExc_ArithmeticError)).attr("__doc__") =
      "An optimisation left the finite numbers.";
}

}  // namespace mpol::python
