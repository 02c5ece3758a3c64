#pragma once

#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/io/cfitsio/fits_handle.h>

namespace mpol::io {

/// Writes a cube (planes, rows, columns), times a scale, into the current image as float32, plane by plane; real, any dtype and
/// device. @param before  planes of the image that come before these. @throws FileError
void write_planes(FitsHandle& file, const torch::Tensor& cube, double scale, std::int64_t before = 0);

}  // namespace mpol::io
