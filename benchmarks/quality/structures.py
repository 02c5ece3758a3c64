#!/usr/bin/env python3
"""How often `mpol image --test-structure` takes noise for structure, and finds the structure that is there.

usage: structures.py [--program build/release/bin/mpol] [--folder structure_quality] [--seeds 20]

Needs numpy and astropy (build/test-python/bin/python3 has them). Skies of 128 x 0.04" and 0.15 Jy as in lambdas.py: a flat
disc of radius 1.6" with a soft edge, seen with two system temperatures; without structure, and with a clump (sigma 0.06") on it, of 4, 6, 8, 12 and
20 times the noise of the dirty image. Marked is a circle of a beam and a half around: of skies without structure the place within
0.9" where the image, at the beam's resolution and without its mean over a Gaussian of three beams, exceeds the sky most: a look over
the whole image, with a knowledge of the truth that nobody has; of others the clump's place.
Printed is the part that is real at 99 %, `sigma` (median, largest), and the part above 10.8 sigma.
"""
import argparse
import json
from pathlib import Path

import numpy as np
from astropy.io import fits

from errors import restored
from lambdas import Case, cell, npix, read_image, write_skies

y, x = (np.mgrid[:npix, :npix] - npix / 2) * cell  # x to the West
place = (-0.35, 0.3)  # of the clump: East, North


def gaussian(east, north, sigma):
    return np.exp(-((x + east) ** 2 + (y - north) ** 2) / (2 * sigma**2))


class Observed(Case):
    """A disc with a clump of some flux, seen with noise of its own."""

    def __init__(self, program, folder, temperature, flux, seed):
        self.program, self.out, self.data = program, folder / "out", folder / "vis.npz"
        disc = np.exp(-((np.hypot(x, y) / 1.6) ** 16))
        clump = gaussian(*place, 0.06)
        self.truth = 0.15 * disc / disc.sum() + flux * clump / clump.sum()
        header = fits.getheader(folder / "blobs.fits")
        fits.PrimaryHDU(self.truth, header).writeto(folder / "sky.fits", overwrite=True)
        self.mpol("simulate", "-o", self.data, "--overwrite", "--antennas", 25, "--system-temperature", temperature, "--quiet", "--sky",
                  folder / "sky.fits", "--seed", seed)

    def judged(self, east, north, radius):
        self.mpol("image", "-o", self.out, "--resume", "--quiet", "--test-structure", f"circle:{east:.4f},{north:.4f},{radius:.4f}")
        return json.loads((self.out / "summary.json").read_text())["structures"][0]


def beam_of(header):
    return np.sqrt(header["BMAJ"] * header["BMIN"]) * 3600


def smoothed(image, fwhm):
    q2 = np.add.outer(np.fft.fftfreq(npix) ** 2, np.fft.fftfreq(npix) ** 2)
    return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2 * np.pi**2 * (fwhm / 2.3548 / cell) ** 2 * q2)).real


def false_place(case):
    """Where the image has most that the sky has not."""
    header = fits.getheader(case.out / "dirty.fits")
    off = restored(read_image(case.out / "image.fits") - case.truth, header)
    off -= smoothed(off, 3 * beam_of(header))
    off[np.hypot(x, y) > 0.9] = 0
    row, column = np.unravel_index(np.argmax(off), off.shape)
    return -x[row, column], y[row, column], 1.5 * beam_of(header)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("structure_quality"))
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    write_skies(options.folder)
    print("| K, clump over noise | real | sigma, median | largest | above 10.8 |\n|---|---|---|---|---|")
    for temperature in (30, 300):
        noise = None
        for times in (0, 4, 6, 8, 12, 20):
            found = []
            for seed in range(1, options.seeds + 1):
                case = Observed(options.program, options.folder, temperature, times * noise if times else 0, seed)
                summary, _ = case.run("image", "--samples", 0)
                noise = noise or summary["residual"]["noise_jy_per_beam"][0]
                where = false_place(case) if times == 0 else (*place, 1.5 * beam_of(fits.getheader(case.out / "dirty.fits")))
                found.append(case.judged(*where))
            sigmas = np.array([each["sigma"] for each in found])
            print(f"| {temperature}, {times} | {np.mean([each['real'] for each in found]):.2f} | {np.median(sigmas):.1f} | {sigmas.max():.1f} | "
                  f"{np.mean(sigmas > 10.8):.2f} |", flush=True)


if __name__ == "__main__":
    main()
