#!/usr/bin/env python3
"""Reference data of tests/sparse_coding: SPORCO's functional values on small problems, with its own defaults.

  pip install sporco==0.2.2.post1 && python tests/sparse_coding/make_reference.py tests/data/golden/sporco.npz

Images are written with channels first. Of each case NAME: NAME_objective, NAME_iterations, NAME_rho and, where it is small,
the solution.
"""

import sys

import numpy as np
import sporco.prox
from sporco.admm import bpdn, cbpdn, cbpdntv, rpca, tvl1, tvl2
from sporco.dictlrn import onlinecdl

rng = np.random.default_rng(18)
out = {}


def channels_first(image):
    return np.moveaxis(image, -1, 0) if image.ndim == 3 else image


def keep(name, solver, **arrays):
    last = solver.itstat[-1]
    out[f"{name}_objective"] = np.float64(last.ObjFun)
    out[f"{name}_iterations"] = np.int64(len(solver.itstat))
    out[f"{name}_rho"] = np.float64(last.Rho)
    for key, array in arrays.items():
        out[f"{name}_{key}"] = np.ascontiguousarray(array, dtype=np.float64)


def run(name, solver, **arrays):
    solver.solve()
    keep(name, solver, **arrays)
    return solver


# ---- vectors
dictionary = rng.normal(size=(20, 40))
dictionary /= np.linalg.norm(dictionary, axis=0)
signals = rng.normal(size=(20, 5))
out["dictionary"], out["signals"] = dictionary, signals
solver = run("bpdn", bpdn.BPDN(dictionary, signals, 0.2, bpdn.BPDN.Options({"MaxMainIter": 60})))
out["bpdn_x"] = solver.Y
run("bpdn_joint", bpdn.BPDNJoint(dictionary, signals, 0.1, 0.3, bpdn.BPDNJoint.Options({"MaxMainIter": 60})))
out["wide"] = dictionary.T.copy()  # more rows than columns
out["bpdn_tall_signals"] = np.random.default_rng(19).normal(size=(40, 3))
run("bpdn_tall", bpdn.BPDN(out["wide"], out["bpdn_tall_signals"], 0.2, bpdn.BPDN.Options({"MaxMainIter": 30})))

matrix = rng.normal(size=(18, 3)) @ rng.normal(size=(3, 25)) + 5 * (rng.random((18, 25)) < 0.05)
out["matrix"] = matrix
solver = run("rpca", rpca.RobustPCA(matrix, None, rpca.RobustPCA.Options({"MaxMainIter": 40, "RelStopTol": 1e-5})))
out["rpca_low_rank"], out["rpca_sparse"] = solver.X, solver.Y

# ---- images of rectangles and noise
image = np.zeros((24, 30, 3))
image[4:14, 6:20] = (0.9, 0.5, 0.2)
image[10:20, 12:26, 1:] += 0.4
clean = image
image = clean + 0.1 * rng.normal(size=image.shape)
gray = image[..., 0].copy()
out["color"], out["gray"] = channels_first(image), gray
spikes = gray.copy()
spikes[rng.random(gray.shape) < 0.2] = 1
out["spikes"] = spikes
kernel = np.outer(np.hanning(7)[1:-1], np.hanning(6)[1:-1])
kernel /= kernel.sum()
blurred = np.real(np.fft.ifft2(np.fft.fft2(kernel, gray.shape) * np.fft.fft2(clean[..., 0])))
blurred += 0.01 * rng.normal(size=gray.shape)
out["kernel"], out["blurred"] = kernel, blurred

automatic = {"AutoRho": {"Enabled": True}}
run("tvl2", tvl2.TVL2Denoise(gray, 0.1, tvl2.TVL2Denoise.Options({"MaxMainIter": 50})))
example = {"MaxMainIter": 60, "gEvalY": False, **automatic}
run("tvl2_example", tvl2.TVL2Denoise(gray, 0.1, tvl2.TVL2Denoise.Options(example)))
run("tvl2_color", tvl2.TVL2Denoise(image, 0.1, tvl2.TVL2Denoise.Options(example), caxis=2))
run("tvl2_color_apart", tvl2.TVL2Denoise(image, 0.1, tvl2.TVL2Denoise.Options(example)))
run("tvl2_deconv", tvl2.TVL2Deconv(kernel, blurred, 0.005, tvl2.TVL2Deconv.Options({"MaxMainIter": 50, "RelStopTol": 1e-6})))
run("tvl1", tvl1.TVL1Denoise(spikes, 0.8, tvl1.TVL1Denoise.Options({"MaxMainIter": 50})))
run("tvl1_example", tvl1.TVL1Denoise(spikes, 0.8, tvl1.TVL1Denoise.Options({**example, "RelStopTol": 1e-4})))
run("tvl1_deconv", tvl1.TVL1Deconv(kernel, blurred, 0.02, tvl1.TVL1Deconv.Options({"MaxMainIter": 50, "RelStopTol": 1e-6})))

# ---- convolutional
filters = rng.normal(size=(5, 4, 6))
filters /= np.sqrt((filters ** 2).sum(axis=(0, 1)))
color_filters = rng.normal(size=(5, 4, 3, 6))
color_filters /= np.sqrt((color_filters ** 2).sum(axis=(0, 1, 2)))
out["filters"] = np.moveaxis(filters, -1, 0)
out["color_filters"] = np.transpose(color_filters, (3, 2, 0, 1))
few = {"MaxMainIter": 40, "RelStopTol": 1e-6}
solver = run("cbpdn", cbpdn.ConvBPDN(filters, gray, 0.05, cbpdn.ConvBPDN.Options(few)))
out["cbpdn_reconstruction"] = solver.reconstruct().squeeze()
run("cbpdn_positive", cbpdn.ConvBPDN(filters, gray, 0.05, cbpdn.ConvBPDN.Options({**few, "NonNegCoef": True, "AuxVarObj": True})))
run("cbpdn_stops", cbpdn.ConvBPDN(filters, gray, 0.05, cbpdn.ConvBPDN.Options({"MaxMainIter": 500, "RelStopTol": 5e-3})))
run("cbpdn_color", cbpdn.ConvBPDN(filters, image, 0.05, cbpdn.ConvBPDN.Options(few), dimK=0))
run("cbpdn_color_filters", cbpdn.ConvBPDN(color_filters, image, 0.05, cbpdn.ConvBPDN.Options(few), dimK=0))
run("cbpdn_joint", cbpdn.ConvBPDNJoint(filters, image, 0.05, 0.02, cbpdn.ConvBPDNJoint.Options(few), dimK=0))
run("cbpdn_gradient", cbpdn.ConvBPDNGradReg(filters, gray, 0.05, 0.02, cbpdn.ConvBPDNGradReg.Options(few)))
mask = (rng.random(gray.shape) > 0.3).astype(float)
out["mask"] = mask
run("cbpdn_mask", cbpdn.ConvBPDNMaskDcpl(filters, gray, 0.05, mask, cbpdn.ConvBPDNMaskDcpl.Options({**few, **automatic})))
run("cbpdn_mask_fixed", cbpdn.ConvBPDNMaskDcpl(filters, gray, 0.05, mask, cbpdn.ConvBPDNMaskDcpl.Options(few)))


class ScalarTV(cbpdntv.ConvBPDNScalarTV):
    """SPORCO's own shrinks all differences by their length together, without an axis: not the map of the functional that it
    reports, which ends above that of this one."""

    def ystep(self):
        sums = self.AX + self.U
        self.Y[..., :-1] = sporco.prox.prox_l2(sums[..., :-1], self.mu / self.rho, axis=-1)
        self.Y[..., -1] = sporco.prox.prox_l1(sums[..., -1], self.lmbda / self.rho * self.Wl1)


run("cbpdn_tv", ScalarTV(filters, gray, 0.05, 0.02, cbpdntv.ConvBPDNScalarTV.Options(few)))
run("bug_cbpdn_tv", cbpdntv.ConvBPDNScalarTV(filters, gray, 0.05, 0.02, cbpdntv.ConvBPDNScalarTV.Options(few)))

# ---- a dictionary learned from images one after the other
learner = onlinecdl.OnlineConvBPDNDictLearn(filters, 0.1, onlinecdl.OnlineConvBPDNDictLearn.Options({
    "CBPDN": {"MaxMainIter": 20}}))
for index in (0, 1, 2, 0):
    learner.solve(image[..., index].copy())
out["learned_filters"] = np.moveaxis(learner.getdict().squeeze(), -1, 0)
out["learned_objective"] = np.float64(learner.itstat[-1].ObjFun)

np.savez_compressed(sys.argv[1], **{key: np.ascontiguousarray(value) for key, value in out.items()})
