#!/usr/bin/env python3
"""Skies of either sign, as Stokes Q is: what usual weights with `--sign either` cost beside the best of a grid.

usage: signs.py [--program build/release/bin/mpol] [--folder sign_quality] [--only WORD]

16 observations: four skies that `mpol simulate` makes (its disc, blobs, a nebula, a galaxy), each times the cosine of twice an angle
of polarisation (radial for the disc, else a smooth random field), in a field twice as wide, with peaks of 10, 25, 60 and 200 times the noise. Errors and
columns as in signals.py, the flux being that of magnitudes after the Gaussian; `positive`: the error of an image without negative pixels over
the same least one. Takes ten minutes on two cores. Needs numpy and astropy (build/test-python/bin/python3 has them).
"""
import json

import numpy as np
from astropy.io import fits

from signals import SimulatedCase, distance, measured_rows

skies = {"disc": [], **{scene: ["--scene", scene, "--scene-seed", "3"] for scene in ("blobs", "nebula", "galaxy")}}
signals = (10, 25, 60, 200)
grid = [(s, t) for s in (0.3, 0.6, 1, 1.6, 2.5) for t in (0.3, 0.6, 1)]
cell, npix, npix_of_sky, longest = 0.0375, 192, 96, 1600
first_temperature = 1000
fringe = 0.2999792458 / 230 / longest * 206264.806
sigma = 1.2 * fringe / np.sqrt(8 * np.log(2)) / cell  # pixels


def polarised(sky, radial):
    """Stokes Q of a sky that is wholly polarised."""
    y, x = np.mgrid[: len(sky), : len(sky)] - len(sky) / 2
    if radial:
        return sky * np.cos(2 * np.arctan2(x, y))
    frequency = np.add.outer(np.fft.fftfreq(len(sky)) ** 2, np.fft.fftfreq(len(sky)) ** 2)
    noise = np.random.default_rng(4).standard_normal(sky.shape)
    smooth = np.fft.ifft2(np.fft.fft2(noise) * np.exp(-frequency * (2 * np.pi * 8) ** 2 / 2)).real
    return sky * np.cos(2 * np.pi * smooth / smooth.std() / 2)


class Case(SimulatedCase):
    def __init__(self, options, sky, signal):
        super().__init__(options, f"{sky}, {signal}", ["--cell-size", str(cell), "--npix", str(npix)], sigma)
        self.kind, self.sky_options, self.wanted, self.polarised = sky, skies[sky], signal, self.data.replace(".npz", ".q.fits")

    def observe(self, temperature):
        array = ["--longest-baseline", str(longest), "--integration", "600", "--system-temperature", str(temperature), "--seed", "5"]
        sky_grid = ["--cell-size", str(cell), "--npix", str(npix_of_sky)]
        self.simulate(sky_grid, *array, *self.sky_options)
        with fits.open(self.truth) as file:
            file[0].data[:] = polarised(self.sky, self.kind == "disc")
            file.writeto(self.polarised, overwrite=True)
        self.simulate([], *array, "--sky", self.polarised)
        self.sky = np.pad(fits.getdata(self.polarised).squeeze().astype("f8"), (npix - npix_of_sky) // 2)

    def signal(self):
        choices = json.loads(self.mpol("image", self.data, "--sign", "either", "--dry-run", "--json", *self.grid))["choices"]
        return float(next(c["reason"] for c in choices if c["option"] == "sparsity").split("peak of ")[1].split()[0])

    def fit(self, sign, c=None):
        """(error, flux of magnitudes over the sky's, summary)"""
        image, summary = self.image(c, 3000, "--sign", sign)
        blurred, truth = self.blurred(image), self.blurred(self.sky)
        return distance(blurred, truth), abs(blurred).sum() / abs(truth).sum(), summary

    def row(self):
        self.observe(first_temperature)
        self.observe(first_temperature * self.signal() / self.wanted)
        errors = {(s, t): self.fit("either", (s, t, 1.6 * t))[0] for s, t in grid}
        usual, flux, summary = self.fit("either")
        best = min(errors, key=errors.get)
        positive = self.fit("positive")[0]
        return (self.name, best, errors[best], usual / errors[best], flux, summary["lambda"]["sparsity"]["unit_value"],
                positive / errors[best])


def main():
    rows = measured_rows(__doc__, "sign_quality", lambda options: [Case(options, sky, signal) for sky in skies for signal in signals],
                         "sky, peak over noise | best c | its error | default | flux | its c of sparsity | positive",
                         "{} | {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.2f}")
    usual, positive = (np.array([row[i] for row in rows]) for i in (3, 6))
    flux = np.array([row[4] for row in rows])
    print(f"\nusual: median {np.median(usual):.2f}, worst {usual.max():.2f}, flux off by {np.median(abs(flux - 1)):.2f} in the median"
          f"\npositive: median {np.median(positive):.2f}, worst {positive.max():.2f}")


if __name__ == "__main__":
    main()
