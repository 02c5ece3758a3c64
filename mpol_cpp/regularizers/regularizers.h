#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/regularizers/base/expected_power.h>
#include <mpol_cpp/regularizers/base/regularizer.h>
#include <mpol_cpp/regularizers/list.h>

/// All regularizers, each of which is a pair of files and a line in list.h: functions of images or visibility cubes in
/// mpol::losses. Cubes of images are (…, nchan, npix, npix) in sky orientation, Jy/arcsec^2, any floating dtype and device; those
/// of visibilities are packed, complex, Jy. Leading dimensions are independent problems, and each function returns one float64
/// value per problem, (…), differentiable.
/// @throws ShapeError unless the last three dimensions are there
namespace mpol {

/// What is known of a regularizer. @throws ValueError for TermKind::custom
const Regularizer& regularizer_of(TermKind kind);

/// All, in their order.
const std::vector<TermKind>& all_regularizers();

/// Whether the fused step works it out. Not TermKind::custom.
bool is_fused(TermKind kind);

}  // namespace mpol
