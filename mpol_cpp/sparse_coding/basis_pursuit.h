#pragma once

#include <cstdint>
#include <memory>

#include <mpol_cpp/solvers/admm.h>

namespace mpol {

/// Options of basis_pursuit().
struct BasisPursuitOptions : AdmmOptions {
  /// Chooses rho = 50 lambda + 1 and the balance's target 1 + 18.3^(log10 lambda + 1), which suit lambda.
  /// @throws ValueError unless lambda is finite and above 0
  explicit BasisPursuitOptions(double lambda);

  double l1_weight;       ///< lambda
  double l21_weight = 0;  ///< mu, >= 0: signals then share their atoms
};

/// Basis pursuit denoising,  min_x |D x - s|^2 / 2 + lambda |x|_1 + mu |x|_2,1  with vectors of x that run along the signals.
/// The sparse codes are the solver's auxiliary(), (…, 1, natoms, nsignals).
/// @param dictionary  D, (nvalues, natoms)
/// @param signals     s in columns, (…, nvalues, nsignals), of the same dtype and device
/// @throws ShapeError when they do not go together
/// Source: Chen, Donoho & Saunders 1998; BPDN and BPDNJoint of SPORCO (Wohlberg 2017), with its defaults.
std::unique_ptr<Admm> basis_pursuit(const Tensor& dictionary, const Tensor& signals, const BasisPursuitOptions& options);

}  // namespace mpol
