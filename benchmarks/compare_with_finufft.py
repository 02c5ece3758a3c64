#!/usr/bin/env python3
"""Time nonuniform transforms and exact steps of mpol_cpp beside FINUFFT's (and MPoL's), and print the ratios.

Needs a Python with numpy and finufft; with --mpol torch and MPoL's other requirements, and MPoL's source on PYTHONPATH:

  python benchmarks/compare_with_finufft.py --program build/release/bin/nufft_benchmark

Both sides read one npz per case and run in processes of their own, in turn, `--rounds` times. FINUFFT gets its best: a plan
made once with FFTW_MEASURE and the faster of the upsampling factors 2 and 1.25. Points are sorted by cell beforehand, for both,
and FINUFFT is told so; with --order random neither gets them sorted. Fused is beside FINUFFT's pair: "pair" is its
type 2, the residual and its type 1, which "fused" does in one call of ours; "exact" is value and gradient of the exact
likelihood, which reads no visibility. One JSON row a case, then a table.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

from compare_with_mpol import ARCSEC, CELL_SIZE, cpu_seconds, observation, run


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="nufft_benchmark")
    parser.add_argument("--npix", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--nvis", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--case", nargs="+", default=["float32:1e-3", "float32:1e-5", "float64:1e-6", "float64:1e-12"],
                        help="dtype:tolerance")
    parser.add_argument("--order", choices=["sorted", "random"], default="sorted", help="of the points in the file")
    parser.add_argument("--ducc", action="store_true", help="ducc0 too")
    parser.add_argument("--mpol", action="store_true", help="MPoL's NuFFT step too, with float32 and up to 1e6 visibilities")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--other-case", help=argparse.SUPPRESS)
    return parser.parse_args()


def repeat(call, seconds):
    call()
    times, start, before = [], time.perf_counter(), cpu_seconds()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 500):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    busy, own = (b - a for a, b in zip(before, cpu_seconds()))
    return {"median_s": statistics.median(times), "others_cpu": max(0.0, (busy - own) / (time.perf_counter() - start))}


def sorted_by_cell(observed, npix):
    """The same samples, those of a cell of the image's uv grid one after the other."""
    import numpy as np

    rows, columns = (np.floor(2 * np.pi * CELL_SIZE * ARCSEC * observed[key] * npix / np.pi) for key in ("vv", "uu"))
    order = np.lexsort((columns, rows))
    return {key: value[..., order] for key, value in observed.items()}


def finufft_plans(case, x, y, complex_):
    """Functions type2(sky, model) and type1(data, gradient) for each upsampling factor."""
    import finufft

    for sigma in (2.0, 1.25):
        plan = finufft.Plan(2, (case["npix"], case["npix"]), eps=case["tolerance"], isign=-1, dtype=complex_,
                            nthreads=case["threads"], upsampfac=sigma, spread_sort=0 if case["order"] == "sorted" else 1, fftw=0)
        plan.setpts(y, x)
        yield (lambda sky, model: plan.execute(sky, out=model)), (lambda data, gradient: plan.execute_adjoint(data, out=gradient))


def ducc_plans(case, x, y, complex_):
    """The same of ducc, which chooses its upsampling itself."""
    import ducc0
    import numpy as np

    settings = dict(coord=np.stack([y, x], 1), grid_shape=(case["npix"], case["npix"]), epsilon=case["tolerance"],
                    nthreads=case["threads"])
    to_points, from_points = (ducc0.nufft.plan(nu2u=nu2u, **settings) for nu2u in (False, True))
    yield (lambda sky, model: to_points.u2nu(forward=True, grid=sky, out=model)), (
        lambda data, gradient: from_points.nu2u(forward=False, points=data, out=gradient))


def library_times(case):
    import numpy as np

    file, npix = np.load(case["data"]), case["npix"]
    real, complex_ = (np.float32, np.complex64) if case["dtype"] == "float32" else (np.float64, np.complex128)
    x, y = ((2 * np.pi * CELL_SIZE * ARCSEC * file[key]).astype(real) for key in ("uu", "vv"))
    data, weight = file["data"][0].astype(complex_), file["weight"][0].astype(real)
    sky, model = np.random.default_rng(2).random((npix, npix)).astype(complex_), np.empty(x.size, complex_)
    gradient, best = np.empty((npix, npix), complex_), {}
    for type2, type1 in {"finufft": finufft_plans, "ducc": ducc_plans}[case["side"]](case, x, y, complex_):

        def pair():
            type2(sky, model)
            residual = weight * (model - data)
            type1(residual, gradient)
            return np.vdot(model - data, residual).real

        for name, call in {"type2": lambda: type2(sky, model), "fused": pair, "type1": lambda: type1(data, gradient)}.items():
            times = repeat(call, case["seconds"])
            if name not in best or times["median_s"] < best[name]["median_s"]:
                best[name] = times
    return best


def mpol_times(case):
    """Forward and backward of MPoL's NuFFT and its chi^2 in float32."""
    import numpy as np
    import torch
    from mpol import coordinates, fourier, losses

    torch.set_num_threads(case["threads"])
    file = np.load(case["data"])
    coords = coordinates.GridCoords(cell_size=CELL_SIZE, npix=case["npix"])
    u, v = (torch.as_tensor(file[key], dtype=torch.float32) for key in ("uu", "vv"))
    data, weight = torch.as_tensor(file["data"], dtype=torch.complex64), torch.as_tensor(file["weight"], dtype=torch.float32)
    nufft = fourier.NuFFT(coords=coords, nchan=1)
    sky = torch.rand(1, case["npix"], case["npix"], dtype=torch.float32, requires_grad=True)

    def step():
        sky.grad = None
        losses.r_chi_squared(nufft(sky, u, v), data, weight).backward()

    return {"exact": repeat(step, case["seconds"])}


def other_sides(case):
    return mpol_times(case) if case["side"] == "mpol" else library_times(case)


def ours(args, group, names, **options):
    command = [args.program, group, "--threads", str(args.threads), "--seconds", str(args.seconds)]
    for key, value in options.items():
        command += [f"--{key}", str(value)]
    rows = run(command, every_row=True)
    return {row["case"]: row for row in rows if row["case"] in names}


def compare(args, data, npix, nvis, dtype, tolerance):
    case = dict(data=data, npix=npix, dtype=dtype, tolerance=tolerance, threads=args.threads, seconds=args.seconds,
                order=args.order)
    this = [sys.executable, os.path.abspath(__file__), "--other-case"]
    libraries = ["finufft"]
    if args.ducc and tolerance > (1e-6 if dtype == "float32" else 2e-13):
        libraries.append("ducc")
    names, rounds = ["plan", "type2", "type1", "fused"], []
    for _ in range(args.rounds):
        own = ours(args, "transforms", names, npix=npix, dtype=dtype, tolerance=tolerance, data=data)
        rounds.append((own, {name: run([*this, json.dumps(dict(case, side=name))]) for name in libraries}))
    sides = [side for own, others in rounds for side in (own, *others.values())]
    row = {"npix": npix, "nvis": nvis, "order": args.order, "dtype": dtype, "tolerance": tolerance, "threads": args.threads,
           "others_cpu": round(max(t["others_cpu"] for side in sides for t in side.values()), 2)}
    for name in names:
        row[name] = {"ms": round(1e3 * statistics.median(own[name]["median_s"] for own, _ in rounds), 3)}
        if name == "plan":
            continue
        for library in libraries:
            row[name] |= {f"{library}_ms": round(1e3 * statistics.median(o[library][name]["median_s"] for _, o in rounds), 3),
                          library: round(statistics.median(o[library][name]["median_s"] / own[name]["median_s"]
                                                           for own, o in rounds), 2)}
    print(json.dumps(row), flush=True)
    return row


def compare_exact(args, data, npix, nvis, dtype):
    own = [ours(args, "exact", ["exact_setup", "exact"], npix=npix, dtype=dtype, data=data) for _ in range(args.rounds)]
    row = {"npix": npix, "nvis": nvis, "dtype": dtype, "threads": args.threads,
           "others_cpu": round(max(t["others_cpu"] for r in own for t in r.values()), 2)}
    row |= {name: round(1e3 * statistics.median(r[name]["median_s"] for r in own), 3) for name in ("exact_setup", "exact")}
    if args.mpol and dtype == "float32" and nvis <= 1e6:
        case = dict(side="mpol", data=data, npix=npix, threads=args.threads, seconds=args.seconds)
        times = run([sys.executable, os.path.abspath(__file__), "--other-case", json.dumps(case)])["exact"]
        row |= {"mpol": round(1e3 * times["median_s"], 1), "ratio": round(1e3 * times["median_s"] / row["exact"])}
    print(json.dumps(row), flush=True)
    return row


def tables(rows, exact):
    print("\n| npix | visibilities | dtype | tolerance | type 2, ms | type 1, ms | fused, ms | plan, ms | others' CPU |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        def cell(name):
            ratios = ", ".join(f"{row[name][side]:.3g}" for side in ("finufft", "ducc") if side in row[name])
            return f"{row[name]['ms']:.3g} ({ratios})"

        cells = [cell(name) for name in ("type2", "type1", "fused")]
        print(f"| {row['npix']} | {row['nvis']:.0e} | {row['dtype']} | {row['tolerance']:.0e} | " + " | ".join(cells)
              + f" | {row['plan']['ms']:.3g} | {row['others_cpu']} |")
    print("\n| npix | visibilities | dtype | exact step, ms | set-up, ms | MPoL's NuFFT step, ms | ratio | others' CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for row in exact:
        print(f"| {row['npix']} | {row['nvis']:.0e} | {row['dtype']} | {row['exact']:.3g} | {row['exact_setup']:.3g} | "
              f"{row.get('mpol', '-')} | {row.get('ratio', '-')} | {row['others_cpu']} |")


def main():
    args = parse()
    if args.other_case:
        return print(json.dumps(other_sides(json.loads(args.other_case))))
    if not args.program:
        sys.exit("compare_with_finufft.py: name the program: --program build/release/bin/nufft_benchmark")
    import numpy as np

    rows, exact = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "case.npz")
        for npix in args.npix:
            for nvis in map(int, args.nvis):
                observed = observation(npix, 1, nvis)
                np.savez(data, **(sorted_by_cell(observed, npix) if args.order == "sorted" else observed))
                del observed
                for case in args.case:
                    dtype, tolerance = case.split(":")
                    rows.append(compare(args, data, npix, nvis, dtype, float(tolerance)))
                exact += [compare_exact(args, data, npix, nvis, dtype) for dtype in ("float32", "float64")]
    tables(rows, exact)


if __name__ == "__main__":
    main()
