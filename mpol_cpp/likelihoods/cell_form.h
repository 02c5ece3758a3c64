#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include <c10/core/StorageImpl.h>

#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/ops/fused/cpu/cell_chi_squared.h>
#include <mpol_cpp/ops/fused/gpu/gpu_cell_chi_squared.h>

namespace mpol::losses::detail {

/// chi^2 at cells and its gradient by kernels of ours on the CPU or a GPU, for images of float32 and float64. Its tables are made
/// from the data when they are first needed, and again when the data have changed.
class CellForm {
 public:
  /// Whether there are kernels for such images.
  static bool has(const Tensor& sky);

  /// @param data      of as many channels as the images have
  /// @param sky       (…, nchan, npix, npix) on their device
  /// @param gradient  like it, contiguous; overwritten
  /// @return          one value per channel, (…, nchan), float64
  Tensor values_and_gradient(const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient);

 private:
  /// Tells a tensor from others: by its memory, whose name no other memory gets while this is held, and by how often it was
  /// written.
  struct Mark {
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    std::uint32_t version;
    bool operator==(const Mark& other) const { return memory == other.memory && version == other.version; }
  };
  struct Marks {
    Mark cells, data, weights;
    bool operator==(const Marks&) const = default;
  };
  template <typename T>
  using Passes = std::shared_ptr<ops::CellChiSquared<T>>;

  static Mark mark_of(const Tensor& tensor);
  Tensor run_on_gpu(const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient);
  template <typename T>
  Tensor run(Passes<T>& passes, const CellData& data, double cell_area, const Tensor& sky, const Tensor& gradient);

  std::optional<Marks> made_of_;
  Passes<float> single_;
  Passes<double> double_;
  std::map<torch::Dtype, std::unique_ptr<ops::GpuCellChiSquared>> on_gpu_;
};

}  // namespace mpol::losses::detail
