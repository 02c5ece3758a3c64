"""torch.ops.mpol beside torch's own operations and their gradients: the library alone is loaded, not our Python module.

MPOL_LIBRARY names libmpol.so; run by scripts/check_python.
"""

import math
import os
import unittest

import torch
from torch.autograd import gradcheck, gradgradcheck

torch.ops.load_library(os.environ["MPOL_LIBRARY"])
ops, classes = torch.ops.mpol, torch.classes.mpol

ARCSEC = math.pi / 648000
NPIX, NCHAN, CELL = 12, 2, 0.1


def cube(*problems, dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*problems, NCHAN, NPIX, NPIX, dtype=dtype, generator=generator).requires_grad_()


def baselines(nvis=40, seed=2):
    generator = torch.Generator().manual_seed(seed)
    longest = 0.45 / (CELL * ARCSEC)
    return tuple((2 * torch.rand(nvis, dtype=torch.float64, generator=generator) - 1) * longest for _ in range(2))


def explicit_visibilities(sky, u, v):
    """The sum over pixels that a nonuniform transform stands for."""
    pixel = torch.arange(NPIX, dtype=torch.float64)
    l, m = (NPIX // 2 - 1 - pixel) * CELL * ARCSEC, (pixel - NPIX // 2) * CELL * ARCSEC  # East is to the left
    phases = torch.exp(-2j * math.pi * (u[:, None, None] * l[None, None, :] + v[:, None, None] * m[None, :, None]))
    return CELL**2 * torch.einsum("...cml,kml->...ck", sky.to(torch.complex128), phases)


def hann(image):
    kernel = torch.tensor([0.25, 0.5, 0.25], dtype=image.dtype)
    weights = (kernel[:, None] * kernel[None, :])[None, None]
    flat = image.reshape(-1, 1, NPIX, NPIX)
    return torch.nn.functional.conv2d(flat, weights, padding=1).reshape(image.shape)


class Transforms(unittest.TestCase):
    def test_half_plane(self):
        image = cube()
        torch.testing.assert_close(ops.half_plane_fft(image), torch.fft.rfft2(image))
        self.assertTrue(gradcheck(ops.half_plane_fft, (image,)))
        self.assertTrue(gradgradcheck(ops.half_plane_fft, (image,)))
        self.assertTrue(gradcheck(ops.half_plane_adjoint, (torch.fft.rfft2(image).detach().requires_grad_(),)))
        upstream = torch.fft.rfft2(cube(seed=5)).detach()
        ours, theirs = (torch.autograd.grad(f(image), image, upstream)[0] for f in (ops.half_plane_fft, torch.fft.rfft2))
        torch.testing.assert_close(ours, theirs)

    def test_hann(self):
        image = cube()
        torch.testing.assert_close(ops.hann(image), hann(image))
        self.assertTrue(gradcheck(ops.hann, (image,)))

    def test_nonuniform_transforms(self):
        u, v = baselines()
        nufft = classes.Nufft(u, v, NCHAN, NPIX, CELL, 1e-11)
        sky = cube(3)
        expected = explicit_visibilities(sky, u, v)
        torch.testing.assert_close(ops.nufft_type2(sky, nufft), expected, rtol=0, atol=1e-9)
        upstream = torch.randn(expected.shape, dtype=torch.complex128)
        wanted = torch.autograd.grad(expected, sky, upstream)[0]
        torch.testing.assert_close(torch.autograd.grad(ops.nufft_type2(sky, nufft), sky, upstream)[0], wanted, rtol=0, atol=1e-9)
        torch.testing.assert_close(ops.nufft_type1(upstream, nufft), wanted, rtol=0, atol=1e-9)
        single = ops.nufft_type2(sky.detach().float(), classes.Nufft(u, v, NCHAN, NPIX, CELL, 1e-6))
        self.assertEqual(single.dtype, torch.complex64)
        torch.testing.assert_close(single.to(torch.complex128), expected.detach(), rtol=0, atol=1e-4)

    def test_toeplitz_product_is_half_the_curvature_of_chi_squared(self):
        u, v = baselines()
        sky = cube()
        weights = torch.rand(NCHAN, len(u), dtype=torch.float64) + 0.5
        data = torch.randn(NCHAN, len(u), dtype=torch.complex128)
        normal = classes.NormalOperator(u, v, weights, data, NPIX, CELL)
        residual = explicit_visibilities(sky, u, v) - data
        chi_squared = (weights * residual.abs().square()).sum()
        form = (sky * (ops.toeplitz_product(sky, normal) - 2 * normal.dirty())).sum() + normal.constant().sum()
        torch.testing.assert_close(form, chi_squared)
        ours, theirs = (torch.autograd.grad(value, sky)[0] for value in (form, chi_squared))
        torch.testing.assert_close(ours, theirs)


class Fused(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(7)
        flags = torch.rand(NCHAN * NPIX * NPIX, generator=generator) < 0.3
        self.cells = flags.nonzero()[:, 0]
        self.data = torch.randn(len(self.cells), dtype=torch.complex128, generator=generator)
        self.weights = torch.rand(len(self.cells), dtype=torch.float64, generator=generator) + 0.5

    def loss(self, base, lambdas):
        return classes.FusedLoss(base, self.cells, self.data, self.weights, CELL, lambdas)

    def by_torch(self, base, sparsity, tsv):
        sky = hann(torch.nn.functional.softplus(base))
        packed = torch.fft.fftshift(sky.flip(-1), dim=(-2, -1))
        planes = CELL**2 * torch.fft.fft2(packed).flatten(-3)[..., self.cells]
        chi_squared = (self.weights * (planes - self.data).abs().square()).sum(-1)
        block = sky[..., :-1, :-1]
        steps = (sky[..., 1:, :-1] - block).square() + (sky[..., :-1, 1:] - block).square()
        return chi_squared / (2 * len(self.cells)) + sparsity * sky.abs().sum((-3, -2, -1)) + tsv * steps.sum((-3, -2, -1))

    def test_loss_and_gradient(self):
        for problems in ((), (3,)):
            base = cube(*problems)
            loss = self.loss(base, {"sparsity": 0.03, "tsv": 0.02})
            expected = self.by_torch(base, 0.03, 0.02)
            torch.testing.assert_close(ops.fused_loss(base, loss), expected)
            gradient = torch.autograd.grad(expected.sum(), base)[0]
            torch.testing.assert_close(torch.autograd.grad(ops.fused_loss(base, loss).sum(), base)[0], gradient)
            value, direct = ops.fused_gradient(base, loss)
            torch.testing.assert_close(value, expected.detach())
            torch.testing.assert_close(direct, gradient)

    def test_optimizers_of_torch(self):
        base = cube()
        with torch.no_grad():
            base.sub_(2)
        loss = self.loss(base, {"sparsity": 1e-3})
        optimizer = torch.optim.RMSprop([base], lr=0.02)
        values = []
        for _ in range(50):
            optimizer.zero_grad()
            value = ops.fused_loss(base, loss)
            value.backward()
            optimizer.step()
            values.append(value.item())
        self.assertLess(values[-1], 0.95 * values[0])

    def test_what_is_wrong_is_named(self):
        base = cube()
        with self.assertRaisesRegex(RuntimeError, "sharpness is no regularizer"):
            self.loss(base, {"sharpness": 1.0})
        loss = self.loss(base, {})
        with self.assertRaisesRegex(RuntimeError, "made for"):
            ops.fused_loss(base.float(), loss)
        with self.assertRaisesRegex(RuntimeError, "first derivatives"):
            torch.autograd.grad(ops.fused_loss(base, loss), base, create_graph=True)


if __name__ == "__main__":
    unittest.main()
