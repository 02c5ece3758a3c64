#!/usr/bin/env python3
"""What the usual weights cost beside the best of a grid where the field is wider than the source, as a grid that nobody gave is.

usage: fields.py [--program build/release/bin/mpol] [--folder field_quality] [--only WORD]

Skies within 3.6" (a star: a Gaussian of half a fringe; one of six fringes; the disc, blobs, nebula and galaxy of `mpol simulate`),
imaged in 8.1", 48 fringes of the longest baseline, at four ratios of the dirty image's peak to its noise. The error of an image
is the normalised root mean square after a Gaussian as wide as 1.2 fringes; what is printed is that error over the least one of a
grid (c of sparsity 0.3 ... 2.2, of tv 0.3 ... 1, tv-slope 1.6 times tv), and the flux over the sky's. `usual`: what `mpol image`
takes by itself; `fixed`: what it takes without --sparsity auto following how much of the field the source fills. One draw of
noise each, one thread a fit. Needs numpy and astropy (build/test-python/bin/python3 has them). Takes a quarter of an hour on two cores.
"""
import numpy as np
from signals import SimulatedCase, distance, measured_rows

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


class Case(SimulatedCase):
    def __init__(self, options, sky, signal):
        super().__init__(options, f"{sky}, {signal}", ["--cell-size", str(cell), "--npix", str(npix)], sigma)
        self.sky_options, self.wanted = skies[sky], signal

    def observe(self, temperature):
        self.simulate(["--cell-size", str(cell), "--npix", str(npix_of_sky)], "--longest-baseline", str(longest), "--integration", "600",
                      "--system-temperature", str(temperature), "--seed", "5", *self.sky_options)
        self.sky = np.pad(self.sky, (npix - npix_of_sky) // 2)

    def fit(self, c=None):
        """(error, flux over the sky's, summary) of an image with these weights, or the usual ones."""
        image, summary = self.image(c, epochs=1500)
        return distance(self.blurred(image), self.blurred(self.sky)), image.sum() / self.sky.sum(), summary

    def row(self):
        self.observe_peak(self.wanted, first_temperature)
        errors = {(s, t): self.fit((s, t, 1.6 * t))[0] for s, t in grid}
        usual, flux, summary = self.fit()
        fixed, flux_fixed, _ = self.fit(self.first_choices()[0])
        best = min(errors, key=errors.get)
        return (self.name, best, errors[best], usual / errors[best], flux, summary["lambda"]["sparsity"]["unit_value"],
                fixed / errors[best], flux_fixed)


def main():
    rows = measured_rows(__doc__, "field_quality", lambda options: [Case(options, sky, signal) for sky in skies for signal in signals],
                         "sky, peak over noise | best c | its error | usual | flux | its c of sparsity | fixed | flux",
                         "{} | {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f}")
    usual, fixed = (np.array([row[i] for row in rows]) for i in (3, 6))
    flux, flux_fixed = (np.array([row[i] for row in rows]) for i in (4, 7))
    print(f"\nusual: median {np.median(usual):.2f}, worst {usual.max():.2f}, flux off by {np.median(abs(flux - 1)):.2f} in the median"
          f"\nfixed: median {np.median(fixed):.2f}, worst {fixed.max():.2f}, flux off by {np.median(abs(flux_fixed - 1)):.2f}")


if __name__ == "__main__":
    main()
