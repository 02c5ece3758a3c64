#!/usr/bin/env python3
"""What `mpol image` makes of faint sources that large scales show at all, if anything does, in fields that they leave all but empty.

usage: faint.py [--program build/release/bin/mpol] [--folder faint_quality] [--only WORD]

The four skies of `mpol simulate`, 3 and 8 fringes of the longest baseline wide, in fields of 48 fringes; their dirty image's peak
is 3.5 and 4.5 times the noise, before that is added. The error of an image is the normalised root mean square after a Gaussian as
wide as 1.2 fringes: 1 of an empty one. `usual`: what `mpol image` takes by itself; `fixed`: c = (0.46, 1, 1.6), the usual weights of faint
data as long as nothing is known of how much of the field the source fills. `below its error`: the share of the flux that lies where the image
is no larger than its error. One draw of noise each, one thread a fit. Needs numpy and
astropy (build/test-python/bin/python3 has them). Takes six minutes on two cores.
"""
import numpy as np
from signals import SimulatedCase, distance, measured_rows

longest, npix = 1000, 288
fringe = 0.2999792458 / 230 / longest * 206264.806
cell = round(fringe / 6, 4)
fixed = (0.46, 1, 1.6)
tracks = {"minutes": ["--hour-angle-start=-0.3", "--hour-angle-end=0.3", "--integration", "60"],
          "two hours": ["--hour-angle-start=-15", "--hour-angle-end=15", "--integration", "360"]}
bright_temperature = 10


class Case(SimulatedCase):
    def __init__(self, options, sky, fringes, signal, track):
        sigma = 1.2 * fringe / np.sqrt(8 * np.log(2)) / cell
        super().__init__(options, f"{sky}, {fringes} fringes, {signal}, {track}", ["--cell-size", str(cell), "--npix", str(npix)], sigma)
        self.scene, self.wanted, self.track = sky, signal, tracks[track]
        self.npix_of_sky = 2 * round(fringes * fringe / cell / 0.6 / 2)

    def observe(self, temperature):
        width = self.npix_of_sky * cell / 3.6  # of the disc, whose rings reach as far as other skies
        rings = ",".join(f"{r * width:.5f}:{w * width:.5f}:{b}" for r, w, b in ((0, 0.2, 0.5), (0.36, 0.15, 1), (0.68, 0.17, 0.6)))
        sky = ["--rings", rings, "--no-crescent"] if self.scene == "disc" else ["--scene", self.scene, "--scene-seed", "5"]
        self.simulate(["--cell-size", str(cell), "--npix", str(self.npix_of_sky)], "--longest-baseline", str(longest), "--seed", "7",
                      "--system-temperature", str(temperature), *self.track, *sky)
        self.sky = np.pad(self.sky, (npix - self.npix_of_sky) // 2)

    def row(self):
        self.observe_peak(self.wanted, bright_temperature)
        usual, summary = self.image()
        before, _ = self.image(fixed)
        found = [(distance(self.blurred(image), self.blurred(self.sky)), image.sum() / self.sky.sum()) for image in (usual, before)]
        return self.name, summary["peak_signal_to_noise"], summary["lambda"]["sparsity"]["unit_value"], *found[0], \
            summary["errors"]["share_below_error"][0], *found[1]


def main():
    cases = [(sky, fringes, signal) for signal in (3.5, 4.5) for fringes in (3, 8) for sky in ("disc", "blobs", "nebula", "galaxy")]
    rows = measured_rows(
        __doc__, "faint_quality",
        lambda options: [Case(options, *case, list(tracks)[i // 2 % 2]) for i, case in enumerate(cases)],
        "sky, size, peak over noise, track | peak with noise | its c of sparsity | usual: error | flux | below its error | fixed: error | flux",
        "{} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f}")
    errors, before = (np.array([row[i] for row in rows]) for i in (3, 6))
    fluxes, fluxes_before = (np.array([row[i] for row in rows]) for i in (4, 7))
    print(f"\nusual: error {np.median(errors):.2f} in the median, {errors.max():.2f} at worst; flux {np.median(fluxes):.2f}, up to {fluxes.max():.2f}"
          f"\nfixed: error {np.median(before):.2f}, {before.max():.2f}; flux {np.median(fluxes_before):.2f}, up to {fluxes_before.max():.2f}")


if __name__ == "__main__":
    main()
