#!/usr/bin/env python3
"""Unresolved sources beside an image: what `mpol image --points auto` finds, and how sure it is.

usage: points.py [--program build/release/bin/mpol] [--folder point_quality] [--only WORD]

24 observations: a spot 0.1" wide, a disc, blobs and a nebula, simulated by `mpol simulate`, and a point source that lies between pixels, of 30, 100, 300 and 1000 times the noise
of a point, at a random place within 1" of the middle; the disc and the nebula with two draws of place and noise. Printed are the points that are found, the flux and the place of the
one nearest to the truth less the truth in their errors, the peak of the residual image over its noise without and with `--points`, and the error of
image and points (after a Gaussian as wide as 1.2 fringes) without and with `--points`, over that of an image of data that have no point. Takes five minutes on two cores. Needs numpy and astropy
(build/test-python/bin/python3 has them).
"""

import numpy as np

from signals import SimulatedCase, measured_rows

spot = ["--rings", "0:0.1:1", "--no-crescent"]
skies = {"spot": spot, "disc": [], **{scene: ["--scene", scene, "--scene-seed", "3"] for scene in ("blobs", "nebula")}}
signals = (30, 100, 300, 1000)
cell, npix, longest = 0.0375, 128, 1600
fringe = 0.2999792458 / 230 / longest * 206264.806
sigma = 1.2 * fringe / np.sqrt(8 * np.log(2)) / cell  # pixels
arcsec = np.pi / 648000


class Case(SimulatedCase):
    def __init__(self, options, sky, signal, draw):
        super().__init__(options, f"{sky}, {signal}, {draw}", ["--cell-size", str(cell), "--npix", str(npix)], sigma)
        self.kind, self.signal, self.draw = sky, signal, draw
        self.random = np.random.default_rng(100 * signal + draw)

    def add_point(self):
        """Adds a source to the data. @return (east, north, flux)"""
        data = dict(np.load(self.data))
        east, north = self.random.uniform(-1, 1, 2)
        flux = self.signal / np.sqrt(data["weight"].astype("f8").sum())
        u, v = data["uu"].astype("f8"), data["vv"].astype("f8")
        if str(data.get("uv_unit", "klambda")) == "klambda":
            u, v = 1e3 * u, 1e3 * v
        data["data"] = (data["data"] + flux * np.exp(-2j * np.pi * (u * east + v * north) * arcsec)).astype(data["data"].dtype)
        np.savez(self.data, **data)
        return east, north, flux

    def blurred_point(self, east, north, flux):
        """What a point shows after the Gaussian, Jy/pixel."""
        y, x = np.mgrid[:npix, :npix]
        squares = (x - (npix // 2 - 1 - east / cell)) ** 2 + (y - (npix // 2 + north / cell)) ** 2
        return flux * np.exp(-squares / (2 * sigma**2)) / (2 * np.pi * sigma**2)

    def error_of(self, truth, *more):
        image, summary = self.image(None, 5000, *more)
        shown = self.blurred(image)
        for source in summary.get("points", {"sources": []})["sources"]:
            shown += self.blurred_point(source["east_arcsec"], source["north_arcsec"], source["flux_jy"][0])
        return np.sqrt(((shown - truth) ** 2).sum()), summary

    def row(self):
        self.simulate(["--cell-size", str(cell), "--npix", str(npix)], "--longest-baseline", str(longest), "--integration", "600",
                      "--system-temperature", "300", "--seed", str(5 + self.draw), *skies[self.kind])
        sky = self.blurred(self.sky)
        alone, _ = self.error_of(sky)
        east, north, flux = self.add_point()
        truth = sky + self.blurred_point(east, north, flux)
        error_without, without = self.error_of(truth)
        error, summary = self.error_of(truth, "--points", "auto")
        peak = lambda s: s["residual"]["peak_jy_per_beam"][0] / s["residual"]["noise_jy_per_beam"][0]
        found = summary["points"]["sources"]
        if not found:
            return self.name, 0, np.nan, np.nan, peak(without), peak(summary), error_without / alone, error / alone
        own = min(found, key=lambda s: np.hypot(s["east_arcsec"] - east, s["north_arcsec"] - north))
        off = np.hypot(own["east_arcsec"] - east, own["north_arcsec"] - north) / np.sqrt(2) / own["place_error_arcsec"]
        return (self.name, len(found), (own["flux_jy"][0] - flux) / own["flux_error_jy"][0], off, peak(without), peak(summary),
                error_without / alone, error / alone)


def main():
    draws = {"disc": 2, "nebula": 2}
    rows = measured_rows(
        __doc__, "point_quality",
        lambda options: [Case(options, sky, signal, draw) for sky in skies for signal in signals for draw in range(draws.get(sky, 1))],
        "sky, point over noise, draw | found | flux off, errors | place off, errors | residual without | with points | error without | with points",
        "{} | {} | {:+.2f} | {:.2f} | {:.1f} | {:.1f} | {:.2f} | {:.2f}")
    flux, place = (np.array([row[i] for row in rows if row[1]]) for i in (2, 3))
    if len(flux):
        print(f"\nroot mean square of flux off {np.sqrt((flux**2).mean()):.2f}, of place off {np.sqrt((place**2).mean()):.2f}, of {len(flux)} sources that were found")


if __name__ == "__main__":
    main()
