#!/usr/bin/env python3
"""Time a real transform of an image and its inverse beside other libraries', on the same cores.

  python benchmarks/compare_fft.py --program build/release/bin/mpol_benchmark

Ours (all columns of the half plane), LibTorch's as the library is linked, pocketfft's (scipy.fft), ducc's and FFTW's
(pyfftw, planned with FFTW_MEASURE, arrays of its own), each where it is installed; unnormalised or not is the same work. One
JSON row a case: milliseconds of each, the best of `--rounds` alternating rounds of medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="mpol_benchmark")
    parser.add_argument("--npix", type=int, nargs="+", default=[180, 512, 1024, 2048])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def ours_and_libtorch(args, npix, dtype):
    lines = subprocess.run([args.program, "fft", "--npix", str(npix), "--nchan", "1", "--dtype", dtype, "--threads",
                            str(args.threads), "--seconds", str(args.seconds)], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in lines.stdout.splitlines()]
    return {row["by"]: row["median_s"] for row in rows}


def pairs(npix, dtype, threads):
    """Callables that transform an image and back, by library."""
    import numpy as np

    image = np.random.default_rng(1).normal(size=(npix, npix)).astype(dtype)
    shape = (npix, npix)
    calls = {}
    try:
        import scipy.fft
        calls["pocketfft"] = lambda: scipy.fft.irfft2(scipy.fft.rfft2(image, workers=threads), s=shape, workers=threads)
    except ImportError:
        pass
    try:
        import ducc0
        half = np.empty((npix, npix // 2 + 1), np.complex64 if dtype == "float32" else np.complex128)
        back = np.empty_like(image)

        def by_ducc():
            ducc0.fft.r2c(image, nthreads=threads, out=half)
            ducc0.fft.c2r(half, lastsize=npix, forward=False, nthreads=threads, out=back, allow_overwriting_input=True)
        calls["ducc"] = by_ducc
    except ImportError:
        pass
    try:
        import pyfftw
        real = pyfftw.empty_aligned(shape, dtype)
        complex_ = pyfftw.empty_aligned((npix, npix // 2 + 1), "complex64" if dtype == "float32" else "complex128")
        options = dict(axes=(0, 1), flags=("FFTW_MEASURE", "FFTW_DESTROY_INPUT"), threads=threads)
        forward = pyfftw.FFTW(real, complex_, direction="FFTW_FORWARD", **options)
        inverse = pyfftw.FFTW(complex_, real, direction="FFTW_BACKWARD", **options)
        real[:] = image

        def by_fftw():
            forward.execute()
            inverse.execute()
        calls["fftw"] = by_fftw
    except ImportError:
        pass
    return calls


def median_time(call, seconds):
    for _ in range(2):
        call()
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    args = parse()
    for npix in args.npix:
        for dtype in args.dtype:
            calls, best = pairs(npix, dtype, args.threads), {}
            for _ in range(args.rounds):
                times = ours_and_libtorch(args, npix, dtype)
                times.update({name: median_time(call, args.seconds) for name, call in calls.items()})
                best = {name: min(value, best.get(name, value)) for name, value in times.items()}
            row = {name: round(1e3 * value, 4) for name, value in best.items()}
            print(json.dumps({"npix": npix, "dtype": dtype, "threads": args.threads, "ms": row}), flush=True)


if __name__ == "__main__":
    main()
