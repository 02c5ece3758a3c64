#!/usr/bin/env python3
"""Time azimuthal integration of a stack of frames beside pyxem, which splits pixels between bins by area, too.

  pip install pyxem==0.21.0 && python benchmarks/compare_pyxem.py --program build/release/bin/polar_benchmark

Both sum float32 frames over the same bins of radius and azimuth, in turn; pyxem compiles its functions in a first call that is
not counted. pyxem makes the parts of pixels anew in each call, ours once for an operator: the row has our time with and without.
One JSON row: the least seconds of `--rounds` rounds.
"""

import argparse
import json
import os
import subprocess
import time
import warnings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", required=True, help="polar_benchmark")
parser.add_argument("--npix", type=int, default=512)
parser.add_argument("--frames", type=int, default=1000)
parser.add_argument("--nr", type=int, default=100)
parser.add_argument("--nphi", type=int, default=360)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=3)
args = parser.parse_args()
os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before numpy is there
warnings.filterwarnings("ignore")

import hyperspy.api as hs  # noqa: E402
import numpy as np  # noqa: E402
from pyxem.signals import Diffraction2D  # noqa: E402

hs.preferences.General.show_progressbar = False


def integrate(frames):
    signal = Diffraction2D(frames)
    signal.calibration.center = None
    signal.calibration.scale = 1.0
    begin = time.perf_counter()
    signal.get_azimuthal_integral2d(npt=args.nr, npt_azim=args.nphi, radial_range=(0, args.npix / 2), inplace=False, mean=False)
    return time.perf_counter() - begin


stack = np.random.default_rng(1).random((args.frames, args.npix, args.npix), dtype=np.float32)
integrate(stack[:2])
theirs, setup, sums = [], [], []
for _ in range(args.rounds):
    theirs.append(integrate(stack))
    numbers = [args.npix, args.frames, args.nr, args.nphi, args.threads, 1]
    row = json.loads(subprocess.run([args.program, *map(str, numbers)], check=True, capture_output=True, text=True).stdout)
    setup += row["setup"]
    sums += row["sums"]
print(json.dumps({"pyxem": min(theirs), "ours": min(setup) + min(sums), "ours_without_setup": min(sums),
                  "factor": min(theirs) / (min(setup) + min(sums)), "load": os.getloadavg()[0]}))
