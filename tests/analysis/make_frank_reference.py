#!/usr/bin/env python3
"""Make tests/data/golden/frank.npz: the profile that frank itself finds in visibilities of a disc of rings.

  python -m venv VENV && VENV/bin/pip install frank==1.2.3 && VENV/bin/python tests/analysis/make_frank_reference.py

The disc is Gaussian rings with gaps, seen at an inclination and off the phase centre. Visibilities are in the convention of this
library; those given to frank have their phases turned to the centre beforehand.
"""

from pathlib import Path

import numpy as np
from frank.geometry import FixedGeometry
from frank.radial_fitters import FrankFitter
from scipy.special import j0

ARCSEC = np.pi / 648000
INCLINATION, POSITION_ANGLE, EAST, NORTH = 40.0, 125.0, 0.05, -0.03  # degrees, arcsec
RADIUS, POINTS, SIGMA, SAMPLES = 1.2, 60, 2e-3, 1200


def brightness(r):
    """Jy/arcsec^2."""
    gaps = 1 - 0.9 * np.exp(-(((r - 0.3) / 0.06) ** 2) / 2) - 0.6 * np.exp(-(((r - 0.6) / 0.08) ** 2) / 2)
    return 0.4 * np.exp(-((r / 0.4) ** 2) / 2) * gaps + 0.1 * np.exp(-(((r - 0.8) / 0.08) ** 2) / 2)


random = np.random.default_rng(1)
length, direction = 10 ** random.uniform(4, 6.3, SAMPLES), random.uniform(0, 2 * np.pi, SAMPLES)
u, v = length * np.cos(direction), length * np.sin(direction)
angle = np.deg2rad(POSITION_ANGLE)
q = np.hypot((u * np.cos(angle) - v * np.sin(angle)) * np.cos(np.deg2rad(INCLINATION)), u * np.sin(angle) + v * np.cos(angle))
r = np.linspace(0, 2, 4001)
rule = np.full(r.size, r[1] / 3) * np.where(np.arange(r.size) % 2, 4, 2)
rule[[0, -1]] = r[1] / 3
real = j0(2 * np.pi * ARCSEC * np.outer(q, r)) @ (2 * np.pi * r * brightness(r) * rule) * np.cos(np.deg2rad(INCLINATION))
centred = real + SIGMA * (random.normal(size=SAMPLES) + 1j * random.normal(size=SAMPLES))
data = centred * np.exp(-2j * np.pi * ARCSEC * (u * EAST + v * NORTH))
weight = np.full(SAMPLES, SIGMA**-2)

fitter = FrankFitter(RADIUS, POINTS, FixedGeometry(INCLINATION, POSITION_ANGLE, 0, 0), alpha=1.05, weights_smooth=1e-4,
                     convergence_failure="raise")
solution = fitter.fit(u, v, centred, weight)
np.savez_compressed(
    Path(__file__).parents[1] / "data" / "golden" / "frank.npz",
    in_u=u, in_v=v, in_data=data, in_weight=weight,
    in_geometry=np.array([INCLINATION, POSITION_ANGLE, EAST, NORTH]), in_radius=np.float64(RADIUS),
    out_radii=solution.r, out_brightness=solution.mean * ARCSEC**2,
    out_error=np.sqrt(np.diag(solution.covariance)) * ARCSEC**2, out_truth=brightness(solution.r))
