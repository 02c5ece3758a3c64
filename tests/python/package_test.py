"""The Python module beside numbers of its own, of torch's autograd and of the C++ program; run by scripts/check_python."""

import importlib.metadata
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import torch

import mpol_cpp as mpol

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
COORDS = mpol.GridCoords(cell_size=0.1, npix=64)


def observation(nchan=1, nvis=400, seed=3, dtype=np.float64):
    """Visibilities of a point source of 1 Jy, 0.5 arcsec to the East and 0.3 to the North, with noise."""
    random = np.random.default_rng(seed)
    u, v = random.uniform(-6e5, 6e5, (2, nvis))
    arcsec = np.pi / 648000
    model = np.exp(-2j * np.pi * (0.5 * arcsec * u + 0.3 * arcsec * v)) * np.ones((nchan, 1))
    sigma = 0.05
    noise = sigma * (random.standard_normal((nchan, nvis)) + 1j * random.standard_normal((nchan, nvis)))
    complex_dtype = np.complex64 if dtype == np.float32 else np.complex128
    return u.astype(dtype), v.astype(dtype), np.full((nchan, nvis), sigma**-2, dtype), (model + noise).astype(complex_dtype)


class Arrays(unittest.TestCase):
    def test_arrays_of_numpy_are_shared_not_copied(self):
        u, v, weight, data = observation()
        visibilities = mpol.Visibilities(u, v, weight, data)
        self.assertEqual((visibilities.nchan, visibilities.nvis), data.shape)
        self.assertEqual(visibilities.data.data_ptr(), data.ctypes.data)
        self.assertEqual(visibilities.weights.data_ptr(), weight.ctypes.data)

    def test_dtypes_and_tensors_are_kept(self):
        for dtype, expected in ((np.float32, torch.complex64), (np.float64, torch.complex128)):
            visibilities = mpol.Visibilities(*(torch.from_numpy(array) for array in observation(dtype=dtype)))
            self.assertEqual(visibilities.data.dtype, expected)

    def test_units_of_u_and_v(self):
        u, v, weight, data = observation()
        frequency = 2e11
        metres = 299792458.0 / frequency
        for unit, factor in (("lambda", 1.0), ("klambda", 1e-3), ("m", metres)):
            visibilities = mpol.Visibilities(u * factor, v * factor, weight, data, frequency=frequency, uv_unit=unit)
            np.testing.assert_allclose(visibilities.uv(0)[0].numpy(), u, rtol=1e-12)

    def test_lists_keep_the_digits_of_python(self):
        visibilities = mpol.Visibilities([123456.789, 1e5], [1e5, -2e5], [1.0, 2.0], [1 + 2j, 3 - 4j])
        self.assertEqual(float(visibilities.uv(0)[0][0]), 123456.789)
        self.assertEqual(visibilities.weights.dtype, torch.float64)

    def test_one_weight_for_all_channels(self):
        u, v, weight, data = observation(nchan=3)
        visibilities = mpol.Visibilities(u, v, weight[0], data)
        torch.testing.assert_close(visibilities.weights, torch.from_numpy(weight))

    def test_errors_are_exceptions_of_python_too(self):
        u, v, weight, data = observation()
        with self.assertRaises(mpol.ShapeError):
            mpol.Visibilities(u[1:], v[1:], weight, data)
        with self.assertRaisesRegex(mpol.DataError, "weight"):
            mpol.Visibilities(u, v, 0 * weight, data)
        with self.assertRaisesRegex(ValueError, "npix"):  # the built-in one
            mpol.GridCoords(0.1, 63)
        with self.assertRaisesRegex(mpol.Error, "needs frequency"):
            mpol.Visibilities(u, v, weight, data, uv_unit="m")
        with self.assertRaises(OSError):
            mpol.read_visibilities("not/there.npz")
        with self.assertRaisesRegex(mpol.ValueError, "natural, uniform, briggs"):
            mpol.DirtyImager(COORDS, mpol.Visibilities(u, v, weight, data), weighting="robust")
        with self.assertRaises(TypeError):
            mpol.GridCoords(cell=0.1, npix=64)


class Operators(unittest.TestCase):
    def test_a_point_source_is_where_it_was_put(self):
        image = mpol.DirtyImager(COORDS, mpol.Visibilities(*observation()), weighting="natural").image()[0]
        row, column = np.unravel_index(int(image.argmax()), image.shape)
        self.assertAlmostEqual(float(COORDS.sky_x[row, column]), 0.5, delta=0.06)
        self.assertAlmostEqual(float(COORDS.sky_y[row, column]), 0.3, delta=0.06)
        self.assertAlmostEqual(float(image.max()), 1.0, delta=0.1)

    def test_nufft_is_the_explicit_sum_and_has_an_adjoint(self):
        visibilities = mpol.Visibilities(*observation(nvis=50))
        nufft = mpol.Nufft(COORDS, visibilities, tolerance=1e-10)
        sky = torch.rand(1, 64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        made = nufft(sky)
        u, v = visibilities.uv(0)
        arcsec = np.pi / 648000
        phase = -2 * np.pi * arcsec * (u[:, None, None] * COORDS.sky_x + v[:, None, None] * COORDS.sky_y)
        explicit = COORDS.cell_area * (sky[0] * torch.polar(torch.ones_like(phase), phase)).sum((-2, -1))
        torch.testing.assert_close(made[0], explicit, rtol=1e-8, atol=1e-8)
        other = torch.randn(1, 50, dtype=torch.complex128, generator=torch.Generator().manual_seed(2))
        left = (made.conj() * other).sum().real
        torch.testing.assert_close(left, (sky * nufft.adjoint(other)).sum(), rtol=1e-8, atol=1e-8)

    def test_gradients_cross_the_border(self):
        visibilities = mpol.Visibilities(*observation())
        sky = (0.1 + torch.rand(1, 64, 64, dtype=torch.float64)).requires_grad_()
        for likelihood in (
            mpol.ExactLikelihood(COORDS, visibilities),
            mpol.LooseLikelihood(COORDS, visibilities, tolerance=1e-10),
            mpol.GriddedLikelihood(mpol.DataAverager(COORDS, visibilities).to_dataset()),
        ):
            with self.subTest(likelihood.name):
                scaled = 2 * sky  # a node of Python's below, one of C++'s above
                (gradient,) = torch.autograd.grad(likelihood.chi_squared(scaled).sum(), sky)
                direction = torch.rand_like(sky)
                step = 1e-4
                difference = likelihood.chi_squared(2 * (sky + step * direction)) - likelihood.chi_squared(2 * (sky - step * direction))
                self.assertAlmostEqual(difference.sum().item() / (2 * step) / float((gradient * direction).sum()), 1, delta=1e-6)

    def test_prediction_and_chi_squared_agree(self):
        u, v, weight, data = observation(nchan=2)
        visibilities = mpol.Visibilities(u, v, weight, data)
        sky = torch.rand(2, 64, 64, dtype=torch.float64)
        residual = mpol.predict(COORDS, sky, visibilities) - torch.from_numpy(data)
        expected = (torch.from_numpy(weight) * residual.abs() ** 2).sum()
        made = mpol.ExactLikelihood(COORDS, visibilities).chi_squared(sky)
        torch.testing.assert_close(made, expected, rtol=1e-8, atol=0)


class Fits(unittest.TestCase):
    def setUp(self):
        self.visibilities = mpol.Visibilities(*observation())
        self.dataset = mpol.DataAverager(COORDS, self.visibilities).to_dataset()

    def objective(self, *terms):
        return mpol.Objective(mpol.GriddedLikelihood(self.dataset), list(terms))

    def test_the_loop_by_hand_goes_where_the_trainer_goes(self):
        terms = [mpol.terms.sparsity(1e-4), mpol.terms.tv_image(1e-4)]
        by_hand = mpol.SimpleNet(COORDS, dtype=torch.float64)
        optimizer = torch.optim.Adam(by_hand.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            visibilities, sky = by_hand(), by_hand.sky_cube
            loss = (
                mpol.losses.nll_gridded(visibilities, self.dataset)
                + 1e-4 * mpol.losses.sparsity(sky)
                + 1e-4 * mpol.losses.tv_image(sky)
            )
            loss.backward()
            optimizer.step()
        trained = mpol.SimpleNet(COORDS, dtype=torch.float64)
        result = mpol.Trainer(trained, self.objective(*terms), learning_rate=0.1, epochs=20).fit()
        torch.testing.assert_close(trained.make_sky(), by_hand.make_sky(), rtol=1e-6, atol=1e-9)
        self.assertEqual(result.epochs, 20)
        self.assertEqual(result.history["total"].shape, (20,))
        self.assertAlmostEqual(float(result.history["total"][19]), loss.item(), delta=1e-6 * loss.item())
        self.assertEqual(result.step, "fused")

    def test_terms_and_likelihoods_of_python(self):
        energy = mpol.Term("energy", 0.01, lambda out: out.sky.square().sum((-3, -2, -1)))
        likelihood = mpol.GriddedLikelihood(self.dataset)
        own = mpol.FunctionLikelihood(COORDS, lambda sky: likelihood.chi_squared(sky), likelihood.normalizer)
        images = []
        for of_python in (likelihood, own):
            net = mpol.GriddedNet(COORDS, dtype=torch.float64)
            result = mpol.Trainer(net, mpol.Objective(of_python, [energy]), learning_rate=0.1, epochs=10).fit()
            self.assertEqual(result.step, "eager")
            self.assertLess(result.loss["total"], float(result.history["total"][0]))
            images.append(net.make_sky().detach())
        torch.testing.assert_close(*images, rtol=1e-9, atol=1e-12)

    def test_pixels_of_either_sign(self):
        dark = -torch.rand(1, 64, 64, dtype=torch.float64)
        mask = torch.ones(64, 64, dtype=torch.float64)
        mask[0] = 0
        net = mpol.GriddedNet(COORDS, base_cube=dark, pixel_mapping="either_sign", mask=mask, smoothing="none")
        torch.testing.assert_close(net.make_sky().detach(), dark * mask, rtol=0, atol=0)
        value = self.objective(mpol.terms.sparsity(2.0)).evaluate(net).terms[0].item()
        self.assertAlmostEqual(value, -2 * (dark * mask).sum().item(), places=9)
        with self.assertRaisesRegex(ValueError, "either_sign"):
            mpol.GriddedNet(COORDS, pixel_mapping="signed")

    def test_settings_of_priors_by_position_and_by_name(self):
        sky = torch.rand(1, 64, 64, dtype=torch.float64)
        net = mpol.GriddedNet(COORDS, base_cube=sky, pixel_mapping="nonnegative", smoothing="none")
        values = [
            self.objective(term).evaluate(net).terms[0].item()
            for term in (mpol.terms.entropy(2.0, 1e-3, 5.0), mpol.terms.entropy(2.0, total_flux=5.0, prior_intensity=1e-3))
        ]
        self.assertEqual(*values)
        self.assertAlmostEqual(values[0], 2 * mpol.losses.entropy(sky, 1e-3, 5.0).item(), delta=1e-9 * abs(values[0]))
        for wrong in (lambda: mpol.terms.tsv(1.0, 2.0), lambda: mpol.terms.psd(1.0), lambda: mpol.terms.tv_image(1.0, eps=1.0)):
            with self.assertRaises(TypeError):
                wrong()

    def test_errors_of_own_functions_come_back(self):
        def wrong(out):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            mpol.Trainer(mpol.GriddedNet(COORDS), self.objective(mpol.Term("wrong", 1.0, wrong)), epochs=2).fit()

    def test_callbacks_see_each_epoch_and_end_the_fit(self):
        seen = []

        def stop_at_five(epoch):
            seen.append(epoch.epoch)
            return len(seen) < 5

        result = mpol.Trainer(mpol.GriddedNet(COORDS), self.objective(), epochs=50, callback=stop_at_five).fit()
        self.assertEqual(seen, [0, 1, 2, 3, 4])
        self.assertEqual((result.epochs, result.stop_reason), (5, "callback"))

    def test_ctrl_c_ends_a_fit_with_its_exception(self):
        # Whoever starts this in the background may have Ctrl-C ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        own = mpol.Term("own", 1e-3, lambda out: out.sky.square().sum((-3, -2, -1)))
        for term in (mpol.terms.sparsity(1e-3), own):
            with self.subTest(term.name):
                net = mpol.GriddedNet(COORDS)
                timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
                timer.start()
                with self.assertRaises(KeyboardInterrupt):
                    mpol.Trainer(net, self.objective(term), epochs=10**8).fit()
                timer.join()
                self.assertTrue(bool(net.make_sky().isfinite().all()))

    def test_other_threads_go_on_meanwhile(self):
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.001):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        mpol.Trainer(mpol.GriddedNet(mpol.GridCoords(0.1, 64)), self.objective(mpol.terms.tv_image(1e-3)), epochs=2000).fit()
        done.set()
        thread.join()
        self.assertGreater(len(ticks), 3)

    def test_pogm_converges_to_one_image_from_two_starts(self):
        images = []
        for start in (mpol.auto_start(self.dataset), torch.full((1, 64, 64), 0.01, dtype=torch.float64)):
            net = mpol.GriddedNet(COORDS, base_cube=start, pixel_mapping="nonnegative")
            objective = self.objective(mpol.terms.sparsity(0.01), mpol.terms.tv_image(0.01))
            result = mpol.Trainer(net, objective, optimizer="pogm", epochs=20000, tolerance=1e-5).fit()
            self.assertTrue(result.converged)
            self.assertGreaterEqual(result.gap, 0)
            images.append(net.make_sky().detach())
        self.assertLess(float((images[0] - images[1]).abs().max()), 1e-2 * float(images[0].max()))

    def test_state_dicts_of_torch(self):
        net = mpol.GriddedNet(COORDS)
        state = net.state_dict()
        self.assertIn("bcube.base_cube", state)
        with tempfile.TemporaryDirectory() as folder:
            torch.save(state, folder + "/state.pt")
            torch.testing.assert_close(torch.load(folder + "/state.pt")["bcube.base_cube"], net.base_cube.detach())
        state = {name: tensor.clone() + 1 for name, tensor in state.items()}
        net.load_state_dict(state)
        torch.testing.assert_close(net.base_cube.detach(), state["bcube.base_cube"])
        for wrong in ({}, {**state, "more": torch.ones(1)}, {**state, "bcube.base_cube": torch.ones(1)}):
            with self.assertRaises(mpol.ShapeError):
                net.load_state_dict(wrong)
        self.assertIs(net.to(dtype=torch.float64), net)
        self.assertEqual(net.make_sky().dtype, torch.float64)

    def test_batches_of_problems(self):
        nets = mpol.GriddedNet(COORDS, base_cube=torch.full((3, 1, 64, 64), -3.0, dtype=torch.float64))
        lambdas = [1e-4, 1e-2, 1.0]
        objective = self.objective(mpol.terms.sparsity(1.0).with_weights(lambdas))
        mpol.Trainer(nets, objective, epochs=100).fit()
        fluxes = nets.make_sky().sum((-3, -2, -1))
        self.assertTrue(bool(fluxes[0] > fluxes[1] > fluxes[2]))

    def test_channels_have_weights_of_their_own(self):
        term = mpol.terms.tv_image(1.0).with_channel_factors([1.0, 0.25])
        self.assertEqual((term.weights, term.channel_factors), ([1.0], [1.0, 0.25]))
        with self.assertRaises(ValueError):
            mpol.terms.tv_channel(1.0).with_channel_factors([1.0, 0.25])

    def test_cross_validation_takes_the_least_score(self):
        seen = []
        scan = mpol.cross_validate(
            COORDS, self.visibilities, [mpol.terms.sparsity(1.0)], folds=4, search="compass", points=5,
            on_point=lambda scan: seen.append(scan.points[-1][1]),
        )
        scores = [score for _, score in scan.points]
        self.assertEqual(seen, scores)
        self.assertEqual(scan.score, min(scores))
        self.assertIn((scan.chosen, scan.score), scan.points)
        self.assertEqual(scan.fits, 4 * len(scores))


class Files(unittest.TestCase):
    def test_round_trips(self):
        with tempfile.TemporaryDirectory() as folder:
            u, v, weight, data = observation(nchan=2)
            mpol.write_npz(folder + "/vis.npz", mpol.Visibilities(u, v, weight, data, frequency=[2e11, 2.1e11]))
            back = mpol.read_visibilities(folder + "/vis.npz")
            torch.testing.assert_close(back.data, torch.from_numpy(data))
            torch.testing.assert_close(back.frequencies, torch.tensor([2e11, 2.1e11], dtype=torch.float64))
            self.assertEqual(mpol.read_visibilities(folder + "/vis.npz", channels=[1]).nchan, 1)
            sky = torch.rand(2, 64, 64)
            mpol.write_fits(folder + "/sky.fits", sky, COORDS, visibilities=back, history=["made by a test"])
            image = mpol.read_fits(folder + "/sky.fits")
            torch.testing.assert_close(image.cube / COORDS.cell_area, sky.double(), rtol=1e-6, atol=0)
            self.assertIn("made by a test", image.history)
            torch.testing.assert_close(image.frequencies, back.frequencies)

    def test_the_image_is_that_of_the_program(self):
        program = os.environ["MPOL_PROGRAM"]
        path = DATA / "hd142527_band9.npz"
        with tempfile.TemporaryDirectory() as folder:
            command = [program, "image", path, "-o", folder + "/out", "--cell-size", "0.08", "--npix", "64", "--dtype", "float64", "--quiet"]
            subprocess.run(command, check=True)
            written = mpol.read_fits(folder + "/out/image.fits")
            summary = json.loads(pathlib.Path(folder + "/out/summary.json").read_text())
        coords = mpol.GridCoords(0.08, 64)
        made = mpol.image(coords, mpol.read_visibilities(path), dtype=torch.float64)
        error = (made * coords.cell_area - written.cube).abs().max() / written.cube.max()
        self.assertLess(float(error), 1e-2)
        self.assertAlmostEqual(float(made.sum()) * coords.cell_area, summary["flux_jy"][0], delta=0.003 * summary["flux_jy"][0])


def mpol_version():
    try:
        return importlib.metadata.version("mpol")
    except importlib.metadata.PackageNotFoundError:
        return "none"


class Page(unittest.TestCase):
    def test_the_code_of_docs_python_runs(self):
        page = (DATA.parent / "docs" / "python.md").read_text()
        # The block of MPoL's own loop begins with ```py instead: it runs only where MPoL 0.3 is installed, in its place among ours.
        self.assertEqual(len(re.findall(r"^```py\n", page, re.M)), 1)
        kinds = "py(?:thon)?" if mpol_version().startswith("0.3") else "python"
        code = "\n".join(re.findall(rf"^```{kinds}\n(.*?)^```", page, re.S | re.M))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "data").symlink_to(DATA)
            ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertTrue((pathlib.Path(folder) / "disc.fits").exists())


class Words(unittest.TestCase):
    def test_every_name_is_explained(self):
        for module in (mpol._core, mpol.terms, mpol.losses):
            for name, value in vars(module).items():
                if name.startswith("_") or name in ("terms", "losses"):
                    continue
                members = vars(value).items() if isinstance(value, type) else ()
                for member, what in [("", value), *members]:
                    if not member.startswith("_"):
                        with self.subTest(f"{name}.{member}"):
                            words = (what.__doc__ or "").split("\n\n", 1)[-1].strip()  # behind the signature of a function
                            self.assertTrue(words and not words.startswith(f"{member or name}("))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
