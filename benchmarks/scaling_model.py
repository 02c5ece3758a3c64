#!/usr/bin/env python3
"""Seconds of jobs on many GPUs by the cost model of docs/clusters.md: a calculation, not a measurement.

    python benchmarks/scaling_model.py [--ranks 1,4,16,64] [--network GB_PER_S] [--latency MICROSECONDS] [--disk GB_PER_S]

Rates of one GPU are those of the H100 in docs/performance.md; what they are multiplied by (sizes, counts, bytes) is what the program does.
Network, latency and disk are assumptions, one connection a rank. Prints a table for each job: seconds of its stages and the efficiency
T(1) / (n T(n)), of the fit alone and of the whole job.
"""
import argparse
from dataclasses import dataclass

# Measured on one H100, float32 (docs/performance.md, "On a GPU").
EXACT_ITERATION = 1954e-6 / 1024**2  # seconds a pixel: an iteration of POGM with up to 64 dual passes
EXACT_PRODUCT = 252e-6 / 1024**2  # a fused step of Adam: transforms and kernel
NONUNIFORM = 9.6e9  # points a second, one type
LOOSE_PAIR = 10.9e9  # points a second, both types and chi^2
AVERAGED = 1e7 / 20.9e-3  # visibilities a second into cells, by two threads of a CPU
BYTES_OF_VISIBILITY = 8 + 8 + 8 + 16 + 8  # u, v, weight, complex data and a frequency's share
FILES_OF_IMAGE = 5  # image, residual, dirty image, error map, checkpoint
HOST_TO_GPU = 25e9  # bytes a second, of which sorted points need 32 a visibility
EPOCHS = 500


@dataclass
class Machine:
    ranks: int
    network: float  # bytes a second of each rank
    latency: float
    disk: float

    def all_reduce(self, nbytes):
        """A ring's."""
        if self.ranks == 1:
            return 0.0
        return 2 * nbytes * (self.ranks - 1) / self.ranks / self.network + 2 * self.latency * (self.ranks - 1).bit_length()


def products(visibilities):
    """Dirty image, residual and beam: three sums over visibilities."""
    return 3 * (visibilities / NONUNIFORM + 32 * visibilities / HOST_TO_GPU)


def cube(machine, channels=256, npix=1024, visibilities=10**6):
    """--shard channels of one file of arrays: each rank reads and averages its own"""
    n = machine.ranks
    own = -(-channels // n)  # of the rank with the most
    return {
        "reading": own * visibilities * BYTES_OF_VISIBILITY / machine.disk,
        "averaging": own * visibilities / AVERAGED,
        "kernels": own * (2 * visibilities / NONUNIFORM + 32 * visibilities / HOST_TO_GPU),
        "fit": EPOCHS * (own * npix**2 * EXACT_ITERATION + 2 * machine.all_reduce(50)),
        "products": products(own * visibilities),
        "files": FILES_OF_IMAGE * channels * npix**2 * 4 / machine.disk,
    }


def one_image(machine, npix=8192, visibilities=10**9):
    """--shard visibilities, the exact likelihood: the first rank makes the fit."""
    n = machine.ranks
    return {
        "reading": visibilities * BYTES_OF_VISIBILITY / machine.disk,
        "averaging": visibilities / AVERAGED,
        "kernels": 2 * visibilities / n / NONUNIFORM + 32 * visibilities / n / HOST_TO_GPU
        + machine.all_reduce(16 * npix * (npix + 1) + 12 * npix**2),
        "fit": EPOCHS * npix**2 * EXACT_ITERATION,
        "products": products(visibilities),
        "files": FILES_OF_IMAGE * npix**2 * 4 / machine.disk,
    }


def one_image_in_rows(machine, npix=8192, visibilities=10**9):
    """Rows of the image on each rank (SlabObjective): no rank holds it whole."""
    stages = one_image(machine, npix, visibilities)
    n = machine.ranks
    exchanged = 0 if n == 1 else 48 * npix**2 * (n - 1) / n / n / machine.network + 4 * (n - 1) * machine.latency
    halos = 0 if n == 1 else 4 * (2 * npix * 4 / machine.network + machine.latency)
    stages["fit"] = EPOCHS * (npix**2 * EXACT_PRODUCT / n + exchanged + halos + machine.all_reduce(50))
    return stages


def one_loose_image(machine, npix=8192, visibilities=10**9):
    """--shard visibilities --likelihood loose: samples on each rank, the image on the first."""
    stages = one_image(machine, npix, visibilities)
    n = machine.ranks
    image = 4 * npix**2
    sent = 0 if n == 1 else image / machine.network + machine.latency * (n - 1).bit_length()
    stages["kernels"] = 32 * visibilities / n / HOST_TO_GPU
    update = npix**2 * EXACT_PRODUCT / 4  # no plane of twice the size is transformed on the first rank: a quarter of the pixels
    stages["fit"] = EPOCHS * (visibilities / n / LOOSE_PAIR + update + sent + machine.all_reduce(image))
    return stages


JOBS = {
    "cube of 256 channels of 1024², 10⁶ visibilities each, shared by channels (POGM)": cube,
    "one image of 8192², 10⁹ visibilities, exact, shared by visibilities (POGM)": one_image,
    "the same in rows of the image (Adam, SlabObjective)": one_image_in_rows,
    "the same, loose, shared by visibilities (Adam)": one_loose_image,
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ranks", default="1,4,16,64")
    arguments.add_argument("--network", type=float, default=25.0, help="GB/s of each rank (25)")
    arguments.add_argument("--latency", type=float, default=10.0, help="microseconds of a message (10)")
    arguments.add_argument("--disk", type=float, default=2.0, help="GB/s at which one rank reads and writes, whatever the others do (2)")
    given = arguments.parse_args()
    for name, job in JOBS.items():
        print(f"\n{name}, seconds of {EPOCHS} epochs\n")
        alone = job(Machine(1, given.network * 1e9, given.latency * 1e-6, given.disk * 1e9))
        print("| GPUs | " + " | ".join(alone) + " | efficiency of kernels and fit | of the whole |")
        print("|---" * (len(alone) + 3) + "|")
        for ranks in map(int, given.ranks.split(",")):
            stages = job(Machine(ranks, given.network * 1e9, given.latency * 1e-6, given.disk * 1e9))
            shared = [sum(of[stage] for stage in ("kernels", "fit")) for of in (alone, stages)]
            whole = [sum(of.values()) for of in (alone, stages)]
            efficiencies = [100 * one / (ranks * many) for one, many in (shared, whole)]
            print(f"| {ranks} | " + " | ".join(f"{seconds:.3g}" for seconds in stages.values())
                  + "".join(f" | {efficiency:.0f} %" for efficiency in efficiencies) + " |")


if __name__ == "__main__":
    main()
