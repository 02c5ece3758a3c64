#pragma once

#include <torch/types.h>

namespace mpol {
class Likelihood;
}

namespace mpol::losses::detail {

/// chi^2 of a likelihood that gives value and gradient together: value_and_gradient() is called at once, and its gradient kept
/// for autograd. Differentiable once.
/// @param sky  (…, nchan, npix, npix)  @param subject  of the error where a second derivative is asked for: "the likelihood of …"
/// @return     one value per problem, (…), in the sky's dtype
at::Tensor chi_squared_with_gradient(const at::Tensor& sky, Likelihood& likelihood, const char* subject);

}  // namespace mpol::losses::detail
