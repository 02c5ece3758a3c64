#!/usr/bin/env python3
"""Time a training step of mpol_cpp beside MPoL's, on the same data, in alternating runs, and print the ratio.

Needs a Python with torch and MPoL's other requirements, and MPoL's source on PYTHONPATH:

  PYTHONPATH=MPoL/src python benchmarks/compare_with_mpol.py --program build/release/bin/mpol_benchmark

A step is: base cube, Hann convolution, image, Fourier transform, gridded likelihood, sparsity and total variation,
backward, Adam. All sides read one npz per case and run in processes of their own, in turn, `--rounds` times: MPoL, our eager
and our fused step, and a copy of one cube, which tells the memory bandwidth. One JSON row a case, then a table.

MPoL's time depends on what glibc's allocator did before: "keep" never returns memory to the system and is the kinder
baseline; "default" is what a user sees. A row whose `others_cpu` is large was disturbed by other processes and is no
result: with as many threads as cores a busy neighbour makes a step tens of times slower.

On a GPU, `--device cuda:0 --program build/gpu/bin/device_benchmark`: MPoL's step and ours on that GPU, several steps between two
waits for it; each side simulates such an observation itself. There are no copies then, and no allocator to set.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CELL_SIZE = 0.005  # arcsec
ARCSEC = 3.141592653589793 / 648000.0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="mpol_benchmark, or device_benchmark for a GPU")
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU: cuda:0")
    parser.add_argument("--step", nargs="+", default=["eager", "fused"], help="steps of mpol_cpp: eager, fused, captured, auto")
    parser.add_argument("--compile", action="store_true", help="MPoL with torch.compile too (needs a C++ compiler)")
    parser.add_argument("--npix", type=int, nargs="+", default=[180, 512, 1024, 2048])
    parser.add_argument("--nchan", type=int, nargs="+", default=[1, 8], help="above 1 only where npix <= 512")
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--malloc", default="keep", choices=["default", "keep"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpol-case", help=argparse.SUPPRESS)
    return parser.parse_args()


def observation(npix, nchan, nvis=500_000, fill=0.4):
    """Noisy visibilities of a Gaussian source seen by a 43-antenna spiral array over a range of hour angles."""
    import numpy as np

    rng = np.random.default_rng(1)
    radius = np.linspace(0.03, 1.0, 43) ** 1.5
    angle = 2 * np.pi * (np.arange(43) % 3) / 3 + 2.0 * radius + rng.normal(0, 0.1, 43)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    first, second = np.triu_indices(43, 1)
    pair = rng.integers(0, first.size, nvis)
    east, north = (x[first] - x[second])[pair], (y[first] - y[second])[pair]
    hour, declination, latitude = rng.uniform(-0.8, 0.8, nvis), np.radians(-30), np.radians(-23)
    bx, bz = -north * np.sin(latitude), north * np.cos(latitude)
    u = np.sin(hour) * bx + np.cos(hour) * east
    v = -np.sin(declination) * (np.cos(hour) * bx - np.sin(hour) * east) + np.cos(declination) * bz
    swap = np.where(rng.random(nvis) < 0.5, -1.0, 1.0)
    scale = fill * 0.5 / (CELL_SIZE * ARCSEC) * (1 - 1 / npix) / max(np.abs(u).max(), np.abs(v).max())
    u, v = u * swap * scale, v * swap * scale
    size = 0.12 * npix * CELL_SIZE * ARCSEC
    weight = rng.uniform(0.5, 2.0, nvis) * 1e4
    data = np.exp(-2 * (np.pi * size) ** 2 * (u**2 + v**2)) * (1 + 0.2 * np.cos(2 * np.pi * size * u))
    data = data + (rng.normal(size=nvis) + 1j * rng.normal(size=nvis)) / np.sqrt(weight)
    return dict(uu=u, vv=v, weight=np.tile(weight, (nchan, 1)), data=np.tile(data, (nchan, 1)))


def cpu_seconds():
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, soft = map(int, stat.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK"), time.process_time()


def mpol_step(case):
    """The other side: this script runs itself with a case to time MPoL in a process of its own."""
    if case["malloc"] == "keep":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD
    import numpy as np
    import torch
    from mpol import coordinates, gridding, losses, precomposed

    torch.set_num_threads(case["threads"])
    real, complex_ = (torch.float32, torch.complex64) if case["dtype"] == "float32" else (torch.float64, torch.complex128)
    file = np.load(case["data"])
    nchan = file["data"].shape[0]
    coords = coordinates.GridCoords(cell_size=CELL_SIZE, npix=case["npix"])
    averager = gridding.DataAverager(
        coords=coords, uu=np.tile(file["uu"], (nchan, 1)), vv=np.tile(file["vv"], (nchan, 1)),
        weight=file["weight"], data_re=file["data"].real, data_im=file["data"].imag)
    dataset = averager.to_pytorch_dataset(check_visibility_scatter=False)
    for name, buffer in list(dataset.named_buffers()):
        if buffer.is_complex() or buffer.is_floating_point():
            setattr(dataset, name, buffer.to(complex_ if buffer.is_complex() else real))
    device = torch.device(case["device"])
    dataset = dataset.to(device)
    net = precomposed.GriddedNet(coords=coords, nchan=nchan).to(device, real)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.3)

    def step():
        optimizer.zero_grad()
        visibilities = net()
        sky = net.icube.sky_cube
        loss = (losses.r_chi_squared_gridded(visibilities, dataset) + 1e-3 * losses.sparsity(sky)
                + 1e-3 * losses.TV_image(sky))
        loss.backward()
        optimizer.step()

    if case["compile"]:
        step = torch.compile(step)
    together = 1 if device.type == "cpu" else 20

    def steps():
        for _ in range(together):
            step()
        if device.type != "cpu":
            torch.cuda.synchronize(device)

    steps(), steps()
    times, start, before = [], time.perf_counter(), cpu_seconds()
    while len(times) < 5 or (time.perf_counter() - start < case["seconds"] and len(times) < 2000):
        begin = time.perf_counter()
        steps()
        times.append((time.perf_counter() - begin) / together)
    busy, own = (b - a for a, b in zip(before, cpu_seconds()))
    others = max(0.0, (busy - own) / (time.perf_counter() - start))
    print(json.dumps({"median_s": statistics.median(times), "min_s": min(times), "others_cpu": others}))


def run(command, every_row=False):
    """What a command prints: its last row of JSON, or every one."""
    result = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, GOMP_SPINCOUNT="10000"))
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed: {result.stderr.strip()[-500:]}")
    rows = [json.loads(line) for line in result.stdout.strip().splitlines() if line.startswith("{")]
    rows = [dict(row, median_s=row["seconds"]) if "seconds" in row else row for row in rows]  # device_benchmark's
    return rows if every_row else rows[-1]


def compare(args, folder, npix, nchan, dtype):
    import numpy as np

    data = os.path.join(folder, "case.npz")
    np.savez(data, **observation(npix, nchan))
    on_cpu = args.device == "cpu"
    case = dict(data=data, npix=npix, dtype=dtype, threads=args.threads, seconds=args.seconds, malloc=args.malloc,
                device=args.device)
    sizes = ["--npix", str(npix), "--nchan", str(nchan), "--dtype", dtype]
    ours = ["--data", data, "--threads", str(args.threads), "--seconds", str(args.seconds)]
    sides = {"MPoL": [sys.executable, os.path.abspath(__file__), "--mpol-case", json.dumps(dict(case, compile=False))]}
    if args.compile:
        sides["MPoL compiled"] = [*sides["MPoL"][:-1], json.dumps(dict(case, compile=True))]
    if on_cpu:
        sides |= {step: [args.program, "step", "--step", step, *sizes, *ours] for step in args.step}
        sides["copy"] = [args.program, "copy", *sizes, *ours[2:]]
    else:
        sides |= {step: [args.program, "--device", args.device, "--step", step, *sizes] for step in args.step}
    rounds = [{side: run(command) for side, command in sides.items()} for _ in range(args.rounds)]
    row = {"npix": npix, "nchan": nchan, "dtype": dtype, "device": args.device, "malloc": args.malloc, "threads": args.threads,
           "others_cpu": round(max(times.get("others_cpu", 0) for r in rounds for times in r.values()), 2)}
    for side in sides:
        row[side] = {
            "ms": round(1e3 * statistics.median(r[side]["median_s"] for r in rounds), 3),
            "min_ms": round(1e3 * min(r[side].get("min_s", r[side]["median_s"]) for r in rounds), 3),
            "ratios": [round(r["MPoL"]["median_s"] / r[side]["median_s"], 2) for r in rounds]}
    print(json.dumps(row), flush=True)
    return row


def table(rows):
    """The rows in Markdown: ms, and in brackets MPoL's time over it, the median of the rounds."""
    sides = [name for name, value in rows[0].items() if isinstance(value, dict)]
    print("\n| npix × nchan | dtype | " + " | ".join(f"{side}, ms" for side in sides) + " | others' CPU |")
    print("|---|---|" + "---|" * (len(sides) + 1))
    for row in rows:
        cells = [f"{row[side]['ms']:.3g}" + ("" if side in ("MPoL", "copy") else f" ({statistics.median(row[side]['ratios']):.3g})")
                 for side in sides]
        print(f"| {row['npix']} × {row['nchan']} | {row['dtype']} | " + " | ".join(cells) + f" | {row['others_cpu']} |")


def main():
    args = parse()
    if args.mpol_case:
        return mpol_step(json.loads(args.mpol_case))
    if not args.program:
        sys.exit("compare_with_mpol.py: name the program: --program build/release/bin/mpol_benchmark")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for npix in args.npix:
            for nchan in args.nchan:
                if nchan == 1 or npix <= 512:
                    rows += [compare(args, folder, npix, nchan, dtype) for dtype in args.dtype]
    table(rows)


if __name__ == "__main__":
    main()
