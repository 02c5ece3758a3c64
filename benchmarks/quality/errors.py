#!/usr/bin/env python3
"""How true the error maps of `mpol image --samples` are, on the simulated skies of lambdas.py, of which the truth is known.

usage: errors.py [--program build/release/bin/mpol] [--folder error_quality] [--samples 64|usual] [--cases N] [--profiles]

--samples usual: those of a run that asks for none.

Needs numpy and astropy (build/test-python/bin/python3 has them). At the resolution of the restoring beam, over the pixels where the sky
is brighter than 2 % of its peak, and over all: the part of them whose error |image - sky| is below error.fits, and below twice that
(68 and 95 % for Gaussian errors); the correlation of error.fits with |image - sky|; the error of the flux over what the summary says
of it; and the time of the samples over that of the fit.

--profiles: instead, for the disc, the part of the rings (0.1" wide, where the sky's is above 2 % of its peak) whose error
|profile - profile of the sky| is below that of `mpol profile`, and below twice that, and the median error over the peak: of the run, which
is at the resolution of the beam, as the sky is; at the resolution of pixels (`--samples`); and with the errors from scatter.
"""
import argparse
from pathlib import Path

import numpy as np
from astropy.io import fits

from lambdas import Case, cases, cell, npix, read_image, write_skies


def restored(image, header):
    """Jy/pixel to Jy/beam at the resolution of the header's beam."""
    major, minor, angle = (header[key] for key in ("BMAJ", "BMIN", "BPA"))
    sigmas = np.array([major, minor]) * 3600 / cell / np.sqrt(8 * np.log(2))
    north, west = np.fft.fftfreq(npix)[:, None], np.fft.fftfreq(npix)[None, :]
    sine, cosine = np.sin(np.radians(angle)), np.cos(np.radians(angle))
    along, across = cosine * north - sine * west, sine * north + cosine * west
    window = np.exp(-2 * np.pi**2 * ((sigmas[0] * along) ** 2 + (sigmas[1] * across) ** 2))
    return np.fft.ifft2(np.fft.fft2(image) * window).real * 2 * np.pi * sigmas[0] * sigmas[1]


def row_of(case, samples):
    summary, _ = case.run("image", *([] if samples == "usual" else ["--samples", samples]))
    header = fits.getheader(case.out / "error.fits")
    error = read_image(case.out / "error.fits")
    sky, image = restored(case.truth, header), restored(read_image(case.out / "image.fits"), header)
    off = np.abs(image - sky)
    source = sky > 0.02 * sky.max()
    everywhere = np.ones_like(source)
    numbers = []
    for pixels in (source, everywhere):
        numbers += [(off <= times * error)[pixels].mean() for times in (1, 2)]
        numbers.append(np.corrcoef(error[pixels], off[pixels])[0, 1])
    numbers.append(abs(summary["flux_jy"][0] - case.truth.sum()) / summary["errors"]["flux_error_jy"][0])
    numbers.append(summary["seconds"]["errors"] / summary["seconds"]["training"])
    return numbers


def ring_row(case, samples):
    """For errors by samples at the resolution of the beam and of pixels, and by scatter: the part of the rings within once and twice
    the error, and the median error over the sky's peak."""
    folder = case.out.parent

    def rings(image, *more):
        out = folder / "profile"
        case.mpol("profile", image, "-o", out, "--overwrite", "--ring-width", 0.1, "--inclination", 35, "--position-angle", 60,
                  "--quiet", *more)
        return np.genfromtxt(out / "profile.csv", delimiter=",", names=True)

    def at_the_beam(image):
        out = folder / f"{image.stem}_at_the_beam"
        case.mpol("convolve", image, "-o", out, "--overwrite", "--beam-of", case.out / "dirty.fits", "--quiet")
        return out / "convolved.fits"

    case.run("image", *([] if samples == "usual" else ["--samples", samples]), "--keep-samples")
    sky, image, planes = folder / "disc.fits", case.out / "image.fits", case.out / "samples.fits"
    numbers = []
    for own, truth in ((rings(case.out), rings(at_the_beam(sky))), (rings(image, "--samples", planes), rings(sky)),
                       (rings(image), rings(sky))):
        peak = truth["mean"].max()
        shown = truth["mean"] > 0.02 * peak
        off = np.abs(own["mean"] - truth["mean"])[shown]
        numbers += [(off <= times * own["error"][shown]).mean() for times in (1, 2)]
        numbers.append(np.median(own["error"][shown]) / peak)
    return numbers


def print_profiles(options):
    names = [f"{name}{of}" for of in (", beam", "", ", scatter") for name in ("within 1", "within 2", "error/peak")]
    print("| sky, K, noise | " + " | ".join(names) + " |\n|" + "---|" * 10)
    table = []
    for sky, temperature, noise in cases:
        if sky == "disc":
            row = ring_row(Case(options.program, options.folder, sky, temperature, noise), options.samples)
            table.append(row)
            print(f"| {sky}, {temperature}, {noise} | " + " | ".join(f"{value:.2g}" for value in row) + " |", flush=True)
    print("| **mean** | " + " | ".join(f"{np.mean(column):.2g}" for column in zip(*table)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("error_quality"))
    parser.add_argument("--samples", type=lambda text: text if text == "usual" else int(text), default=64)
    parser.add_argument("--cases", type=int, default=len(cases))
    parser.add_argument("--profiles", action="store_true")
    options = parser.parse_args()
    write_skies(options.folder)
    if options.profiles:
        print_profiles(options)
        return
    columns = ["within 1", "within 2", "correlation"]
    print("| sky, K, noise | " + " | ".join(columns) + " | " + " | ".join(f"{name}, all" for name in columns) + " | flux | time |")
    print("|" + "---|" * 9)
    table = []
    for sky, temperature, noise in cases[: options.cases]:
        row = row_of(Case(options.program, options.folder, sky, temperature, noise), options.samples)
        table.append(row)
        print(f"| {sky}, {temperature}, {noise} | " + " | ".join(f"{value:.2f}" for value in row) + " |", flush=True)
    print("| **median** | " + " | ".join(f"{np.median(column):.2f}" for column in zip(*table)) + " |")


if __name__ == "__main__":
    main()
