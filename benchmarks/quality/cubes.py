#!/usr/bin/env python3
"""How right the spectrum of a line cube is: weights of each channel by itself, and one for all channels.

usage: cubes.py [--program build/release/bin/mpol] [--folder cube_quality] [--channels 30] [--npix 256]

A Keplerian disc of 1 Jy at its brightest in 30 channels, of which a third has next to nothing, seen for four hours by 43 antennas at
230 GHz. For `default`, and for `one`, the usual weights of the brightest channel for all:
  dark      mean flux of channels in which the sky has less than 1 % of the brightest channel's, Jy (the sky's own is below 0.004)
  bright    median error of the flux in the others, beside their flux
  at beam   median over channels with 5 % or more: |image - sky|/|sky| after both were convolved with a Gaussian of 0.15"
  seconds   of training
Needs numpy and astropy (build/test-python/bin/python3 has them).
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

field, line, light, width = 9.6, 230.538e9, 299792.458, 0.25  # arcsec, Hz, km/s, km/s


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}\nended with {done.returncode}")
    return done.stdout


def keplerian_cube(velocities, npix):
    """Jy/arcsec^2: a disc of a solar mass at 140 pc, inclined by 40 degrees."""
    cell = field / npix
    north, east = np.mgrid[0:npix, 0:npix] - npix // 2
    north, east = north * cell, -east * cell
    inclination, angle = np.radians(40), np.radians(60)
    along = east * np.sin(angle) + north * np.cos(angle)
    across = (east * np.cos(angle) - north * np.sin(angle)) / np.cos(inclination)
    radius = np.hypot(along, across) + 1e-3
    speed = 29.78 * np.sqrt(1 / (radius * 140)) * np.sin(inclination) * np.cos(np.arctan2(across, along))
    surface = np.exp(-((radius / 1.2) ** 2)) * (radius > 0.1)
    cube = np.stack([surface * np.exp(-0.5 * ((v - speed) / width) ** 2) for v in velocities])
    return cube / (cube.sum((1, 2)).max() * cell**2)


def write_cube(path, cube, frequencies):
    from astropy.io import fits

    npix = cube.shape[-1]
    cell = field / npix / 3600
    header = fits.Header()
    for axis, (kind, value, step, pixel, unit) in enumerate(
        (("RA---SIN", 180.0, -cell, npix // 2 + 1, "deg"), ("DEC--SIN", -24.0, cell, npix // 2 + 1, "deg"),
         ("FREQ", frequencies[0], frequencies[1] - frequencies[0], 1, "Hz")), 1):
        header[f"CTYPE{axis}"], header[f"CRVAL{axis}"], header[f"CDELT{axis}"] = kind, value, step
        header[f"CRPIX{axis}"], header[f"CUNIT{axis}"] = pixel, unit
    header["BUNIT"], header["RESTFRQ"] = "Jy/arcsec^2", line
    fits.writeto(path, cube.astype("f4"), header, overwrite=True)


def read_cube(path, cell):
    from astropy.io import fits

    with fits.open(path) as file:
        cube = file[0].data.astype("f8").reshape(-1, *file[0].data.shape[-2:])
        return cube / cell**2 if "PIX" in file[0].header["BUNIT"].upper() else cube


def at_beam(cube, cell, fwhm=0.15):
    frequencies = np.fft.fftfreq(cube.shape[-1], cell)
    sigma = fwhm / np.sqrt(8 * np.log(2))
    taper = np.exp(-2 * (np.pi * sigma) ** 2 * (frequencies[:, None] ** 2 + frequencies**2))
    return np.fft.ifft2(np.fft.fft2(cube) * taper).real


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("cube_quality"))
    parser.add_argument("--channels", type=int, default=30)
    parser.add_argument("--npix", type=int, default=256)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cell = field / options.npix
    velocities = np.linspace(-6, 6, options.channels)
    frequencies = line * (1 - velocities / light)
    sky = keplerian_cube(velocities, options.npix)
    sky_file, data = options.folder / "sky.fits", options.folder / "line.npz"
    write_cube(sky_file, sky, frequencies)
    run(options.program, "simulate", "--sky", sky_file, "-o", data, "--overwrite", "--seed", 3, "--frequency-ghz",
        ",".join(f"{f / 1e9:.9f}" for f in frequencies), "--channel-width-mhz", 0.318, "--hour-angle-start", -30, "--hour-angle-end", 30)
    grid = ["--cell-size", cell, "--npix", options.npix]
    choices = json.loads(run(options.program, "image", data, "--dry-run", "--json", *grid))["choices"]
    units = {c["option"]: c["reason"].split(" ")[:3:2] for c in choices if c["option"] in ("sparsity", "tv", "tv-slope")}
    # "0.46 to 0.83 U, …": of bright channels sparsity is the most, and the others are the least.
    brightest = {"sparsity": units["sparsity"][-1], "tv": units["tv"][0], "tv-slope": units["tv-slope"][0]}
    methods = {"default": [], "one": [word for name, unit in brightest.items() for word in (f"--{name}", f"{unit}U")]}
    flux = sky.sum((1, 2)) * cell**2
    dark, bright, shown = flux < 0.01, flux >= 0.01, flux >= 0.05
    print("| weights | dark, Jy | bright | at beam | seconds |\n|---|---|---|---|---|")
    for name, words in methods.items():
        out = options.folder / name
        summary = json.loads(run(options.program, "image", data, "-o", out, "--overwrite", "--json", "--quiet", *grid, *words))
        image = read_cube(out / "image.fits", cell)
        found = np.array(summary["flux_jy"])
        errors = np.linalg.norm(at_beam(image, cell) - at_beam(sky, cell), axis=(1, 2)) / np.linalg.norm(at_beam(sky, cell), axis=(1, 2))
        print(f"| {name} | {found[dark].mean():.4f} | {np.median(np.abs(found / flux - 1)[bright]):.3f} | {np.median(errors[shown]):.3f} "
              f"| {summary['seconds']['training']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
