#pragma once

#include <mpol_cpp/datasets/gridded_dataset.h>

/// Losses on visibilities. Model visibilities have the shape of the data, or more leading dimensions, which are
/// independent problems: (…, nchan, nvis) against (nchan, nvis) gives (…). Values are float64, differentiable to any
/// order with respect to the model. N is the number of complex visibilities.
/// @throws ShapeError when shapes do not match, DeviceError when devices differ
namespace mpol::losses {

/// chi^2 = sum w |V - M|^2.
/// @param model, data  complex, Jy
/// @param weights      real, Jy^-2, 1/sigma^2 of the real = of the imaginary part
Tensor chi_squared(const Tensor& model, const Tensor& data, const Tensor& weights);

/// chi^2 / (2 N): about 1 for a model that fits data with the right weights (MPoL's r_chi_squared).
Tensor nll(const Tensor& model, const Tensor& data, const Tensor& weights);

/// ln L = -N ln(2 pi) + sum ln w - chi^2 / 2.
Tensor log_likelihood(const Tensor& model, const Tensor& data, const Tensor& weights);

/// -ln L / (2 N).
Tensor neg_log_likelihood_avg(const Tensor& model, const Tensor& data, const Tensor& weights);

/// The same losses of a packed model cube (…, nchan, npix, npix) at the cells of a gridded dataset; N is the number of
/// occupied cells of all channels.
Tensor chi_squared_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset);
Tensor nll_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset);             ///< chi^2 / (2 N)
Tensor log_likelihood_gridded(const Tensor& packed_visibilities, const GriddedDataset& dataset);  ///< ln L

}  // namespace mpol::losses
