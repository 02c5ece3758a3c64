#!/usr/bin/env python3
"""What the usual weights cost beside the best of a grid, by how far the source stands out of the noise.

usage: signals.py [--program build/release/bin/mpol] [--folder signal_quality] [--only WORD]

64 observations of skies that `mpol simulate` makes (its disc, blobs, a nebula, a galaxy) with arrays, tracks, noise, pixels and fields of several
kinds. The error of an image is the geometric mean of two normalised root mean squares, per pixel and after a Gaussian as wide
as 1.2 fringes of the longest baseline; what is printed is that error over the least one of a grid (c of sparsity 0.1 ... 1, of tv
0.3 ... 1, tv-slope 1.6 times tv), and the flux over the sky's. `usual`: what `mpol image` takes by itself; `fixed`: c = (1, 0.3, 0.5) for all
data, as it did before. Signal: the peak of the dirty image over its noise. One draw of noise each, one thread a fit.
Needs numpy and astropy (build/test-python/bin/python3 has them). Takes ten minutes on two cores.
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

skies = ("disc", "blobs", "nebula", "galaxy")
variations = [(s, t) for s in (0.1, 0.3, 0.6, 1) for t in (0.3, 1)] + [(0.45, 1), (0.8, 1), (0.3, 0.6), (0.6, 0.6), (0.8, 0.6)]
grid = [(s, t, 1.6 * t) for s, t in variations]
fixed = (1, 0.3, 0.5)
hour = ["--hour-angle-start=-7.5", "--hour-angle-end=7.5"]
night = ["--hour-angle-start=-60", "--hour-angle-end=60", "--integration", "1200"]
# name: cell size, npix, longest baseline (m), system temperatures (K), seed of the sky, what else is simulated
observations = {
    "1 h": (0.04, 128, 1600, (30, 300, 2500), 1, ["--antennas", "25", *hour, "--seed", "3"]),
    "8 h": (0.04, 128, 1600, (30, 300, 2500), 1, ["--antennas", "25", *night, "--seed", "3"]),
    "1 h, other skies": (0.04, 128, 1600, (600, 1200, 5000), 9, ["--antennas", "25", *hour, "--seed", "21"]),
    "compact array": (0.06, 96, 800, (100, 1000, 8000), 7, ["--antennas", "43", "--seed", "11"]),
    "narrow field": (0.05, 64, 1600, (200, 2000), 4, ["--antennas", "30", "--seed", "12", "--hour-angle-start=-30", "--hour-angle-end=30"]),
    "wide field": (0.04, 192, 1600, (200, 2000), 5, ["--antennas", "30", "--seed", "13", "--hour-angle-start=-20", "--hour-angle-end=40"]),
}


class SimulatedCase:
    """An observation of a sky that is known, its files, and images of it."""

    def __init__(self, options, name, grid_options, sigma):
        self.options, self.name, self.grid, self.sigma = options, name, grid_options, sigma  # sigma of the beam: pixels
        stem = options.folder / name.replace(", ", "_").replace(" ", "")
        self.data, self.out, self.truth = f"{stem}.npz", f"{stem}.out", f"{stem}.fits"

    def mpol(self, *words):
        # Without a PATH there is no gnuplot, and no time for figures.
        done = subprocess.run([self.options.program, *words], capture_output=True, text=True, env={**os.environ, "PATH": ""})
        if done.returncode:
            sys.exit(f"{self.name}: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def simulate(self, grid_options, *more):
        self.mpol("simulate", "-o", self.data, "--overwrite", "--truth", self.truth, "--quiet", *grid_options, *more)
        self.sky = fits.getdata(self.truth).squeeze().astype("f8")

    def first_choices(self):
        """What `mpol image` takes before it has seen an image: units of each weight, and the peak over the noise."""
        choices = json.loads(self.mpol("image", self.data, "--dry-run", "--json", *self.grid))["choices"]
        reasons = {choice["option"]: choice["reason"] for choice in choices}
        units = [float(reasons[name].split()[0]) for name in ("sparsity", "tv", "tv-slope")]
        return units, float(reasons["sparsity"].split("peak of ")[1].split()[0])

    def observe_peak(self, wanted, temperature):
        """Observes at the system temperature at which the peak is so many times the noise, by what another one shows."""
        self.observe(temperature)
        self.observe(temperature * self.first_choices()[1] / wanted)

    def blurred(self, image):
        q2 = np.add.outer(np.fft.fftfreq(len(image)) ** 2, np.fft.fftfreq(len(image)) ** 2)
        return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2 * np.pi**2 * self.sigma**2 * q2)).real

    def image(self, c=None, epochs=3000, *more):
        """An image with these weights, or the usual ones, and its summary."""
        weights = [] if c is None else [word for name, value in zip(("sparsity", "tv", "tv-slope"), c) for word in (f"--{name}", f"{value:g}U")]
        shutil.rmtree(self.out, ignore_errors=True)
        summary = json.loads(self.mpol("image", self.data, "-o", self.out, "--scatter-check", "off", "--json", "--threads", "1",
                                       "--epochs", str(epochs), *self.grid, *weights, *more))
        return fits.getdata(f"{self.out}/image.fits").squeeze().astype("f8"), summary


def distance(a, b):
    return np.sqrt(((a - b) ** 2).sum() / (b**2).sum())


class Case(SimulatedCase):
    def __init__(self, options, sky, observation, temperature):
        cell, npix, longest, _, seed, more = observations[observation]
        sigma = 1.2 * 0.2999792458 / 230 / longest * 206264.806 / np.sqrt(8 * np.log(2)) / cell
        grid_options = ["--cell-size", str(cell), "--npix", str(npix)]
        super().__init__(options, f"{sky}, {observation}, {temperature} K", grid_options, sigma)
        self.simulate(grid_options, "--scene", sky, "--longest-baseline", str(longest), "--system-temperature", str(temperature), *more,
                      *([] if sky == "disc" else ["--scene-seed", str(seed)]))

    def fit(self, c=None):
        """(error, flux over the sky's, signal) of an image with these weights, or the usual ones."""
        image, summary = self.image(c)
        error = np.sqrt(distance(image, self.sky) * distance(self.blurred(image), self.blurred(self.sky)))
        return error, image.sum() / self.sky.sum(), summary["peak_signal_to_noise"]

    def row(self):
        errors = {c: self.fit(c)[0] for c in grid}
        best = min(errors, key=errors.get)
        usual, flux, signal = self.fit()
        before, flux_before, _ = self.fit(fixed)
        return signal, self.name, best, errors[best], usual / errors[best], flux, before / errors[best], flux_before


def print_summary(rows):
    print("\n| signal | cases | usual: median, worst | flux, median error | fixed: median, worst | flux, median error |\n|" + "---|" * 6)
    for low, high, words in ((0, 12, "below 12"), (12, 60, "12 to 60"), (60, np.inf, "above 60"), (0, np.inf, "all")):
        own = [row for row in rows if low <= row[0] < high]
        if not own:
            continue
        usual, flux, before, flux_before = (np.array([row[i] for row in own]) for i in (4, 5, 6, 7))
        print(f"| {words} | {len(own)} | {np.median(usual):.2f}, {usual.max():.2f} | {np.median(abs(flux - 1)):.3f} | "
              f"{np.median(before):.2f}, {before.max():.2f} | {np.median(abs(flux_before - 1)):.3f} |")


def measured_rows(description, folder, make_cases, header, line):
    """Reads the arguments of a study, and prints a row for each of its cases, as many at a time as there are CPUs. @return the rows"""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol", type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--only", default="", help="cases whose name has this word")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in make_cases(options) if options.only in case.name]
    print(f"| {header} |\n|" + "---|" * (header.count("|") + 1), flush=True)
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(lambda case: case.row(), cases):
            rows.append(row)
            print("| " + line.format(*row) + " |", flush=True)
    return rows


def main():
    rows = measured_rows(
        __doc__, "signal_quality",
        lambda options: [Case(options, sky, name, temperature) for name in observations for sky in skies for temperature in observations[name][3]],
        "signal | case | best c | its error | usual | flux | fixed | flux", "{:.1f} | {} | {} | {:.3f} | {:.2f} | {:.3f} | {:.2f} | {:.3f}")
    print_summary(rows)


if __name__ == "__main__":
    main()
