#!/usr/bin/env python3
"""Time sparse coding beside SPORCO on the same problems, cores and iterations, and compare their functional values.

  pip install sporco==0.2.2.post1 && python benchmarks/compare_sporco.py --program build/release/bin/sparse_coding_benchmark

Both take SPORCO's default options and exactly so many iterations. SPORCO is timed as it is by default, with its statistics of each
iteration, and with FastSolve, without them; ours takes residuals in every iteration, the functional value at the end. One JSON row a
case: the least seconds of `--rounds` alternating rounds.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="sparse_coding_benchmark")
    parser.add_argument("--cases", nargs="+", default=["cbpdn", "cbpdn_mask", "tvl2", "tvl1", "tvl2_deconv", "bpdn", "rpca"])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--npix", type=int, default=256)
    parser.add_argument("--filters", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


args = parse()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)  # before numpy is there

import numpy as np  # noqa: E402
from sporco import fft  # noqa: E402
from sporco.admm import bpdn, cbpdn, rpca, tvl1, tvl2  # noqa: E402

fft.pyfftw_threads = args.threads


def problem(dtype):
    """Rectangles with noise, random filters, and what else there is."""
    rng = np.random.default_rng(1)
    n = args.npix
    image = np.zeros((n, n))
    for _ in range(30):
        top, left, height, width = rng.integers(0, n // 2, 4)
        image[top:top + height, left:left + width] += rng.normal()
    image += 0.1 * rng.normal(size=(n, n))
    filters = rng.normal(size=(8, 8, args.filters))
    filters /= np.sqrt((filters ** 2).sum(axis=(0, 1)))
    kernel = np.outer(np.hanning(9)[1:-1], np.hanning(9)[1:-1])
    dictionary = rng.normal(size=(128, 512))
    dictionary /= np.linalg.norm(dictionary, axis=0)
    matrix = rng.normal(size=(n, 10)) @ rng.normal(size=(10, n)) + 20 * (rng.random((n, n)) < 0.05)
    arrays = {"image": image, "filters": filters, "kernel": kernel / kernel.sum(), "mask": rng.random((n, n)) > 0.3,
              "dictionary": dictionary, "signals": rng.normal(size=(128, 1000)), "matrix": matrix}
    return {name: array.astype(dtype) for name, array in arrays.items()}


def sporco_solver(case, given, options):
    image = given["image"]
    if case == "cbpdn":
        return cbpdn.ConvBPDN(given["filters"], image, 0.05, cbpdn.ConvBPDN.Options(options))
    if case == "cbpdn_mask":
        return cbpdn.ConvBPDNMaskDcpl(given["filters"], image, 0.05, given["mask"], cbpdn.ConvBPDNMaskDcpl.Options(options))
    if case == "tvl2":
        return tvl2.TVL2Denoise(image, 0.05, tvl2.TVL2Denoise.Options(options))
    if case == "tvl1":
        return tvl1.TVL1Denoise(image, 0.8, tvl1.TVL1Denoise.Options(options))
    if case == "tvl2_deconv":
        return tvl2.TVL2Deconv(given["kernel"], image, 0.01, tvl2.TVL2Deconv.Options(options))
    if case == "bpdn":
        return bpdn.BPDN(given["dictionary"], given["signals"], 0.2, bpdn.BPDN.Options(options))
    return rpca.RobustPCA(given["matrix"], 0.06, rpca.RobustPCA.Options(options))


weights = {"cbpdn": 0.05, "cbpdn_mask": 0.05, "tvl2": 0.05, "tvl1": 0.8, "tvl2_deconv": 0.01, "bpdn": 0.2, "rpca": 0.06}


def by_sporco(case, given, fast):
    solver = sporco_solver(case, given, {"MaxMainIter": args.iterations, "RelStopTol": 1e-12, "FastSolve": fast})
    begin = time.perf_counter()
    solver.solve()
    return time.perf_counter() - begin, float(np.sum(solver.eval_objfn()[0]))


def by_us(case, file):
    line = subprocess.run([args.program, case, file, str(args.iterations), str(weights[case]), str(args.threads), "2"], check=True,
                          capture_output=True, text=True).stdout
    row = json.loads(line)
    return min(row["seconds"]), row["objective"], row["stages"]


with tempfile.TemporaryDirectory() as folder:
    for dtype in args.dtype:
        given = problem(dtype)
        file = os.path.join(folder, f"{dtype}.npz")
        arrays = dict(given, filters=np.moveaxis(given["filters"], -1, 0), image=given["image"][None])
        np.savez(file, **{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        for case in args.cases:
            times = {"sporco": [], "sporco_fast": [], "ours": []}
            for _ in range(args.rounds):
                seconds, value = by_sporco(case, given, False)
                times["sporco"].append(seconds)
                times["sporco_fast"].append(by_sporco(case, given, True)[0])
                seconds, own, stages = by_us(case, file)
                times["ours"].append(seconds)
            best = {name: round(min(values), 4) for name, values in times.items()}
            print(json.dumps({"case": case, "dtype": dtype, "npix": args.npix, "iterations": args.iterations, "threads": args.threads, **best,
                              "faster": round(best["sporco"] / best["ours"], 2), "faster_than_fast": round(best["sporco_fast"] / best["ours"], 2),
                              "difference": abs(own / value - 1), "stages": {name: round(part, 4) for name, part in stages.items()}}), flush=True)
