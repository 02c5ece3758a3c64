#!/usr/bin/env python3
"""What the usual weights cost beside the best of a grid where the field is wider than the source, as a grid that nobody gave is.

usage: fields.py [--program build/release/bin/mpol] [--folder field_quality] [--only WORD]

Skies within 3.6" (a star: a Gaussian of half a fringe; one of six fringes; the disc, blobs, nebula and galaxy of `mpol simulate`),
imaged in 8.1", 48 fringes of the longest baseline, at four ratios of the dirty image's peak to its noise. The error of an image
is the normalised root mean square after a Gaussian as wide as 1.2 fringes; what is printed is that error over the least one of a
grid (c of sparsity 0.3 ... 2.2, of tv 0.3 ... 1, tv-slope 1.6 times tv), and the flux over the sky's. `usual`: what `mpol image`
takes by itself; `fixed`: what it takes without --sparsity auto following how much of the field the source fills. One draw of
noise each, one thread a fit. Needs numpy and astropy (build/test-python/bin/python3 has them). Takes five minutes on two cores.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from astropy.io import fits

star, gaussian = ["--rings", "0:0.08:1", "--no-crescent"], ["--rings", "0:1:1", "--no-crescent", "--inclination", "0"]
skies = {
    "star": [*star, "--offset-east", "0.33", "--offset-north", "-0.41"],
    "gaussian": gaussian,
    "disc": [],
    **{scene: ["--scene", scene, "--scene-seed", "3"] for scene in ("blobs", "nebula", "galaxy")},
}
signals = (6, 12, 25, 60)
grid = [(s, t) for s in (0.3, 0.6, 1) for t in (0.3, 0.6, 1)] + [(s, t) for s in (1.5, 2.2) for t in (0.3, 0.6)]
cell, npix, npix_of_sky, longest = 0.0375, 216, 96, 1600
first_temperature = 1000
fringe = 0.2999792458 / 230 / longest * 206264.806
sigma = 1.2 * fringe / np.sqrt(8 * np.log(2)) / cell  # pixels


class Case:
    def __init__(self, options, sky, signal):
        self.options, self.name = options, f"{sky}, {signal}"
        self.sky_options, self.wanted = skies[sky], signal
        stem = options.folder / f"{sky}_{signal}"
        self.data, self.out, self.truth = f"{stem}.npz", f"{stem}.out", f"{stem}.fits"

    def mpol(self, *words):
        # Without a PATH there is no gnuplot, and no time for figures.
        done = subprocess.run([self.options.program, *words], capture_output=True, text=True, env={**os.environ, "PATH": ""})
        if done.returncode:
            sys.exit(f"{self.name}: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def simulate(self, temperature):
        self.mpol("simulate", "-o", self.data, "--overwrite", "--truth", self.truth, "--cell-size", str(cell), "--npix", str(npix_of_sky),
                  "--longest-baseline", str(longest), "--integration", "600", "--system-temperature", str(temperature), "--seed", "5",
                  "--quiet", *self.sky_options)
        sky = fits.getdata(self.truth).squeeze().astype("f8")
        self.sky = np.pad(sky, (npix - npix_of_sky) // 2)

    def blurred(self, image):
        q2 = np.add.outer(np.fft.fftfreq(npix) ** 2, np.fft.fftfreq(npix) ** 2)
        return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2 * np.pi**2 * sigma**2 * q2)).real

    def fit(self, c=None):
        """(error, flux over the sky's, summary) of an image with these weights, or the usual ones."""
        weights = []
        if c is not None:
            for name, value in (("sparsity", c[0]), ("tv", c[1]), ("tv-slope", c[2] if len(c) > 2 else 1.6 * c[1])):
                weights += [f"--{name}", f"{value:g}U"]
        shutil.rmtree(self.out, ignore_errors=True)
        summary = json.loads(self.mpol("image", self.data, "-o", self.out, "--scatter-check", "off", "--json", "--threads", "1",
                                       "--epochs", "1500", "--cell-size", str(cell), "--npix", str(npix), *weights))
        image = fits.getdata(f"{self.out}/image.fits").squeeze().astype("f8")
        truth = self.blurred(self.sky)
        error = np.sqrt(((self.blurred(image) - truth) ** 2).sum() / (truth**2).sum())
        return error, image.sum() / self.sky.sum(), summary

    def row(self):
        self.simulate(first_temperature)
        choices = json.loads(self.mpol("image", self.data, "--dry-run", "--json", "--cell-size", str(cell), "--npix",
                                       str(npix)))["choices"]
        reason = next(choice["reason"] for choice in choices if choice["option"] == "sparsity")
        self.simulate(first_temperature * float(reason.split("peak of ")[1].split()[0]) / self.wanted)
        errors = {c: self.fit(c)[0] for c in grid}
        usual, flux, summary = self.fit()
        choices = json.loads(self.mpol("image", self.data, "--dry-run", "--json", "--cell-size", str(cell), "--npix",
                                       str(npix)))["choices"]
        units = [float(choice["reason"].split()[0]) for name in ("sparsity", "tv", "tv-slope") for choice in choices
                 if choice["option"] == name]
        fixed, flux_fixed, _ = self.fit(units)
        best = min(errors, key=errors.get)
        return (self.name, best, errors[best], usual / errors[best], flux, summary["lambda"]["sparsity"]["unit_value"],
                fixed / errors[best], flux_fixed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol", type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--folder", type=Path, default=Path("field_quality"))
    parser.add_argument("--only", default="", help="cases whose name has this word")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [Case(options, sky, signal) for sky in skies for signal in signals]
    cases = [case for case in cases if options.only in case.name]
    print("| sky, peak over noise | best c | its error | usual | flux | its c of sparsity | fixed | flux |\n|" + "---|" * 8, flush=True)
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(Case.row, cases):
            rows.append(row)
            print("| {} | {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |".format(*row), flush=True)
    usual, fixed = (np.array([row[i] for row in rows]) for i in (3, 6))
    flux, flux_fixed = (np.array([row[i] for row in rows]) for i in (4, 7))
    print(f"\nusual: median {np.median(usual):.2f}, worst {usual.max():.2f}, flux off by {np.median(abs(flux - 1)):.2f} in the median"
          f"\nfixed: median {np.median(fixed):.2f}, worst {fixed.max():.2f}, flux off by {np.median(abs(flux_fixed - 1)):.2f}")


if __name__ == "__main__":
    main()
