#!/usr/bin/env python3
"""Times a training step beside programs that keep cores busy, with one thread and with several, as a Markdown table.

usage: compare_neighbors.py [--program build/release/bin/mpol_benchmark] [--npix 180,512] [--dtype float32] [--step fused,eager]
                             [--threads 2] [--seconds 2] [--rounds 3]

A neighbour is a loop pinned to one core. Each case is run in a process of its own, in turn, for some rounds; the table has the
medians over the rounds of the mean over a run's steps (the mean: a step that waits for a core once in a while is part of the price).
The last column is the time of several threads over that of one beside the same neighbours.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time


class Neighbors:
    """Busy loops on the first cores, while it lives."""

    def __init__(self, cores):
        self.pids = [self.start(core) for core in cores]

    @staticmethod
    def start(core):
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {core})
            number = 0
            while True:
                number += 1
        return pid

    def __enter__(self):
        time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def mean_step(program, options, threads):
    arguments = [program, "step", "--threads", str(threads)]
    for name, value in options.items():
        arguments += [f"--{name}", str(value)]
    result = subprocess.run(arguments, check=True, capture_output=True, text=True)
    row = json.loads(result.stdout.splitlines()[-1])
    return row["mean_s"], row["median_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/mpol_benchmark")
    parser.add_argument("--npix", default="180,512")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--step", default="fused")
    parser.add_argument("--threads", type=int, default=0, help="default: as many as cores")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    threads = arguments.threads or len(cores)
    neighbours = [0, 1] + ([len(cores)] if len(cores) > 1 else [])
    print(f"| npix | dtype | step | busy cores of {len(cores)} | 1 thread, ms (median) | {threads} threads, ms (median) | ratio |")
    print("|---|---|---|---|---|---|---|")
    for step in arguments.step.split(","):
        for npix in arguments.npix.split(","):
            for dtype in arguments.dtype.split(","):
                options = {"npix": npix, "nchan": 1, "dtype": dtype, "step": step, "seconds": arguments.seconds}
                for busy in neighbours:
                    times = {1: [], threads: []}
                    for _ in range(arguments.rounds):
                        for count, found in times.items():
                            with Neighbors(cores[:busy]):
                                found.append(mean_step(arguments.program, options, count))
                    means = [statistics.median(mean for mean, _ in times[count]) for count in (1, threads)]
                    medians = [statistics.median(median for _, median in times[count]) for count in (1, threads)]
                    cells = [f"{1e3 * mean:.3g} ({1e3 * median:.3g})" for mean, median in zip(means, medians)]
                    print(f"| {npix} | {dtype} | {step} | {busy} | {cells[0]} | {cells[1]} | {means[1] / means[0]:.2f} |")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
