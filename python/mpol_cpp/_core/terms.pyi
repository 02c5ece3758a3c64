"""
The priors of the library: lambda is the first argument. Formulas: losses.
"""
from __future__ import annotations
import mpol_cpp._core
import typing
__all__: list[str] = ['edge_clamp', 'entropy', 'group_sparsity', 'psd', 'sparsity', 'spectral_smoothness', 'tsv', 'tv_channel', 'tv_image', 'tv_slope', 'uv_sparsity', 'wavelets']
def edge_clamp(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Square of the pixels on the image's edges.
    """
def entropy(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Entropy relative to a flat prior. prior_intensity in JY_PER_ARCSEC2, usually 0.0001. total_flux in ZETA, usually 10.
    """
def group_sparsity(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Sum over pixels of the norm of their spectra (L2,1): few bright pixels, the same in all channels. epsilon, usually 1e-10.
    """
def psd(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Power spectrum of a Gaussian process; needs --psd-length. length_scale in ARCSEC, which must be given.
    """
def sparsity(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Sum of |I|: few bright pixels; 0 where another LAMBDA is a number.
    """
def spectral_smoothness(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Squared second differences from channel to channel: smooth spectra.
    """
def tsv(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Total squared variation: smooth.
    """
def tv_channel(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Total variation from channel to channel. epsilon, usually 1e-10.
    """
def tv_image(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Total variation: sharp edges, flat inside; 0 where another LAMBDA is a number. epsilon, usually 1e-10.
    """
def tv_slope(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Total variation of slopes: smooth structure without steps; 0 where another LAMBDA is a number. epsilon, usually 1e-10.
    """
def uv_sparsity(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Visibilities beyond --uv-sparsity-q-max. q_max in LAMBDA, which must be given.
    """
def wavelets(weight: typing.SupportsFloat, *args, **kwargs) -> mpol_cpp._core.Term:
    """
    Sum of |I| in the bases of Dirac and Daubechies 1 to 8 together, as SARA of PURIFY: few features of any size.
    """
