"""
The priors of the library: lambda is the first argument. Formulas: losses.
"""
from __future__ import annotations
import mpol_cpp._core
import typing
__all__: list[str] = ['edge_clamp', 'entropy', 'psd', 'sparsity', 'tsv', 'tv_channel', 'tv_image', 'uv_sparsity']
def edge_clamp(weight: typing.SupportsFloat) -> mpol_cpp._core.Term:
    """
    Squares of the pixels at the edges.
    """
def entropy(weight: typing.SupportsFloat, prior_intensity: typing.SupportsFloat = 0.0001, total_flux: typing.SupportsFloat = 10.0) -> mpol_cpp._core.Term:
    """
    Entropy relative to a flat prior in Jy/arcsec^2.
    """
def psd(weight: typing.SupportsFloat, length_scale: typing.SupportsFloat) -> mpol_cpp._core.Term:
    """
    length_scale: arcsec.
    """
def sparsity(weight: typing.SupportsFloat) -> mpol_cpp._core.Term:
    """
    sum |I|.
    """
def tsv(weight: typing.SupportsFloat) -> mpol_cpp._core.Term:
    """
    Total squared variation.
    """
def tv_channel(weight: typing.SupportsFloat, epsilon: typing.SupportsFloat = 1e-10) -> mpol_cpp._core.Term:
    """
    Total variation from channel to channel.
    """
def tv_image(weight: typing.SupportsFloat, epsilon: typing.SupportsFloat = 1e-10) -> mpol_cpp._core.Term:
    """
    Total variation of each channel.
    """
def uv_sparsity(weight: typing.SupportsFloat, q_max: typing.SupportsFloat) -> mpol_cpp._core.Term:
    """
    q_max: wavelengths.
    """
