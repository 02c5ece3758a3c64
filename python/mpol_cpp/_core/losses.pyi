"""
The losses of MPoL, for loops written by hand: differentiable, one value for each problem in leading dimensions.
"""
from __future__ import annotations
import mpol_cpp._core
import torch
import typing
__all__: list[str] = ['chi_squared', 'chi_squared_gridded', 'edge_clamp', 'entropy', 'group_sparsity', 'log_likelihood', 'log_likelihood_gridded', 'neg_log_likelihood_avg', 'nll', 'nll_gridded', 'sparsity', 'spectral_smoothness', 'tsv', 'tv_channel', 'tv_image', 'tv_slope', 'wavelets']
def chi_squared(model: torch.Tensor, data: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    sum w |V - M|^2.
    """
def chi_squared_gridded(visibilities: torch.Tensor, dataset: mpol_cpp._core.GriddedDataset) -> torch.Tensor:
    """
    Of a packed cube at the cells.
    """
def edge_clamp(sky_cube: torch.Tensor) -> torch.Tensor:
    """
    Sum of squares of the pixels at the edges.
    """
def entropy(sky_cube: torch.Tensor, prior_intensity: typing.SupportsFloat, total_flux: typing.SupportsFloat = 10.0) -> torch.Tensor:
    """
    (1/zeta) sum I ln(I/p).
    """
def group_sparsity(sky_cube: torch.Tensor, epsilon: typing.SupportsFloat = 1e-10) -> torch.Tensor:
    """
    sum over pixels of the norm of their spectrum.
    """
def log_likelihood(model: torch.Tensor, data: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    -N ln(2 pi) + sum ln w - chi^2 / 2.
    """
def log_likelihood_gridded(visibilities: torch.Tensor, dataset: mpol_cpp._core.GriddedDataset) -> torch.Tensor:
    """
    Of a packed cube at the cells.
    """
def neg_log_likelihood_avg(model: torch.Tensor, data: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    -ln L / (2 N).
    """
def nll(model: torch.Tensor, data: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    chi^2 / (2 N).
    """
def nll_gridded(visibilities: torch.Tensor, dataset: mpol_cpp._core.GriddedDataset) -> torch.Tensor:
    """
    Of a packed cube at the cells.
    """
def sparsity(sky_cube: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """
    sum |I|.
    """
def spectral_smoothness(sky_cube: torch.Tensor) -> torch.Tensor:
    """
    Squared second differences along channels.
    """
def tsv(sky_cube: torch.Tensor) -> torch.Tensor:
    """
    Total squared variation.
    """
def tv_channel(sky_cube: torch.Tensor, epsilon: typing.SupportsFloat = 1e-10) -> torch.Tensor:
    """
    Total variation between neighbouring channels.
    """
def tv_image(sky_cube: torch.Tensor, epsilon: typing.SupportsFloat = 1e-10) -> torch.Tensor:
    """
    Total variation of each channel's image.
    """
def tv_slope(sky_cube: torch.Tensor, epsilon: typing.SupportsFloat = 1e-10) -> torch.Tensor:
    """
    Total variation of second order of each channel's image.
    """
def wavelets(sky_cube: torch.Tensor) -> torch.Tensor:
    """
    sum of |I| in the bases of Dirac and Daubechies 1 to 8.
    """
