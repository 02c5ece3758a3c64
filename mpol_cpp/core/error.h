#pragma once

#include <stdexcept>
#include <string>

namespace mpol {

/// Base of every exception thrown by mpol_cpp. The message names the offending value, the limit and the remedy.
class Error : public std::runtime_error {
 public:
  /// @param message  what() gives: value, limit and remedy in words
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// A setting or argument is out of its range (a programming or usage error).
class ValueError : public Error {
  using Error::Error;
};

/// A tensor does not have the shape, dtype or orientation that the callee states.
class ShapeError : public Error {
  using Error::Error;
};

/// The data themselves cannot be used: not finite, non-positive weights, baselines beyond the grid, …
class DataError : public Error {
  using Error::Error;
};

/// A device was asked for that is not there, or objects that must share a device do not.
class DeviceError : public Error {
  using Error::Error;
};

/// A file is missing, unreadable, malformed, or cannot be written.
class FileError : public Error {
  using Error::Error;
};

/// An optimisation left the realm of finite numbers.
class DivergedError : public Error {
  using Error::Error;
};

}  // namespace mpol
