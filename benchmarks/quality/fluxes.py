#!/usr/bin/env python3
"""How far flux and image are off, in units of the errors that a run gives them, of random observations: sparse arrays and dense ones,
short tracks and long ones, faint sources and bright ones, of 0.3 to 40 beams.

usage: fluxes.py [--program build/release/bin/mpol] [--folder flux_quality] [--observations 50] [--seed 1] [--grid known|auto]

Needs numpy and astropy (build/test-python/bin/python3 has them). 8 to 43 antennas, baselines of up to 600, 1600 or 4000 m at 230 GHz,
tracks of half an hour to eight hours, system temperatures of 30 to 6000 K (even in their logarithm), skies of `mpol simulate` that fill
a field of 96, 128 or 192 pixels. --grid known: imaged on that grid; auto: on the one that `mpol image` chooses. A row for each
observation that has errors: the sky; the peak over the noise; flux and its error over the sky's; how far the flux is off in its errors;
the part of the pixels (where the sky is brighter than 2 % of its peak, at the beam's resolution, of a known grid) within once and twice
error.fits; the correlation of the two over all pixels; errors' time over training's; how many warnings there were.
"""
import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
from astropy.io import fits

import errors

wavelength, radian = 299792458 / 230e9, 206264.806


class Observation:
    def __init__(self, options, rng, number):
        self.options, self.folder = options, options.folder
        self.antennas, self.longest, self.half_track = (rng.choice(values) for values in ((8, 12, 16, 25, 43), (600, 1600, 4000),
                                                                                         (4, 10, 30, 60)))
        self.cell = round(radian * wavelength / self.longest / (2 * rng.choice([2.5, 3.5])), 4)
        self.npix = int(rng.choice([96, 128, 192]))
        self.scene = str(rng.choice(["nebula", "galaxy", "blobs", "disc"]))
        scene_seed, temperature = rng.integers(1000), np.exp(rng.uniform(np.log(30), np.log(6000)))
        integration = max(60, 480 * self.half_track / max(1, 3300 // (self.antennas * (self.antennas - 1) // 2)))
        field = self.npix * self.cell
        sky = ["--rings", f"{0.1 * field}:{0.08 * field}:1,{0.25 * field}:{0.05 * field}:0.5", "--no-crescent"]
        if self.scene != "disc":
            sky = ["--scene", self.scene, "--scene-seed", scene_seed]
        self.mpol("simulate", "-o", self.folder / "data.npz", "--overwrite", "--antennas", self.antennas, "--longest-baseline", self.longest,
                  "--hour-angle-start", -self.half_track, "--hour-angle-end", self.half_track, "--integration", integration,
                  "--system-temperature", temperature, *sky, "--truth", self.folder / "sky.fits", *self.grid(), "--seed", number)

    def mpol(self, *words):
        subprocess.run([self.options.program, *map(str, words), "--quiet"], check=True)

    def grid(self):
        return ["--cell-size", self.cell, "--npix", self.npix]

    def row(self):
        """None where the run has no errors."""
        out = self.folder / "out"
        self.mpol("image", self.folder / "data.npz", "-o", out, "--overwrite", *(self.grid() if self.options.grid == "known" else []))
        summary = json.loads((out / "summary.json").read_text())
        if "errors" not in summary:
            return None
        sky = fits.getdata(self.folder / "sky.fits").squeeze().astype("f8")
        flux, error = summary["flux_jy"][0] / sky.sum(), summary["errors"]["flux_error_jy"][0] / sky.sum()
        seconds = summary["seconds"]
        return [summary["peak_signal_to_noise"], flux, error, abs(flux - 1) / error, *self.coverage(out, sky),
                seconds["errors"] / seconds["training"], len(summary["warnings"])]

    def coverage(self, out, sky):
        header = fits.getheader(out / "error.fits")
        if self.options.grid != "known" or "BMAJ" not in header:
            return [np.nan] * 3
        errors.cell, errors.npix = self.cell, self.npix
        error, image = (fits.getdata(out / name).squeeze().astype("f8") for name in ("error.fits", "image.fits"))
        sky = errors.restored(sky, header)
        off = np.abs(errors.restored(image, header) - sky)
        source = sky > 0.02 * sky.max()
        return [*((off <= times * error)[source].mean() for times in (1, 2)), np.corrcoef(error.ravel(), off.ravel())[0, 1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("flux_quality"))
    parser.add_argument("--observations", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grid", choices=["known", "auto"], default="known")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    print("| sky | antennas | baselines, m | peak/noise | flux | error | off by | within 1 | within 2 | correlation | time | warnings |")
    print("|" + "---|" * 12)
    rows = []
    for number in range(options.observations):
        observation = Observation(options, rng, number)
        row = observation.row()
        if row is None:
            continue
        rows.append(row)
        print(f"| {observation.scene} | {observation.antennas} | {observation.longest} | {row[0]:.1f} | "
              + " | ".join(f"{value:.2f}" for value in row[1:-1]) + f" | {row[-1]} |", flush=True)
    rows = np.array(rows)
    off = rows[:, 3]
    print("\nflux within once, twice, three times its error: " + ", ".join(f"{(off <= times).mean():.2f}" for times in (1, 2, 3))
          + f"; off by {np.median(off):.2f} errors in the median, {off.max():.1f} at most")
    for name, column in (("within 1", 4), ("within 2", 5), ("correlation", 6), ("time", 7)):
        quantiles = np.nanquantile(rows[:, column], [0.1, 0.25, 0.5])
        print(f"{name}: {quantiles[2]:.2f} in the median, a quarter of the observations below {quantiles[1]:.2f}, a tenth below {quantiles[0]:.2f}")


if __name__ == "__main__":
    main()
