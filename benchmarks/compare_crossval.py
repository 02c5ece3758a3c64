#!/usr/bin/env python3
"""Times a cross-validation beside one converged fit of the same data, as a Markdown table.

usage: compare_crossval.py [--program build/release/bin/mpol] [--data data/hd142527_band9.npz] [--cell-size 0.04] [--npix 128,180]
                           [--threads 2] [--rounds 5]

Each round runs `mpol image` with the usual lambdas and then `mpol crossval`: the compass with its defaults, and ten lambdas of total
variation in five folds. Times are those of summary.json, medians over the rounds: of the fit (training), of the whole search, of
one fit of a fold in it, and how many converged fits a search takes the time of.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

searches = {"compass": [], "5 folds x 10 lambdas": ["--sparsity", "1U", "--tv", "0.03U:30U:10"]}


def summary_of(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, *arguments, "-o", str(Path(folder) / "out"), "--json", "--scatter-check", "off"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol")
    parser.add_argument("--data", default="data/hd142527_band9.npz")
    parser.add_argument("--cell-size", default="0.04")
    parser.add_argument("--npix", default="128,180")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| npix | search | fits | one converged fit (s) | search (s) | a fit of a fold (s) | converged fits |")
    print("|---|---|---|---|---|---|---|")
    for npix in options.npix.split(","):
        given = [options.data, "--cell-size", options.cell_size, "--npix", npix, "--threads", options.threads]
        for name, more in searches.items():
            fits, scans, counts = [], [], []
            for _ in range(options.rounds):
                fits.append(summary_of(options.program, ["image", *given])["seconds"]["training"])
                scan = summary_of(options.program, ["crossval", *given, *more])
                scans.append(scan["seconds"]["crossval"])
                counts.append(scan["fits"])
            fit, scan, count = statistics.median(fits), statistics.median(scans), counts[0]
            print(f"| {npix} | {name} | {count} | {fit:.3f} | {scan:.3f} | {scan / count:.4f} | {scan / fit:.1f} |", flush=True)


if __name__ == "__main__":
    main()
