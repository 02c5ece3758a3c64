"""Images from the visibilities of radio interferometers by regularised maximum likelihood.

The C++ library mpol_cpp in Python: tensors are those of torch, in both directions and with their gradients, and arrays of NumPy
are taken without a copy. docs/python.md shows it beside MPoL.
"""

import torch as _torch  # noqa: F401  loads the libraries that the module below is linked with

from ._core import *  # noqa: F403
from ._core import __version__, losses, terms  # noqa: F401


def SimpleNet(coords, nchan=1, **options):
    """The model of MPoL v0.1's tutorials: a GriddedNet whose base pixels start at 0.05."""
    return GriddedNet(coords, nchan=nchan, start=options.pop("start", 0.05), **options)  # noqa: F405
