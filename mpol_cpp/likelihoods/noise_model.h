#pragma once

#include <string>

namespace mpol {

/// What is compared with a visibility, and how rare large deviations are taken to be.
///
/// With the model V, a visibility d of weight w, and x = w |V - d|^2 (for amplitude: x = w (|V| - |d|)^2), a visibility adds
/// to -2 ln L, relative to a perfect fit:
///
///   gaussian, amplitude   x
///   student               (nu + 2) ln(1 + x / nu)                      nu degrees of freedom
///   huber                 x for x <= k^2, else 2 k sqrt(x) - k^2       k standard deviations of a component
///
/// Student's t is that of the two components together, so that it does not depend on the phase of a visibility.
/// Sources: Lange, Little & Taylor 1989 (multivariate t); Huber 1964.
struct NoiseModel {
  /// The formulas above, by their names.
  enum class Kind {
    gaussian,  ///< as the weights say
    student,   ///< with heavy tails: outliers hardly count
    huber,     ///< linear beyond k: outliers count less
    amplitude  ///< of lengths alone, whatever the phases
  };
  Kind kind = Kind::gaussian;  ///< the formula taken
  double parameter = 0;        ///< nu or k

  static NoiseModel gaussian() { return {}; }  ///< no parameter
  /// @throws ValueError unless degrees_of_freedom > 0 and finite
  static NoiseModel student(double degrees_of_freedom = 4);
  /// @throws ValueError unless threshold > 0 and finite
  static NoiseModel huber(double threshold = 1.345);
  /// Amplitudes alone, whatever the phases; sigma << |d|, or the bias of noise in |d| is fitted too.
  static NoiseModel amplitude() { return {Kind::amplitude, 0}; }
};

std::string to_string(NoiseModel::Kind kind);  ///< as in the formulas above: "gaussian", …

}  // namespace mpol
