#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/models/image_model.h>

namespace mpol {

namespace detail {

/// The state of the CPU's random generator: a copy, and its replacement. @throws FileError for a tensor that is none
Tensor random_state();
void set_random_state(const Tensor& state);

/// The model's image without a gradient, in a place where the fit would not have computed it: the random generator is left as
/// it was, so that a model with a random part goes on as if nothing had happened.
Tensor sky_beside_fit(ImageModel& model);

}  // namespace detail

/// The leading dimensions of the model's image, which count problems. It is computed once for that; the random generator is
/// left as it was. @throws ShapeError unless the image is (…, nchan, npix, npix)
std::vector<std::int64_t> problem_shape(ImageModel& model);

}  // namespace mpol
