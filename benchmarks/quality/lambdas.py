#!/usr/bin/env python3
"""What lambda by `auto` and by `mpol crossval` costs beside the best of a grid, on simulated skies of which the truth is known.

usage: lambdas.py [--program build/release/bin/mpol] [--folder lambda_quality] [--cases N] [--scores | --weights]

Needs numpy and astropy (build/test-python/bin/python3 has them). Skies of 128 x 0.04" and 0.15 Jy, 25 antennas, 3300 visibilities at
230 GHz: the disc of `mpol simulate`, two Gaussians with a ring, and a nebula that fills the field. Noise of three system temperatures, and at
some: weights four times too large, Student noise of three degrees of freedom, noise that is correlated along each baseline's track (0.8
from sample to sample). The error of an image is the geometric mean of two normalised root mean squares, per pixel and after a
Gaussian of 0.2"; what is printed is that error over the least one of a grid (c of sparsity 0.1 ... 10, of tv 0.03 ... 9.5, of tv-slope 0 ... 1.6).
--scores: instead the points of that grid, without tv-slope, which SURE, generalized cross-validation, the discrepancy and the L-curve take.
--weights: instead, where weights are wrong or errors shared, what the default finds of the noise, and its error and flux beside those of the
lambda that it would take if it believed the weights.
"""
import argparse
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from astropy.io import fits

npix, cell = 128, 0.04
baselines = 25 * 24 // 2
sparsities = [0.1, 0.316, 1, 3.16, 10]
variations = [0.03, 0.095, 0.3, 0.95, 3, 9.5]
slopes = [0, 0.16, 0.5, 1.6]
fixed = [(1, 0.3, 0.5), (1, 1, 0), (1, 0.3, 0), (0.3, 1, 0), (0.3, 0.3, 0)]
grid_arguments = ["--cell-size", cell, "--npix", npix]
cases = [(sky, temperature, "white") for sky in ("disc", "blobs", "nebula") for temperature in (30, 300, 2500)]
cases += [("disc", 300, "weights x 4"), ("disc", 300, "Student"), ("disc", 300, "correlated"), ("blobs", 300, "correlated"),
          ("nebula", 300, "correlated")]


def skies():
    rng = np.random.default_rng(5)
    y, x = (np.mgrid[:npix, :npix] - npix / 2) * cell

    def gaussian(x0, y0, sigma, height):
        return height * np.exp(-((x - x0) ** 2 + (y - y0) ** 2) / (2 * sigma**2))

    ring = 0.5 * np.exp(-(((np.hypot(x, y + 0.2) - 0.8) / 0.06) ** 2))
    wave_number = np.hypot(*np.meshgrid(np.fft.fftfreq(npix), np.fft.fftfreq(npix)))
    wave_number[0, 0] = 1
    turbulence = np.fft.ifft2(np.fft.fft2(rng.standard_normal((npix, npix))) * wave_number**-1.6).real
    return {"blobs": gaussian(0.5, 0.3, 0.12, 1) + gaussian(-0.6, -0.4, 0.25, 0.6) + ring,
            "nebula": np.exp(1.1 * turbulence / turbulence.std()) * np.exp(-((np.hypot(x, y) / 1.2) ** 4))}


def write_skies(folder):
    folder.mkdir(parents=True, exist_ok=True)
    header = fits.Header({"CTYPE1": "RA---SIN", "CTYPE2": "DEC--SIN", "CDELT1": -cell / 3600, "CDELT2": cell / 3600, "CUNIT1": "deg",
                          "CUNIT2": "deg", "CRPIX1": npix / 2, "CRPIX2": npix / 2 + 1, "CRVAL1": 0.0, "CRVAL2": -24.0,
                          "BUNIT": "Jy/pixel"})
    for name, image in skies().items():
        fits.PrimaryHDU(0.15 * image / image.sum(), header).writeto(folder / f"{name}.fits", overwrite=True)


def read_image(path):
    return fits.getdata(path).squeeze().astype("f8")


def blurred(image):
    sigma = 0.2 / 2.3548 / cell
    q2 = np.add.outer(np.fft.fftfreq(npix) ** 2, np.fft.fftfreq(npix) ** 2)
    return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2 * np.pi**2 * sigma**2 * q2)).real


def error_of(image, truth):
    def distance(a, b):
        return np.sqrt(((a - b) ** 2).sum() / (b**2).sum())

    return np.sqrt(distance(image, truth) * distance(blurred(image), blurred(truth)))


class Case:
    def __init__(self, program, folder, sky, temperature, noise):
        self.program, self.out = program, folder / "out"
        self.data = folder / f"{sky}_{temperature}_{noise.split()[0]}.npz"
        truth = folder / f"{sky}.fits"
        command = ["simulate", "-o", self.data, "--overwrite", "--antennas", 25, "--system-temperature", temperature, "--quiet"]
        command += ["--truth", truth, *grid_arguments] if sky == "disc" else ["--sky", truth]
        if noise in ("white", "weights x 4", "weights / 4"):
            self.mpol(*command, "--seed", 3)
        else:
            self.mpol(*command, "--no-noise")
        self.truth = read_image(truth)
        if noise != "white":
            self.change_noise(noise)

    def change_noise(self, noise):
        arrays = dict(np.load(self.data))
        weight = arrays["weight"]
        rng = np.random.default_rng(7)
        if noise.startswith("weights"):
            arrays["weight"] = 4 * weight if noise == "weights x 4" else weight / 4
        else:
            shape = (weight.size // baselines, baselines)
            draw = (lambda: rng.standard_t(3, shape) / np.sqrt(3)) if noise == "Student" else (lambda: rng.standard_normal(shape))
            values = draw() + 1j * draw()
            if noise == "correlated":
                for i in range(1, len(values)):
                    values[i] = 0.8 * values[i - 1] + 0.6 * values[i]
            arrays["data"] = (arrays["data"] + values.reshape(weight.shape) / np.sqrt(weight)).astype(arrays["data"].dtype)
        np.savez(self.data, **arrays)

    def mpol(self, *arguments):
        run = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{' '.join(map(str, arguments))}: {run.stderr}")
        return run.stdout

    def run(self, verb, *arguments):
        shutil.rmtree(self.out, ignore_errors=True)
        text = self.mpol(verb, self.data, "-o", self.out, *grid_arguments, "--scatter-check", "off", "--json", *arguments)
        return json.loads(text), error_of(read_image(self.out / "image.fits"), self.truth)

    def picks(self):
        """The point of the grid that each score of white noise and each diagnostic takes."""
        grid = [f"{values[0]}U:{values[-1]}U:{len(values)}" for values in (sparsities, variations)]
        summary, _ = self.run("crossval", "--score", "gcv", "--sparsity", grid[0], "--tv", grid[1], "--tv-slope", 0)
        with open(self.out / "scan.csv") as file:
            points = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]

        def sure(point):
            return point["chi_squared"] + 2 * point["degrees_of_freedom"]

        def place(c):
            nearest = [min(values, key=lambda value: abs(np.log(value / own))) for values, own in zip((sparsities, variations), c)]
            return (*nearest, 0)

        chosen = {"SURE": min(points, key=sure), "GCV": min(points, key=lambda point: point["score"])}
        picks = {name: place((point["c_sparsity"], point["c_tv"])) for name, point in chosen.items()}
        for name, key in (("discrepancy", "discrepancy"), ("L-curve", "l_curve_corner")):
            picks[name] = place((summary["crossval"][key]["sparsity"], summary["crossval"][key]["tv"]))
        return picks

    def believing(self):
        """A fit with the lambda that the weights as they are ask for."""
        text = self.mpol("image", self.data, *grid_arguments, "--dry-run", "--json")
        wanted = {choice["option"]: choice["value"] for choice in json.loads(text)["choices"]}
        return self.run("image", *[word for name in ("sparsity", "tv", "tv-slope") for word in (f"--{name}", wanted[name])])

    def error_at(self, c):
        return self.run("image", "--sparsity", f"{c[0]}U", "--tv", f"{c[1]}U", "--tv-slope", f"{c[2]}U" if c[2] else 0)[1]


def text_of(c):
    return f" ({', '.join(f'{value:.2g}' for value in c)})"


def measured(case, least):
    row = [case.run("image")[1] / least] + [case.error_at(c) / least for c in fixed]
    picks = [""] * len(row)
    for split in ("random", "dartboard"):
        summary, error = case.run("crossval", "--split", split)
        row.append(error / least)
        picks.append(text_of([summary["chosen"][name]["unit_value"] for name in ("sparsity", "tv")]))
    return row, picks


def print_weights(options):
    print("| sky, K, noise | noise, by chi^2 | shared | error over that of believed weights | flux | flux with believed weights |\n|" + "---|" * 6)
    ratios = []
    wrong = [(sky, temperature, f"weights {by} 4") for sky, temperature, noise in cases if noise == "white" for by in "x/"]
    for sky, temperature, noise in wrong + [case for case in cases if case[2] == "correlated"]:
        case = Case(options.program, options.folder, sky, temperature, noise)
        summary, error = case.run("image")
        believing, error_before = case.believing()
        found = summary["noise"] or {"of_visibilities": 1, "shared": 1}
        ratios.append(error / error_before)
        fluxes = " | ".join(f"{each['flux_jy'][0] / case.truth.sum():.2f}" for each in (summary, believing))
        print(f"| {sky}, {temperature}, {noise} | {found['of_visibilities']:.2f} | {found['shared']:.2f} | {ratios[-1]:.2f} | {fluxes} |", flush=True)
    print(f"| **median** | | | {np.median(ratios):.2f} | | |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("lambda_quality"))
    parser.add_argument("--cases", type=int, default=len(cases))
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--weights", action="store_true")
    options = parser.parse_args()
    write_skies(options.folder)
    if options.weights:
        print_weights(options)
        return
    names = ["default"] + [f"c = {c}" for c in fixed] + ["cv, random cells", "cv, dartboard"]
    if options.scores:
        names = ["SURE", "GCV", "discrepancy", "L-curve"]
    print("| sky, K, noise | best c | its error | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 3))
    columns = []
    for sky, temperature, noise in cases[: options.cases]:
        case = Case(options.program, options.folder, sky, temperature, noise)
        grid = [(s, t, k) for s in sparsities for t in variations for k in (slopes[:1] if options.scores else slopes)]
        errors = {c: case.error_at(c) for c in grid}
        best = min(errors, key=errors.get)
        if options.scores:
            taken = case.picks()
            row = [errors[taken[name]] / errors[best] for name in names]
            picks = [text_of(taken[name][:2]) for name in names]
        else:
            row, picks = measured(case, errors[best])
        columns.append(row)
        text = " | ".join(f"{value:.2f}{pick}" for value, pick in zip(row, picks))
        print(f"| {sky}, {temperature}, {noise} | {text_of(best[: 2 if options.scores else 3]).strip()} | {errors[best]:.3f} | {text} |", flush=True)
    for name, of in (("median", np.median), ("worst", np.max)):
        print(f"| **{name}** | | | " + " | ".join(f"{of(column):.2f}" for column in zip(*columns)) + " |")


if __name__ == "__main__":
    main()
