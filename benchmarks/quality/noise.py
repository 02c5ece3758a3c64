#!/usr/bin/env python3
"""Which noise the data support: how well images fitted with Gaussian and with Student's noise predict visibilities that they have not seen.

usage: noise.py [--program build/release/bin/mpol] [--folder noise_quality] [--folds 5] [--seed 1] VIS.npz...

Needs numpy (build/test-python/bin/python3 has it). Samples of one channel are dealt to the folds at random; each is predicted by the
image of the others (exact or loose likelihood, the grid and lambda that `mpol image` takes by itself). "clipped" is Gaussian
noise once more, without the samples beyond four robust sigma of a first fit. Of the residuals r of all held-out samples, in sigma of the
weights: the median of |r|, which is 0.6745 for Gaussian noise as the weights say; the mean square, which outliers decide; the mean square of those
within four robust sigma of the Gaussian fit; the mean of Student's -ln L (4 degrees of freedom, its scale from the Gaussian fit's median).
"""
import argparse
import json
import subprocess
from pathlib import Path

import numpy as np

kinds = {
    "gaussian": ["--likelihood", "exact"],
    "student, 4": ["--likelihood", "loose", "--noise", "student"],
    "student, 3": ["--likelihood", "loose", "--noise", "student", "--degrees-of-freedom", "3"],
    "clipped": ["--likelihood", "exact"],
}
of_median = 0.6745  # |r| of Gaussian noise


class Runs:
    def __init__(self, program, folder, grid):
        self.program, self.folder, self.grid = program, folder, grid

    def image(self, arrays, options):
        np.savez(self.folder / "train.npz", **arrays)
        subprocess.run([self.program, "image", self.folder / "train.npz", "-o", self.folder / "image", "--overwrite", "--quiet",
                        *self.grid, *options], check=True)
        summary = json.loads((self.folder / "image" / "summary.json").read_text())
        return sum(summary["flux_jy"]), summary["seconds"]["training"]

    def residuals(self, arrays):
        np.savez(self.folder / "test.npz", **arrays)
        subprocess.run([self.program, "predict", self.folder / "test.npz", self.folder / "image" / "image.fits", "-o",
                        self.folder / "predicted.npz", "--overwrite", "--quiet"], check=True)
        return np.atleast_2d(np.load(self.folder / "predicted.npz")["residual"]) * np.sqrt(np.atleast_2d(arrays["weight"]))


def chosen(arrays, samples):
    count = arrays["uu"].shape[-1]
    return {key: value[..., samples] if value.shape[-1:] == (count,) else value for key, value in arrays.items()}


def parts(residual):
    return np.concatenate([residual.real.ravel(), residual.imag.ravel()])


def sigma_of(residual):
    return np.median(np.abs(parts(residual))) / of_median


def held_out(runs, arrays, fold_of, kind):
    residuals, fluxes, seconds = [], [], []
    for fold in range(fold_of.max() + 1):
        train, test = chosen(arrays, fold_of != fold), chosen(arrays, fold_of == fold)
        if kind == "clipped":
            runs.image(train, kinds[kind])
            residual = runs.residuals(train)
            largest = np.maximum(np.abs(residual.real), np.abs(residual.imag)).max(axis=0)  # of all channels
            train = chosen(train, largest < 4 * sigma_of(residual))
        flux, time = runs.image(train, kinds[kind])
        fluxes.append(flux)
        seconds.append(time)
        residuals.append(runs.residuals(test))
    return parts(np.concatenate(residuals, axis=1)), np.array(fluxes), np.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("noise_quality"))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| data, noise | median of abs(r) | mean square | of the bulk | Student's -ln L | flux, Jy | s |")
    print("|" + "---|" * 7)
    for path in options.data:
        arrays = dict(np.load(path))
        fold_of = np.random.default_rng(options.seed).integers(0, options.folds, arrays["uu"].shape[-1])
        grid = json.loads(subprocess.run([options.program, "inspect", path, "--json"], check=True, capture_output=True).stdout)
        grid = ["--cell-size", str(grid["suggestion"]["cell_size"]), "--npix", str(grid["suggestion"]["npix"])]
        runs = Runs(options.program, options.folder, grid)
        bulk = None
        for kind in kinds:
            residual, fluxes, seconds = held_out(runs, arrays, fold_of, kind)
            if bulk is None:
                sigma = np.median(np.abs(residual)) / of_median
                bulk = np.abs(residual) < 4 * sigma
            student = np.mean(2.5 * np.log1p((residual / sigma) ** 2 / 4))
            print(f"| {path.stem}, {kind} | {np.median(np.abs(residual)):.4f} | {np.mean(residual**2):.4f} "
                  f"| {np.mean(residual[bulk] ** 2):.4f} | {student:.4f} "
                  f"| {fluxes.mean():.4g} ± {fluxes.std():.2g} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
