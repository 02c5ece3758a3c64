#!/usr/bin/env python3
"""Time gridding with the scatter check beside MPoL's DataAverager, on the same data, in alternating runs.

Needs a Python with MPoL's requirements, and MPoL's source on PYTHONPATH:

  PYTHONPATH=MPoL/src python benchmarks/compare_gridding.py --program build/release/bin/mpol_benchmark

Both sides read one npz per case, in processes of their own, in turn, `--rounds` times; reading is not timed. One JSON
row a case: medians of wall-clock time, their ratio, and how many cores other processes kept busy (a row with much of that
is no result); besides, the processor time that a call takes on all cores, and its ratio, which others disturb less.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

from compare_with_mpol import CELL_SIZE, cpu_seconds, observation, run


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="mpol_benchmark")
    parser.add_argument("--npix", type=int, default=1024)
    parser.add_argument("--nvis", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpol-case", help=argparse.SUPPRESS)
    return parser.parse_args()


def case_data(npix, nvis, dtype):
    real, complex_ = ("<f4", "<c8") if dtype == "float32" else ("<f8", "<c16")
    arrays = observation(npix, 1, nvis)
    return {name: array.astype(complex_ if name == "data" else real) for name, array in arrays.items()}


def mpol_gridding(case):
    """The other side: this script runs itself with a case to time MPoL in a process of its own."""
    import numpy as np
    from mpol import coordinates, gridding

    file = np.load(case["data"])
    data = file["data"]
    coords = coordinates.GridCoords(cell_size=CELL_SIZE, npix=case["npix"])
    arrays = dict(uu=file["uu"][None], vv=file["vv"][None], weight=file["weight"],
                  data_re=np.ascontiguousarray(data.real), data_im=np.ascontiguousarray(data.imag))

    def grid():
        gridding.DataAverager(coords=coords, **arrays).to_pytorch_dataset(check_visibility_scatter=True, max_scatter=1e9)

    grid()
    times, start, before = [], time.perf_counter(), cpu_seconds()
    while len(times) < 2 or time.perf_counter() - start < case["seconds"]:
        begin = time.perf_counter()
        grid()
        times.append(time.perf_counter() - begin)
    busy, own = (b - a for a, b in zip(before, cpu_seconds()))
    others = max(0.0, (busy - own) / (time.perf_counter() - start))
    print(json.dumps({"median_s": statistics.median(times), "min_s": min(times), "cpu_s": own / len(times),
                      "others_cpu": others}))


def compare(args, folder, nvis, dtype):
    import numpy as np

    data = os.path.join(folder, "case.npz")
    np.savez(data, **case_data(args.npix, nvis, dtype))
    case = dict(data=data, npix=args.npix, seconds=args.seconds)
    ours = [args.program, "gridding", "--npix", str(args.npix), "--nvis", str(nvis), "--dtype", dtype, "--data", data,
            "--threads", str(args.threads), "--seconds", str(args.seconds)]
    theirs = [sys.executable, os.path.abspath(__file__), "--mpol-case", json.dumps(case)]
    rounds = [(run(theirs), run(ours)) for _ in range(args.rounds)]
    mpol, mpol_cpp = ([r[i]["median_s"] for r in rounds] for i in (0, 1))
    mpol_cpu, mpol_cpp_cpu = (statistics.median(r[i]["cpu_s"] for r in rounds) for i in (0, 1))
    ratios = [a / b for a, b in zip(mpol, mpol_cpp)]
    print(json.dumps({
        "npix": args.npix, "nvis": nvis, "dtype": dtype, "threads": args.threads,
        "mpol_ms": round(1e3 * statistics.median(mpol), 3), "mpol_cpp_ms": round(1e3 * statistics.median(mpol_cpp), 3),
        "ratio": round(statistics.median(ratios), 1), "ratios": [round(r, 1) for r in ratios],
        "mpol_cpu_ms": round(1e3 * mpol_cpu, 3), "mpol_cpp_cpu_ms": round(1e3 * mpol_cpp_cpu, 3),
        "cpu_ratio": round(mpol_cpu / mpol_cpp_cpu, 1),
        "min_ratio": round(min(r[0]["min_s"] for r in rounds) / min(r[1]["min_s"] for r in rounds), 1),
        "others_cpu": round(max(side["others_cpu"] for r in rounds for side in r), 2)}), flush=True)


def main():
    args = parse()
    if args.mpol_case:
        return mpol_gridding(json.loads(args.mpol_case))
    if not args.program:
        sys.exit("compare_gridding.py: name the program: --program build/release/bin/mpol_benchmark")
    with tempfile.TemporaryDirectory() as folder:
        for nvis in args.nvis:
            for dtype in args.dtype:
                compare(args, folder, nvis, dtype)


if __name__ == "__main__":
    main()
