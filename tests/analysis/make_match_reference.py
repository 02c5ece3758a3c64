#!/usr/bin/env python3
"""Make tests/data/golden/pyxem.npz: matches of pyxem's own examples by pyxem's own functions.

  python -m venv VENV && VENV/bin/pip install pyxem==0.21.0 && VENV/bin/python tests/analysis/make_match_reference.py

`si_…`: frames of `pyxem.data.si_grains_simple` integrated over azimuth by pyxem, matched with the simulated library of its example of
orientation mapping (a coarser grid of orientations) by `PolarDiffraction2D.get_orientation`'s function, all templates and a tenth.
`fe_…`: a frame of `fe_multi_phase_grains`, in the polar samples that `image_to_polar` makes, matched by `get_n_best_matches` (image and
templates normalised) and, all angles of one template, by `_match_polar_to_polar_template`.
"""

from pathlib import Path
from types import SimpleNamespace

import hyperspy.api as hs
import numpy as np
import pyxem
from diffsims.generators.simulation_generator import SimulationGenerator
from orix.sampling import get_sample_reduced_fundamental
from pyxem.data import fe_bcc_phase, fe_fcc_phase, fe_multi_phase_grains, si_grains_simple, si_phase
from pyxem.utils import indexation_utils as indexation
from pyxem.utils.polar_transform_utils import _cartesian_positions_to_polar, image_to_polar

hs.preferences.General.show_progressbar = False
assert pyxem.__version__ == "0.21.0"
out = {}


def library(phase, resolution):
    grid = get_sample_reduced_fundamental(resolution=resolution, point_group=phase.point_group)
    return SimulationGenerator(200, minimum_intensity=0.05).calculate_diffraction2d(
        phase, rotation=grid, reciprocal_radius=1, with_direct_beam=False, max_excitation_error=0.1)


def keep_points(name, r, theta, intensity):
    """Places of points in as few bytes as hold them; results are those of the intensities as float32 has them."""
    out.update({f"in_{name}_r": r.astype(np.uint8), f"in_{name}_theta": theta.astype(np.int16), f"in_{name}_intensity": intensity})


# Silicon, through get_orientation.
signal = si_grains_simple()
signal.calibration.center = None
polar = signal.get_azimuthal_integral2d(npt=100, npt_azim=360, inplace=False, mean=True)
axes = polar.axes_manager.signal_axes
simulation = library(si_phase(), 2)
r, theta, intensity = simulation.polar_flatten_simulations(radial_axes=axes[1].axis, azimuthal_axes=axes[0].axis)
intensity = intensity.astype(np.float32)
frames = np.stack([polar.data[place] for place in [(0, 0), (1, 4), (4, 1), (5, 5)]]).astype(np.float32)
keep_points("si", r, theta, intensity)
out["in_si_frames"] = frames  # (frame, r, phi)
normalised = indexation._norm_rows(intensity.astype(float))
profiles = indexation._get_integrated_polar_templates(frames.shape[1], r, intensity.astype(float), True)
for name, fraction in (("all", 1.0), ("tenth", 0.1)):
    out[f"out_si_{name}"] = np.stack([
        indexation._mixed_matching_lib_to_polar(frame.astype(float), profiles, r, theta, normalised, None, fraction, 5, transpose=True)
        for frame in frames])  # (frame, rank, [template, score, shift, 1 or -1])

# That it is what get_orientation gives.
whole = polar.get_orientation(simulation, n_best=1, frac_keep=1.0)
np.testing.assert_allclose(whole.data[0, 0][0, :2], out["out_si_all"][0, 0, :2], rtol=1e-5)

# Iron, in polar samples of the frame itself.
signal = fe_multi_phase_grains()
frame = np.asarray(signal.data[2, 3], dtype=np.float64)
rows, columns = np.indices(frame.shape) - 64
frame[np.hypot(rows, columns) < 8] = 0  # the direct beam, beside which nothing else counts
scale = signal.axes_manager.signal_axes[0].scale  # of a pixel, 1/Å
spots = []
for phase in (fe_bcc_phase(), fe_fcc_phase()):
    for vectors in library(phase, 4).coordinates:
        data = np.asarray(vectors.data)[:, :2] / scale
        if len(data) == 0 or np.hypot(*data.T).min() >= 58:
            continue  # pyxem divides by the length of a template
        spots.append(SimpleNamespace(calibrated_coordinates=np.c_[data, np.zeros(len(data))],
                                     intensities=np.asarray(vectors.intensity, dtype=np.float32).astype(float)))
settings = {"delta_r": 1.0, "delta_theta": 1.0, "max_r": 60}
samples = image_to_polar(frame, **settings)
positions, intensity = indexation._simulations_to_arrays(spots, max_radius=samples.shape[1])
r, theta = _cartesian_positions_to_polar(positions[:, 0], positions[:, 1])
beyond = r >= samples.shape[1]
r[beyond], theta[beyond], intensity[beyond] = 0, 0, 0
keep_points("fe", r, theta, intensity.astype(np.float32))
out["in_fe_samples"] = samples.T.copy()  # (r, phi), float64
index, angle, score, sign = indexation.get_n_best_matches(frame, spots, n_best=8, **settings)
out.update({"out_fe_index": index, "out_fe_angle": angle, "out_fe_score": score, "out_fe_sign": sign})
index, angle, score, sign = indexation.get_n_best_matches(frame, spots, n_best=8, n_keep=20, **settings)
out.update({"out_fe_kept_index": index, "out_fe_kept_score": score})
# get_in_plane_rotation_correlation cuts places of points to whole bins where the others round: its function, with those rounded.
out["out_fe_curve"] = indexation._match_polar_to_polar_template(
    samples / np.linalg.norm(samples), r[5], theta[5], intensity[5] / np.linalg.norm(intensity[5]))

target = Path(__file__).resolve().parents[1] / "data/golden/pyxem.npz"
np.savez_compressed(target, **out)
print(target, target.stat().st_size, {key: value.shape for key, value in out.items()})
