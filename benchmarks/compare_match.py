#!/usr/bin/env python3
"""Time matching of templates in polar coordinates beside pyxem, on its own example of orientation mapping, and compare the matches.

  pip install pyxem==0.21.0 && python benchmarks/compare_match.py --program build/release/bin/match_benchmark

The frames are those of `pyxem.data.si_grains_simple`, integrated over azimuth by pyxem, repeated `--repeat` times; the library is the
simulation of silicon of its example at `--resolution` degrees. Both match the same polar frames with the same points of all templates,
or with the tenth of them whose profiles suit best: pyxem by `PolarDiffraction2D.get_orientation` (float64, in memory, a first call
that compiles is not counted) and its inner loop alone over the frames, without hyperspy around it; ours by `match_templates`. One
JSON row a case: medians of `--rounds` alternating rounds, by the clock and in seconds of processor (which count what other work on
the cores does not take), and the largest difference of scores relative to the score.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", required=True, help="match_benchmark")
parser.add_argument("--resolution", type=float, default=1, help="of orientations, degrees")
parser.add_argument("--repeat", type=int, default=6)
parser.add_argument("--n-best", type=int, default=5)
parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=5)
args = parser.parse_args()
os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before numpy is there
warnings.filterwarnings("ignore")

import hyperspy.api as hs  # noqa: E402
import numpy as np  # noqa: E402
from diffsims.generators.simulation_generator import SimulationGenerator  # noqa: E402
from orix.sampling import get_sample_reduced_fundamental  # noqa: E402
from pyxem.data import si_grains_simple, si_phase  # noqa: E402
from pyxem.utils import indexation_utils as indexation  # noqa: E402

hs.preferences.General.show_progressbar = False
hs.set_log_level("ERROR")


def example():
    """Polar frames and the simulated library of pyxem's example."""
    signal, phase = si_grains_simple(), si_phase()
    signal.data = np.tile(signal.data, (args.repeat, 1, 1, 1))
    signal.axes_manager.navigation_axes[1].size *= args.repeat
    signal.calibration.center = None
    grid = get_sample_reduced_fundamental(resolution=args.resolution, point_group=phase.point_group)
    generator = SimulationGenerator(200, minimum_intensity=0.05)
    simulation = generator.calculate_diffraction2d(phase, rotation=grid, reciprocal_radius=1, with_direct_beam=False,
                                                   max_excitation_error=0.1)
    return signal.get_azimuthal_integral2d(npt=100, npt_azim=360, inplace=False, mean=True), simulation


def seconds_of(work):
    """By the clock and of all cores, and what the work gave."""
    begin, ticks = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - begin, time.process_time() - ticks), found


polar, simulation = example()
axes = polar.axes_manager.signal_axes
r, theta, intensity = simulation.polar_flatten_simulations(radial_axes=axes[1].axis, azimuthal_axes=axes[0].axis)
frames = polar.data.reshape(-1, *polar.data.shape[-2:])
profiles = indexation._get_integrated_polar_templates(frames.shape[1], r, intensity, True)
normalised = indexation._norm_rows(intensity)

for fraction in (1.0, 0.1):
    def inner():
        return np.stack([indexation._mixed_matching_lib_to_polar(frame, profiles, r, theta, normalised, None, fraction, args.n_best,
                                                                 transpose=True) for frame in frames])

    def whole():
        return polar.get_orientation(simulation, n_best=args.n_best, frac_keep=fraction)

    inner(), whole()
    for dtype in args.dtype:
        theirs, loop, ours = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            np.savez(f"{folder}/in.npz", frames=frames.astype(dtype), r=r, theta=theta, intensity=intensity)
            command = [args.program, f"{folder}/in.npz", args.n_best, fraction, "projection", dtype, args.threads, 7, f"{folder}/out.npz"]
            for _ in range(args.rounds):
                theirs.append(seconds_of(whole)[0])
                seconds, expected = seconds_of(inner)
                loop.append(seconds)
                row = json.loads(subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout)
                ours += zip(row["seconds"][2:], row["processor"][2:])  # the first make pages of memory
            found = dict(np.load(f"{folder}/out.npz"))
        same = (found["index"] == expected[..., 0]) & (found["mirrored"] == (expected[..., 3] < 0))
        row = {"frames": len(frames), "templates": len(r), "fraction": fraction, "dtype": dtype, "threads": args.threads}
        for k, clock in enumerate(("", "_processor")):
            whole_s, loop_s, ours_s = (statistics.median(times[k] for times in of) for of in (theirs, loop, ours))
            row |= {"pyxem" + clock: whole_s, "loop" + clock: loop_s, "ours" + clock: ours_s, "factor" + clock: whole_s / ours_s,
                    "factor_loop" + clock: loop_s / ours_s}
        row |= {"difference": float(np.max(np.abs(found["score"] / expected[..., 1] - 1))), "same_templates": float(same.mean()),
                "load": os.getloadavg()[0]}
        print(json.dumps(row), flush=True)
