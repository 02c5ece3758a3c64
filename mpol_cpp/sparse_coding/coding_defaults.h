#pragma once

#include <mpol_cpp/solvers/admm.h>

namespace mpol {

/// Sets the penalty and the balance's target that suit an L1 weight lambda where the data have about unit scale.
/// @throws ValueError unless lambda is finite and above 0
/// Source: Wohlberg 2017, who found them by experiments.
void choose_penalty(AdmmOptions& options, double lambda);

}  // namespace mpol
