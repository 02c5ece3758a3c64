"""The six steps of MPoL's GPU tutorial with mpol_cpp, then the same left to the trainer, and the image that needs no settings.

usage: python gpu_tutorial.py [visibilities.npz] [image.fits]
"""

import sys
import time

import numpy as np
import torch

import mpol_cpp as mpol

path = sys.argv[1] if len(sys.argv) > 1 else "data/hd142527_band9.npz"
output = sys.argv[2] if len(sys.argv) > 2 else "tutorial.fits"

# 1. a device
device = mpol.select_device()  # a GPU that works, else the CPU, which is said once

# 2. data: arrays of NumPy, as in MPoL
arrays = np.load(path)
visibilities = mpol.Visibilities(arrays["uu"], arrays["vv"], arrays["weight"], arrays["data"])
coords = mpol.GridCoords(cell_size=0.08, npix=128)
dataset = mpol.DataAverager(coords, visibilities).to_dataset()

# 3. the model, 4. both on the device
model = mpol.SimpleNet(coords, nchan=dataset.nchan)
dataset.to(device)
model.to(device)

# 5. an optimizer of torch, 6. the loop
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
started = time.perf_counter()
for epoch in range(100):
    optimizer.zero_grad()
    visibilities_of_model = model()
    sky = model.sky_cube
    loss = (
        mpol.losses.nll_gridded(visibilities_of_model, dataset)
        + 1e-4 * mpol.losses.sparsity(sky)
        + 1e-4 * mpol.losses.tv_image(sky)
    )
    loss.backward()
    optimizer.step()
by_hand = time.perf_counter() - started
print(f"by hand: loss {loss.item():.6g}, {by_hand / 100 * 1e3:.3g} ms an epoch on {device}")

# The loop in three lines: fused steps, checks for divergence, checkpoints, Ctrl-C.
trained = mpol.SimpleNet(coords, nchan=dataset.nchan)
objective = mpol.Objective(mpol.GriddedLikelihood(dataset), [mpol.terms.sparsity(1e-4), mpol.terms.tv_image(1e-4)])
result = mpol.Trainer(trained, objective, learning_rate=0.5, epochs=100, device=device).fit()
last = float(result.history["total"][-1])
print(f"trainer: loss {last:.6g}, {result.seconds / 100 * 1e3:.3g} ms an epoch, {result.step} step ({result.step_reason})")
assert abs(last / loss.item() - 1) < 1e-3, "both take the same steps"

# Nothing to set: the exact likelihood, lambda by the noise, converged.
image = mpol.image(coords, visibilities)
print(f"image: {float(image.sum()) * coords.cell_area:.4g} Jy")
mpol.write_fits(output, image, coords, visibilities=visibilities)
