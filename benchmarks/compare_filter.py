#!/usr/bin/env python3
"""Compare `mpol filter` with VISIBLE on the same visibilities and template: responses and times.

  pip install --no-deps VISIBLE==0.2.5 && pip install numpy scipy astropy matplotlib vis_sample
  python benchmarks/compare_filter.py --program build/release/bin/mpol --nvis 1000000 --nchan 128

VISIBLE's matched_filter is called as it is, without its noise model of smoothed channels (window_func "none", weights "preserve"). It
reads UVFITS files and measurement sets; its reader is replaced by one that hands over the arrays, and its time is taken without
reading. Ours is `seconds` of summary.json, the same from arrays in memory to the response, and beside it the time of the whole program, with
reading the .npz and drawing the figure. Weights are one number for each visibility, since VISIBLE averages them over channels; it expects
those of the complex noise, half of ours; visibilities as a measurement set holds them, conjugates of ours; and its phase centre lies between
the middle pixels, half a pixel from ours. One JSON row; `difference` is the largest one between the responses, in sigma.
"""

import argparse
import csv
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", required=True, help="mpol")
parser.add_argument("--nvis", type=int, default=100_000)
parser.add_argument("--nchan", type=int, default=128)
parser.add_argument("--width", type=int, default=21, help="channels of the template")
parser.add_argument("--npix", type=int, default=128)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=3, help="of ours; VISIBLE runs once")
parser.add_argument("--without-visible", action="store_true", help="only ours")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)  # before numpy is there
os.environ["MPLBACKEND"] = "Agg"

import numpy as np  # noqa: E402
from astropy.io import fits  # noqa: E402

CELL, REST, SPACING = 0.05, 230.538e9, 244e3  # arcsec, Hz, Hz


def template():
    """A thing that moves over the sky from channel to channel, (width, npix, npix) Jy/pixel."""
    y, x = CELL * (np.mgrid[0:args.npix, 0:args.npix] - args.npix / 2)
    place = np.linspace(-1, 1, args.width)[:, None, None]
    return 1e-3 * np.exp(-((x - place) ** 2 + (y - 0.5 * place ** 2) ** 2) / (2 * 0.25 ** 2))


def write_template(path, cube):
    header = fits.Header()
    cards = {"CTYPE1": "RA---SIN", "CTYPE2": "DEC--SIN", "CTYPE3": "FREQ", "CUNIT1": "deg", "CUNIT2": "deg", "CUNIT3": "Hz",
             "CRPIX1": args.npix / 2, "CRPIX2": args.npix / 2 + 1, "CRPIX3": 1.0, "CRVAL1": 0.0, "CRVAL2": 0.0, "CRVAL3": REST,
             "CDELT1": -CELL / 3600, "CDELT2": CELL / 3600, "CDELT3": SPACING, "BUNIT": "Jy/pixel"}
    header.update(cards)
    fits.writeto(path, cube, header)


def observation():
    """Noise, and u and v in wavelengths that serve all channels."""
    rng = np.random.default_rng(1)
    q, angle = 4e5 * (0.02 + 0.98 * rng.random(args.nvis)), 2 * np.pi * rng.random(args.nvis)
    weight = rng.uniform(50, 150, args.nvis)
    shape = (args.nchan, args.nvis)
    noise = (rng.standard_normal(shape, dtype=np.float32) + 1j * rng.standard_normal(shape, dtype=np.float32)) / np.sqrt(weight)
    return {"uu": q * np.cos(angle), "vv": q * np.sin(angle), "weight": np.broadcast_to(weight.astype("f4"), shape),
            "data": noise.astype("c8"), "frequency": REST + SPACING * np.arange(args.nchan)}


def ours(folder):
    best, whole, out = float("inf"), float("inf"), folder / "out"
    for _ in range(args.rounds):
        begin = time.perf_counter()
        subprocess.run([args.program, "filter", folder / "vis.npz", "--template", folder / "cube.fits", "-o", out, "--overwrite",
                        "--quiet", "--dtype", args.dtype, "--threads", str(args.threads)], check=True)
        whole = min(whole, time.perf_counter() - begin)
        best = min(best, json.loads((out / "summary.json").read_text())["templates"][0]["seconds"])
    with open(out / "filter.csv", newline="") as table:
        return best, whole, np.array([float(row["response_sigma"]) for row in csv.DictReader(table)])


def visible(folder, arrays):
    np.lib.pad = np.pad  # vis_sample knows it by its name in numpy 1
    from VISIBLE import matched_filter as module_function
    import sys
    module = sys.modules[module_function.__module__]
    data = SimpleNamespace(uu=arrays["uu"], vv=arrays["vv"], VV=np.ascontiguousarray(arrays["data"].conj().T.astype("c16")),
                           wgts=0.5 * arrays["weight"][0].astype("f8"), freqs=arrays["frequency"])
    module.import_data_uvfits = lambda path: data
    begin = time.perf_counter()
    found = module_function(filterfile=str(folder / "cube.fits"), datafile="arrays", window_func="none", weights="preserve",
                            interpolate=False, mu_RA=-CELL / 2, mu_DEC=-CELL / 2)
    return time.perf_counter() - begin, np.real(found[1])


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    arrays = observation()
    np.savez(folder / "vis.npz", **arrays)
    write_template(folder / "cube.fits", template())
    seconds, whole, response = ours(folder)
    row = {"nvis": args.nvis, "nchan": args.nchan, "width": args.width, "npix": args.npix, "dtype": args.dtype,
           "threads": args.threads, "mpol_seconds": round(seconds, 3), "program_seconds": round(whole, 2), "response_std": round(float(response.std()), 4)}
    if not args.without_visible:
        others, expected = visible(folder, arrays)
        row |= {"visible_seconds": round(others, 2), "ratio": round(others / seconds, 1),
                "difference": float(np.abs(response - expected).max())}
    print(json.dumps(row))
