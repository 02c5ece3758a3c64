#pragma once

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_cells.h>
#include <mpol_cpp/ops/gpu/device_array.h>

namespace mpol::ops {

/// The tiles that suit images of this size. Higher ones read less twice; lower ones keep more processors busy.
TileKind suitable_tile(const GpuShape& shape);

/// The pieces that a half plane and an image are cut into.
struct GpuPieces {
  std::int64_t of_plane, of_image;
};
GpuPieces pieces_of_tiles(TileKind tile, const GpuShape& shape);

/// Puts the cells of the data, on the device, into the arrays of kernels.
template <typename T>
void set_cells(GpuArrays<T>& arrays, const GpuCells& cells) {
  arrays.cell_images = static_cast<std::int32_t>(cells.cell_of.size(0));
  arrays.cell_of = device_array<const std::int32_t>(cells.cell_of);
  arrays.weight = device_array<const T>(cells.weight);
  arrays.real = device_array<const T>(cells.real);
  arrays.imag = device_array<const T>(cells.imag);
  arrays.constant = device_array<const double>(cells.constant);
}

/// Images that are cut into rows, and half planes into kept columns, whose kernels transform them by themselves.
class GpuRowCut {
 public:
  /// How the rows of these images are cut on a device, in float32 or float64: as `wanted` if a block's memory holds them, or as
  /// suits it. None where they are not, where npix has no plan (LinePlan), or a processor could not hold two blocks of two rows.
  static std::optional<TileKind> kind_for(const GpuShape& shape, torch::Dtype dtype, torch::Device device,
                                          std::optional<TileKind> wanted = {});

  /// @param cells  on the CPU, as gpu_cells and joined_cells give them
  /// @param all    keep every column, with data or not
  GpuRowCut(TileKind kind, const GpuShape& shape, torch::Dtype dtype, torch::Device device, const GpuCells& cells, bool all);

  /// The same tables for another number of images, cut as suits those.
  GpuRowCut for_images(const GpuShape& shape) const;

  TileKind kind() const { return kind_; }
  const GpuCells& cells() const { return columns_.cells; }  ///< in the order of the kept columns, on the device
  std::int64_t columns() const { return columns_.column.numel(); }
  GpuPieces pieces() const;
  std::int64_t memory_bytes() const;  ///< of its tables, without the cells

  /// As kernels see it.
  template <typename T>
  KeptColumns<T> kept() const {
    return {plan_,
            device_array<const ComplexValue<T>>(roots_),
            static_cast<std::int32_t>(columns()),
            static_cast<std::int32_t>(columns_of_block_),
            device_array<const std::int32_t>(columns_.column),
            device_array<const std::int32_t>(columns_.number)};
  }

 private:
  TileKind kind_;
  std::int64_t npix_;
  torch::Dtype dtype_;
  torch::Device device_;
  LinePlan plan_;
  GpuColumns columns_;
  std::int64_t columns_of_block_;
  Tensor roots_;
};

}  // namespace mpol::ops
