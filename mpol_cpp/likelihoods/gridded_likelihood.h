#pragma once

#include <memory>
#include <optional>
#include <typeinfo>

#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/device/saved_count.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol::losses::detail {
class CellForm;
}

namespace mpol {

struct LikelihoodKind;

/// chi^2 of cell-averaged visibilities, chi^2 = sum_cells W |V - M|^2, by one real FFT pair per image.
///
/// The sampled cells are folded onto the half plane once: the shift between sky and packed order, the flip of the
/// right ascension axis and the Hermitian partner of cells with u < 0 become factors of the data.
///
/// State dict: `data` (ncells) complex, Jy, and `weights` (ncells) real, Jy^-2, in the dtypes of the dataset, at `cells`
/// (ncells) int64, flat indices into the half plane (nchan, npix, npix/2 + 1) of the unshifted transform of the sky image;
/// `nvis` () int64. An image of another dtype is compared with data that are cast to it.
class GriddedLikelihoodImpl : public Module<GriddedLikelihoodImpl>, public Likelihood {
 public:
  /// @param dataset  of float32 or float64 data; it stays as it is and is not kept
  explicit GriddedLikelihoodImpl(const GriddedDataset& dataset);
  void reset() override;

  /// Differentiable to any order; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return typeid(*this) == typeid(GriddedLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return static_cast<double>(data_.size(0)); }
  std::int64_t samples() const override { return data_.size(0); }
  std::int64_t visibilities_count() const override { return nvis_.value(); }
  std::int64_t memory_bytes() const override;
  /// As what it is chosen.
  static LikelihoodKind kind();
  std::string name() const override { return "gridded"; }
  bool is_quadratic() const override { return true; }
  std::optional<CellData> cells() const override;
  bool can_be_recorded() const override { return typeid(*this) == typeid(GriddedLikelihoodImpl); }

  std::int64_t nchan() const { return nchan_; }  ///< of the images

 private:
  void check(const Tensor& sky) const;
  /// Model minus data at the sampled cells, (…, ncells) complex, in the model's dtype.
  Tensor residual(const Tensor& half_plane) const;

  std::int64_t nchan_;
  detail::SavedCount nvis_;
  Tensor cells_, data_, weights_;
  std::shared_ptr<losses::detail::CellForm> form_;
};

TORCH_MODULE(GriddedLikelihood);

}  // namespace mpol
