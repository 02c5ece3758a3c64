#!/usr/bin/env python3
"""How near images come to skies of which the truth is known: converged fits, 500 steps of Adam, and CLEAN.

usage: images.py [--program build/release/bin/mpol] [--folder image_quality] [--only WORD] [--methods NAME,…] [--npix 128]

Skies of 5.12" and 0.15 Jy that `mpol simulate` makes: its disc, blobs, a turbulent nebula, a galaxy; 25 antennas at 230 GHz, one hour and
eight hours; system temperatures of 30, 300 and 2500 K. For each method and case:
  dB        20 log10(|sky| / |image - sky|) over the pixels
  at beam   |image - sky| / |sky| after both were convolved with a Gaussian of 0.2"
  flux      image over sky
  chi2      reduced chi squared of all visibilities
  seconds   of wall clock, the whole command
Methods: `default` (sparsity, total variation of the image and of its slopes, weights by the noise), `cv` (two of the weights by
cross-validation), `tv` (sparsity and total variation alone), `wavelets` (SARA), `adam-500` (500 steps from MPoL's start, sparsity 1U and
tv 0.3U), and, over the cases, by how many dB each method is above `adam-500` (median, worst). WSClean (multiscale, Briggs 0, mask by itself) takes
part where the programs `wsclean` and the Python package `casacore` are there; its pixels are those of the restored image, its values at
the beam those of its model.
Needs numpy and astropy (build/test-python/bin/python3 has them; --python-casacore names a Python that has casacore's package).
"""
import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

field = 5.12
beam = 0.2
tracks = {"1 h": (-7.5, 7.5, 300), "8 h": (-60, 60, 1200)}
skies = ("disc", "blobs", "nebula", "galaxy")
temperatures = (30, 300, 2500)
methods = {
    "default": [],
    "cv": ["--sparsity", "cv", "--tv", "cv"],
    "tv": ["--sparsity", "1U", "--tv", "1U"],
    "wavelets": ["--wavelets", "auto"],
    "adam-500": ["--optimizer", "adam", "--epochs", 500, "--start", "base:-3", "--sparsity", "1U", "--tv", "0.3U"],
}


def run(command):
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nended with {done.returncode}")
    return done.stdout, time.monotonic() - begin


def read_image(path, npix):
    """Jy/arcsec^2."""
    from astropy.io import fits  # not there where --write-set runs

    with fits.open(path) as file:
        image, header = file[0].data.squeeze().astype("f8"), file[0].header
    cell = field / npix
    if header["BUNIT"].lower() == "jy/beam":
        return image / (np.pi / (4 * np.log(2)) * header["BMAJ"] * header["BMIN"] * 3600**2)
    return image / cell**2 if header["BUNIT"].lower() == "jy/pixel" else image


def blurred(image):
    sigma = beam / np.sqrt(8 * np.log(2)) * len(image) / field
    q2 = np.add.outer(np.fft.fftfreq(len(image)) ** 2, np.fft.fftfreq(len(image)) ** 2)
    return np.fft.ifft2(np.fft.fft2(image) * np.exp(-2 * np.pi**2 * sigma**2 * q2)).real


def distance(image, sky):
    return np.sqrt(((image - sky) ** 2).sum() / (sky**2).sum())


class Case:
    def __init__(self, options, sky, track, temperature):
        self.options, self.name = options, f"{sky}, {track}, {temperature} K"
        self.data = options.folder / f"{sky}_{track[0]}h_{temperature}.npz"
        self.out = options.folder / "out"
        truth = options.folder / f"{sky}.fits"
        begin, end, step = tracks[track]
        run([options.program, "simulate", "-o", self.data, "--overwrite", "--truth", truth, "--scene", sky, "--antennas", 25,
             "--system-temperature", temperature, "--hour-angle-start", begin, "--hour-angle-end", end, "--integration", step,
             "--seed", 3, "--quiet", *self.grid(), *([] if sky == "disc" else ["--scene-seed", 1])])
        self.sky = read_image(truth, options.npix)

    def grid(self):
        return ["--cell-size", field / self.options.npix, "--npix", self.options.npix]

    def values(self, pixels, smooth, chi2, seconds):
        return {"dB": -20 * np.log10(distance(pixels, self.sky)), "at beam": distance(blurred(smooth), blurred(self.sky)),
                "flux": smooth.sum() / self.sky.sum(), "chi2": chi2, "seconds": seconds}

    def mpol(self, arguments):
        shutil.rmtree(self.out, ignore_errors=True)
        text, seconds = run([self.options.program, "image", self.data, "-o", self.out, "--scatter-check", "off", "--json",
                             *self.grid(), *arguments])
        image = read_image(self.out / "image.fits", self.options.npix)
        return self.values(image, image, json.loads(text).get("reduced_chi_squared", float("nan")), seconds)

    def wsclean(self):
        measurement_set = self.options.folder / "out.ms"
        shutil.rmtree(measurement_set, ignore_errors=True)
        run([self.options.python_casacore, __file__, "--write-set", self.data, measurement_set])
        name = self.options.folder / "wsclean"
        cell = field / self.options.npix
        _, seconds = run(["wsclean", "-quiet", "-no-update-model-required", "-pol", "I", "-multiscale", "-niter", 1000000, "-mgain", 0.8,
                          "-auto-mask", 3, "-auto-threshold", 1, "-weight", "briggs", 0, "-size", self.options.npix, self.options.npix,
                          "-scale", f"{cell}asec", "-padding", 2, "-name", name, measurement_set])
        restored, model = (read_image(f"{name}-{part}.fits", self.options.npix) for part in ("image", "model"))
        # WSClean has the phase centre one column further left than mpol.
        restored, model = (np.roll(image, -1, axis=1) for image in (restored, model))
        return self.values(restored, model, float("nan"), seconds)


def write_set(data, path):
    """A measurement set of the visibilities of an npz, one row each: run by a Python that has casacore's package."""
    from casacore import tables

    arrays = np.load(data)
    frequency, light = 230e9, 299792458.0
    u, v, weight, values = (arrays[name].reshape(-1) for name in ("uu", "vv", "weight", "data"))
    rows = len(u)
    table = tables.default_ms(path, tables.maketabdesc([tables.makearrcoldesc("DATA", 0j, ndim=2, valuetype="complex"),
                                                        tables.makearrcoldesc("WEIGHT_SPECTRUM", 0.0, ndim=2, valuetype="float")]))
    table.addrows(rows)
    scale = light / frequency
    table.putcol("UVW", np.stack([u, v, np.zeros(rows)], axis=1).astype("f8") * scale)
    pair = np.repeat(values.reshape(-1, 1, 1), 2, axis=2)
    # u of a set is reckoned from antenna 1 to antenna 2: its data are the conjugates.
    table.putcol("DATA", np.conj(pair).astype("c8"))
    table.putcol("WEIGHT_SPECTRUM", np.repeat(weight.reshape(-1, 1, 1) / 2, 2, axis=2).astype("f4"))
    for name, value in (("WEIGHT", np.repeat(weight[:, None] / 2, 2, axis=1)), ("SIGMA", np.sqrt(2 / np.repeat(weight[:, None], 2, axis=1)))):
        table.putcol(name, value.astype("f4"))
    table.putcol("FLAG", np.zeros(pair.shape, dtype=bool))
    table.putcol("ANTENNA2", np.ones(rows, dtype="i4"))
    table.putcol("TIME", 4.85e9 + np.arange(rows))
    table.putcol("TIME_CENTROID", 4.85e9 + np.arange(rows))
    for name in ("EXPOSURE", "INTERVAL"):
        table.putcol(name, np.ones(rows))
    fill_subtables(tables, path, frequency)
    table.close()


def fill_subtables(tables, path, frequency):
    columns = {
        "ANTENNA": [{"NAME": f"A{i}", "STATION": f"S{i}", "TYPE": "GROUND-BASED", "MOUNT": "ALT-AZ", "DISH_DIAMETER": 12.0,
                     "POSITION": np.array([2225061.0 + 100 * i, -5440057.0, -2481681.0]), "OFFSET": np.zeros(3)} for i in range(2)],
        "FIELD": [{"NAME": "sky", "NUM_POLY": 0, **{name: np.array([[0.0, np.radians(-24)]]) for name in ("DELAY_DIR", "PHASE_DIR", "REFERENCE_DIR")}}],
        "SPECTRAL_WINDOW": [{"NUM_CHAN": 1, "REF_FREQUENCY": frequency, "TOTAL_BANDWIDTH": 2e9, "MEAS_FREQ_REF": 5, "NAME": "w",
                             "CHAN_FREQ": np.array([frequency]), **{name: np.array([2e9]) for name in ("CHAN_WIDTH", "EFFECTIVE_BW", "RESOLUTION")}}],
        "POLARIZATION": [{"NUM_CORR": 2, "CORR_TYPE": np.array([9, 12], dtype="i4"), "CORR_PRODUCT": np.array([[0, 0], [1, 1]], dtype="i4")}],
        "DATA_DESCRIPTION": [{"SPECTRAL_WINDOW_ID": 0, "POLARIZATION_ID": 0}],
        "OBSERVATION": [{"TELESCOPE_NAME": "ALMA", "OBSERVER": "", "PROJECT": "", "TIME_RANGE": np.array([4.85e9, 4.86e9])}],
    }
    for name, rows in columns.items():
        table = tables.table(f"{path}/{name}", readonly=False, ack=False)
        table.addrows(len(rows))
        for index, row in enumerate(rows):
            for column, value in row.items():
                table.putcell(column, index, value)
        table.close()


def has_wsclean(python):
    return shutil.which("wsclean") and subprocess.run([python, "-c", "import casacore.tables"], capture_output=True).returncode == 0


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--folder", type=Path, default=Path("image_quality"))
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--methods", default="")
    parser.add_argument("--npix", type=int, default=128)
    parser.add_argument("--python-casacore", default="/usr/bin/python3")
    parser.add_argument("--write-set", nargs=2, metavar=("NPZ", "SET"), help=argparse.SUPPRESS)
    return parser.parse_args()


def print_summary(rows, names):
    print("\n| method | dB above adam-500, median | worst | error at the beam over adam-500's, median | flux, median error | seconds, median |\n"
          "|---|---|---|---|---|---|")
    for name in names:
        gain = [row[name]["dB"] - row["adam-500"]["dB"] for row in rows]
        ratio = [row[name]["at beam"] / row["adam-500"]["at beam"] for row in rows]
        print(f"| {name} | {np.median(gain):+.1f} | {min(gain):+.1f} | {np.median(ratio):.2f} | "
              f"{np.median([abs(row[name]['flux'] - 1) for row in rows]):.3f} | {np.median([row[name]['seconds'] for row in rows]):.1f} |")


def main():
    options = parsed()
    if options.write_set:
        return write_set(*options.write_set)
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.methods.split(",") if options.methods else [*methods, *(["wsclean"] if has_wsclean(options.python_casacore) else [])]
    names = ["adam-500", *(name for name in names if name != "adam-500")]
    print("| case | method | dB | at beam | flux | chi2 | seconds |\n|" + "---|" * 7)
    rows = []
    for sky in skies:
        for track in tracks:
            for temperature in temperatures:
                if options.only not in f"{sky}, {track}, {temperature} K":
                    continue
                case = Case(options, sky, track, temperature)
                rows.append({name: case.wsclean() if name == "wsclean" else case.mpol(methods[name]) for name in names})
                for name, value in rows[-1].items():
                    print(f"| {case.name} | {name} | {value['dB']:.1f} | {value['at beam']:.3f} | {value['flux']:.3f} | "
                          f"{value['chi2']:.3f} | {value['seconds']:.1f} |", flush=True)
    print_summary(rows, names)


if __name__ == "__main__":
    main()
