"""
Images from the visibilities of radio interferometers by regularised maximum likelihood
"""
from __future__ import annotations
import collections.abc
import os
import torch
import typing
from . import terms
from . import losses
__all__: list[str] = ['DataAverager', 'DataError', 'DeviceError', 'DirtyImager', 'DivergedError', 'Epoch', 'Error', 'ExactLikelihood', 'FileError', 'FitsImage', 'FunctionLikelihood', 'FusedLoss', 'GridCoords', 'GriddedDataset', 'GriddedLikelihood', 'GriddedNet', 'ImageModel', 'Likelihood', 'LooseLikelihood', 'ModelOutput', 'NoiseLikelihood', 'Nufft', 'Objective', 'ObjectiveValue', 'Scan', 'ShapeError', 'Term', 'TrainResult', 'Trainer', 'ValueError', 'Visibilities', 'auto_start', 'cross_validate', 'image', 'lambda_unit', 'losses', 'predict', 'read_fits', 'read_visibilities', 'select_device', 'terms', 'write_fits', 'write_npz']
class Error(RuntimeError):
    """
    Base of all errors of mpol_cpp; the text names the value, the limit and the remedy.
    """
class DeviceError(Error):
    """
    A device that is not there, or objects on different ones.
    """
class FileError(Error, OSError):
    """
    A file is missing, unreadable, malformed, or cannot be written.
    """
class DivergedError(Error, ArithmeticError):
    """
    An optimisation left the finite numbers.
    """
class GridCoords:
    """
    The image grid and the uv grid that is its Fourier dual.
    """
    __hash__: typing.ClassVar[None] = None
    def __eq__(self, arg0: GridCoords) -> bool:
        ...
    def __init__(self, cell_size: typing.SupportsFloat, npix: typing.SupportsInt) -> None:
        """
        Pixels of cell_size arcsec, npix (even) along each axis.
        """
    def __repr__(self) -> str:
        ...
    def check_data_fit(self, max_abs_u: typing.SupportsFloat, max_abs_v: typing.SupportsFloat) -> None:
        """
        Raises DataError unless such baselines fit.
        """
    @property
    def cell_area(self) -> float:
        """
        arcsec^2.
        """
    @property
    def cell_size(self) -> float:
        """
        Width of a pixel, arcsec.
        """
    @property
    def dl(self) -> float:
        """
        Width of a pixel, radian.
        """
    @property
    def du(self) -> float:
        """
        Width of a uv cell, wavelengths.
        """
    @property
    def img_ext(self) -> typing.Annotated[list[float], "FixedSize(4)"]:
        """
        Extent for imshow(…, origin="lower"), arcsec.
        """
    @property
    def max_uv(self) -> float:
        """
        The largest |u| or |v| on the grid, wavelengths.
        """
    @property
    def npix(self) -> int:
        """
        Pixels along each axis.
        """
    @property
    def sky_x(self) -> torch.Tensor:
        """
        (npix, npix), offset of each pixel to the East, arcsec.
        """
    @property
    def sky_y(self) -> torch.Tensor:
        """
        (npix, npix), to the North, arcsec.
        """
class Visibilities:
    """
    Loose complex visibilities with weights, V = ∫ I exp(-2πi(ul + vm)), l to the East.
    """
    def __init__(self, uu: typing.Any, vv: typing.Any, weight: typing.Any, data: typing.Any, frequency: typing.Any = None, uv_unit: str = 'lambda') -> None:
        """
        Of arrays (nvis) or (nchan, nvis): u and v in wavelengths (or `klambda`, or `m` with the channels' frequency in Hz), weights in Jy^-2, data complex in Jy. Arrays of NumPy and tensors are not copied.
        """
    def __repr__(self) -> str:
        ...
    def select(self, samples: torch.Tensor) -> Visibilities:
        """
        Some of the samples, by their indices (int64).
        """
    def select_channels(self, channels: collections.abc.Sequence[typing.SupportsInt]) -> Visibilities:
        """
        Some of the channels, from 0, in that order.
        """
    def uv(self, channel: typing.SupportsInt = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """
        u and v of a channel, wavelengths.
        """
    @property
    def data(self) -> torch.Tensor:
        """
        (nchan, nvis) complex, Jy.
        """
    @property
    def frequencies(self) -> torch.Tensor | None:
        """
        (nchan) Hz, or None.
        """
    @property
    def nchan(self) -> int:
        """
        Channels.
        """
    @property
    def nvis(self) -> int:
        """
        Samples of each channel.
        """
    @property
    def weights(self) -> torch.Tensor:
        """
        (nchan, nvis), Jy^-2.
        """
class GriddedDataset:
    """
    Averages of the visibilities in the occupied uv cells.
    """
    def at_cells(self, packed_cube: torch.Tensor) -> torch.Tensor:
        """
        A packed cube at the occupied cells.
        """
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> GriddedDataset:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
    @property
    def cells(self) -> torch.Tensor:
        """
        (ncells) int64, flat indices into the packed cube.
        """
    @property
    def coords(self) -> GridCoords:
        """
        The grid.
        """
    @property
    def ncells(self) -> int:
        """
        Occupied cells of all channels.
        """
    @property
    def nchan(self) -> int:
        """
        Channels.
        """
    @property
    def visibilities(self) -> torch.Tensor:
        """
        (ncells) complex, Jy.
        """
    @property
    def weights(self) -> torch.Tensor:
        """
        (ncells), Jy^-2.
        """
class DataAverager:
    """
    Averages loose visibilities in uv cells.
    """
    def __init__(self, coords: GridCoords, visibilities: Visibilities, hermitian_pairs: bool = False, scatter_check: str = 'warn', mode: str = 'cube') -> None:
        ...
    def to_dataset(self) -> GriddedDataset:
        """
        The averages, in float64.
        """
class DirtyImager:
    """
    Dirty images and beams of the samples at their own u, v.
    """
    def __init__(self, coords: GridCoords, visibilities: Visibilities, weighting: str = 'briggs', robust: typing.SupportsFloat = 0.5, taper: typing.SupportsFloat = 0.0, unit: str = 'Jy/beam', imaging: str = 'exact', mode: str = 'cube') -> None:
        """
        weighting: natural, uniform or briggs with robust; taper: FWHM in arcsec; imaging: exact, or cells as MPoL.
        """
    def beam(self) -> torch.Tensor:
        """
        (nchan, npix, npix), peak 1.
        """
    def beam_area(self) -> torch.Tensor:
        """
        (nchan), arcsec^2.
        """
    def fitted_beam(self) -> list[tuple[float, float, float] | None]:
        """
        Of each channel (major, minor, position angle): arcsec, arcsec, radian from North through East; or None.
        """
    def image(self) -> torch.Tensor:
        """
        (nchan, npix, npix), sky orientation, in the unit asked for.
        """
    def image_of(self, visibilities: torch.Tensor) -> torch.Tensor:
        """
        The same of other visibilities (nchan, nvis) with the weights of these: of data minus model the residual image.
        """
    def noise(self) -> torch.Tensor:
        """
        (nchan): what the weights promise, in the image's unit.
        """
class ImageModel:
    """
    What makes a sky cube of parameters.
    """
    def make_sky(self) -> torch.Tensor:
        """
        (…, nchan, npix, npix), Jy/arcsec^2, sky orientation; differentiable.
        """
    @property
    def coords(self) -> GridCoords:
        """
        The grid.
        """
class GriddedNet(ImageModel):
    """
    Base pixels, softplus, Hann convolution, image, Fourier transform: MPoL's GriddedNet (SimpleNet with start=0.05).
    """
    def __call__(self) -> torch.Tensor:
        ...
    def __init__(self, coords: GridCoords, nchan: typing.SupportsInt = 1, start: typing.SupportsFloat = -3.0, base_cube: torch.Tensor | None = None, pixel_mapping: str = 'softplus', mask: torch.Tensor | None = None, smoothing: str = 'hann', dtype: torch.dtype | None = None) -> None:
        """
        base_cube: start values (…, nchan, npix, npix); leading dimensions are problems of a batch. pixel_mapping: softplus, or nonnegative or either_sign for optimizer="pogm", which needs pixels that are intensities; either_sign: they may be below 0.
        """
    def forward(self) -> torch.Tensor:
        """
        Packed visibilities on the uv cells, (…, nchan, npix, npix) complex, Jy.
        """
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> GriddedNet:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
    @property
    def base_cube(self) -> torch.Tensor:
        """
        The parameters.
        """
    @property
    def flux(self) -> torch.Tensor:
        """
        (…, nchan), Jy, of that image.
        """
    @property
    def sky_cube(self) -> torch.Tensor:
        """
        The image of the last forward() or make_sky().
        """
class ModelOutput:
    """
    What a term sees of a model.
    """
    @property
    def base(self) -> torch.Tensor:
        """
        The base pixels.
        """
    @property
    def coords(self) -> GridCoords:
        """
        The grid.
        """
    @property
    def sky(self) -> torch.Tensor:
        """
        (…, nchan, npix, npix), Jy/arcsec^2, sky orientation.
        """
    @property
    def visibilities(self) -> torch.Tensor:
        """
        Packed model visibilities, Jy.
        """
class Nufft:
    """
    Visibilities of an image at any u, v, and the adjoint.
    """
    def __call__(self, sky: torch.Tensor) -> torch.Tensor:
        ...
    def __init__(self, coords: GridCoords, visibilities: Visibilities, nchan: typing.SupportsInt = 1, tolerance: typing.SupportsFloat = 1e-06) -> None:
        ...
    def adjoint(self, visibilities: torch.Tensor) -> torch.Tensor:
        """
        Re <forward(x), y> = <x, adjoint(y)>.
        """
    def forward(self, sky: torch.Tensor) -> torch.Tensor:
        """
        (…, nchan, npix, npix) -> (…, nchan, nvis) complex, Jy; differentiable.
        """
class Likelihood:
    """
    How an image is compared with data.
    """
    def chi_squared(self, sky: torch.Tensor) -> torch.Tensor:
        """
        chi^2, or -2 ln L, of (…, nchan, npix, npix) in Jy/arcsec^2: (…), differentiable, not normalized.
        """
    @property
    def coords(self) -> GridCoords:
        """
        The grid of the images that it takes.
        """
    @property
    def memory_bytes(self) -> int:
        """
        What it holds.
        """
    @property
    def name(self) -> str:
        """
        gridded, exact, loose, ...
        """
    @property
    def normalizer(self) -> float:
        """
        By twice which an Objective divides: the occupied uv cells.
        """
    @property
    def samples(self) -> int:
        """
        Terms of the sum in chi^2: samples or cells of all channels.
        """
class GriddedLikelihood(Likelihood):
    """
    chi^2 of cell averages, as in MPoL.
    """
    def __init__(self, dataset: GriddedDataset) -> None:
        ...
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> GriddedLikelihood:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
class ExactLikelihood(Likelihood):
    """
    chi^2 of the visibilities themselves, at a cost that does not depend on their number.
    """
    def __init__(self, coords: GridCoords, visibilities: Visibilities, mode: str = 'cube') -> None:
        """
        mode: cube, one image channel for each of the data's, or continuum, one of all.
        """
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> ExactLikelihood:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
class LooseLikelihood(Likelihood):
    """
    chi^2 of the visibilities by nonuniform transforms.
    """
    def __init__(self, coords: GridCoords, visibilities: Visibilities, mode: str = 'cube', tolerance: typing.SupportsFloat = 1e-06) -> None:
        ...
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def model_visibilities(self, sky: torch.Tensor) -> torch.Tensor:
        """
        The image at the points of the data, (…, nchan, nvis) complex; differentiable.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> LooseLikelihood:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
class NoiseLikelihood(Likelihood):
    """
    -2 ln L of loose visibilities whose noise is not Gaussian.
    """
    def __init__(self, coords: GridCoords, visibilities: Visibilities, noise: str = 'student', parameter: typing.SupportsFloat | None = None, mode: str = 'cube', tolerance: typing.SupportsFloat = 1e-06) -> None:
        """
        noise: student (parameter: degrees of freedom, 4), huber (threshold in sigma, 1.345), amplitude or gaussian.
        """
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> NoiseLikelihood:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
class FunctionLikelihood(Likelihood):
    """
    A likelihood of one's own: a function of torch.
    """
    def __init__(self, coords: GridCoords, chi_squared: collections.abc.Callable[[torch.Tensor], torch.Tensor], normalizer: typing.SupportsFloat) -> None:
        """
        chi_squared: (…, nchan, npix, npix) in Jy/arcsec^2 -> (…), differentiable.
        """
    def load_state_dict(self, state_dict: collections.abc.Mapping[str, torch.Tensor]) -> None:
        """
        Copies such tensors into the module. Raises ShapeError unless names and shapes are its own.
        """
    def named_parameters(self) -> dict[str, torch.Tensor]:
        """
        The same by name.
        """
    def parameters(self) -> list[torch.Tensor]:
        """
        The tensors that an optimizer trains, as in torch.nn.Module.
        """
    def state_dict(self) -> dict[str, torch.Tensor]:
        """
        Parameters and buffers by name; they share their memory with the module.
        """
    def to(self, device: typing.Any = None, dtype: torch.dtype | None = None) -> FunctionLikelihood:
        """
        Moves and casts the module itself, and gives it back.
        """
    def zero_grad(self) -> None:
        """
        Forgets the gradients of the parameters.
        """
class Term:
    """
    A prior with its weight lambda.
    """
    def __init__(self, name: str, weight: typing.SupportsFloat, function: collections.abc.Callable[[ModelOutput], torch.Tensor]) -> None:
        """
        One of your own: a function of torch from a ModelOutput to one value for each problem, `out.sky.square().sum((-3, -2, -1))`.
        """
    def evaluate(self, output: ModelOutput) -> torch.Tensor:
        """
        The value without its weight.
        """
    def with_channel_factors(self, factors: collections.abc.Sequence[typing.SupportsFloat]) -> Term:
        """
        The same of a cube in which the value of each channel counts so many times.
        """
    def with_weights(self, weights: collections.abc.Sequence[typing.SupportsFloat]) -> Term:
        """
        The same with a weight for each problem of a batch.
        """
    @property
    def channel_factors(self) -> list[float]:
        """
        What each channel's value counts; empty: 1.
        """
    @property
    def name(self) -> str:
        """
        Of its column in reports.
        """
    @property
    def weights(self) -> list[float]:
        """
        One for all problems, or one for each.
        """
class ObjectiveValue:
    """
    An objective at one image; each value is (…), one for each problem, differentiable.
    """
    @property
    def nll(self) -> torch.Tensor:
        """
        chi^2 / (2 N).
        """
    @property
    def terms(self) -> list[torch.Tensor]:
        """
        Weighted, in their order.
        """
    @property
    def total(self) -> torch.Tensor:
        """
        The sum of the others.
        """
class Objective:
    """
    chi^2 / (2 N) plus weighted priors.
    """
    def __init__(self, likelihood: Likelihood, terms: collections.abc.Sequence[Term] = [], normalize: str = 'cells') -> None:
        ...
    def evaluate(self, model: ImageModel) -> ObjectiveValue:
        """
        At a model's present image; total.backward() gives its gradient.
        """
    @property
    def columns(self) -> list[str]:
        """
        total, nll, then the names of the terms.
        """
    @property
    def normalizer(self) -> float:
        """
        N, by twice which chi^2 is divided.
        """
class FusedLoss:
    """
    An objective as a function of base pixels, with its gradient in the passes of the fused step, on the CPU: for loops and optimizers of one's own, several times as fast as Objective.evaluate.
    """
    def __call__(self, base: torch.Tensor) -> torch.Tensor:
        """
        The total of each problem, differentiable once; base: like the model's base pixels.
        """
    def __init__(self, model: ImageModel, objective: Objective) -> None:
        """
        Raises ValueError with the reason where there are no such passes.
        """
    @property
    def losses(self) -> torch.Tensor:
        """
        Of the last call, (columns, problems), as Objective.columns.
        """
class Epoch:
    """
    What a callback is shown.
    """
    @property
    def epoch(self) -> int:
        """
        From 0.
        """
    @property
    def loss(self) -> dict[str, float]:
        """
        By column, before the update of this epoch.
        """
    @property
    def seconds(self) -> float:
        """
        Of training so far.
        """
class TrainResult:
    """
    How a fit went.
    """
    @property
    def converged(self) -> bool:
        """
        Whether it stands still within its tolerance.
        """
    @property
    def epochs(self) -> int:
        """
        Epochs done.
        """
    @property
    def gap(self) -> float | None:
        """
        How far the loss can at most be above its least value (pogm), or None.
        """
    @property
    def history(self) -> dict[str, torch.Tensor]:
        """
        The losses of all epochs by column, each (epochs) float64.
        """
    @property
    def loss(self) -> dict[str, float]:
        """
        Of the final image, by column.
        """
    @property
    def seconds(self) -> float:
        """
        Of training.
        """
    @property
    def step(self) -> str:
        """
        eager, captured or fused.
        """
    @property
    def step_reason(self) -> str:
        """
        Why that kind of step was taken.
        """
    @property
    def stop_reason(self) -> str:
        """
        epochs, converged, callback, interrupted or diverged.
        """
    @property
    def warnings(self) -> list[str]:
        """
        What makes the image doubtful, in words.
        """
class Trainer:
    """
    Fits a model to an objective.
    """
    def __init__(self, model: ImageModel, objective: Objective, *, optimizer: str = 'adam', epochs: typing.SupportsInt = 500, learning_rate: typing.SupportsFloat = 0.3, tolerance: typing.SupportsFloat | None = None, device: typing.Any = None, dtype: torch.dtype | None = None, seed: typing.SupportsInt = 0, stop_relative: typing.SupportsFloat = 0.0, step: str = 'auto', checkpoint: os.PathLike | str | bytes | None = None, resume: bool = False, callback: collections.abc.Callable[[Epoch], bool] | None = None) -> None:
        """
        optimizer: adam, sgd, lbfgs, or pogm, fista and admm, which go on to the optimum of a convex objective within `tolerance` and need a model with pixel_mapping="nonnegative". callback: called with an Epoch after each; False ends the fit.
        """
    def fit(self) -> TrainResult:
        """
        Runs to the end. Raises DeviceError, ValueError or FileError; a fit that diverged says so in its result.
        """
class Scan:
    """
    What a cross-validation found.
    """
    @property
    def at_bound(self) -> list[str]:
        """
        Terms whose lambda lies at the end of what the search could reach.
        """
    @property
    def chosen(self) -> dict[str, float]:
        """
        lambda of each term at the least score.
        """
    @property
    def fits(self) -> int:
        """
        Fits that were taken.
        """
    @property
    def is_flat(self) -> bool:
        """
        Whether the data do not tell the points apart.
        """
    @property
    def points(self) -> list[tuple[dict[str, float], float]]:
        """
        (lambda of each term, score), in the order in which they were tried.
        """
    @property
    def score(self) -> float:
        """
        The least: chi^2 / (2 N) of what was held out.
        """
    @property
    def seconds(self) -> float:
        """
        Of all fits.
        """
class FitsImage:
    """
    An image read from a FITS file.
    """
    @property
    def cell_size(self) -> float:
        """
        arcsec.
        """
    @property
    def cube(self) -> torch.Tensor:
        """
        (nchan, rows, columns) float64, sky orientation, in `unit`.
        """
    @property
    def frequencies(self) -> torch.Tensor | None:
        """
        (nchan) Hz, or None.
        """
    @property
    def history(self) -> list[str]:
        """
        Lines of HISTORY.
        """
    @property
    def unit(self) -> str:
        """
        BUNIT as written.
        """
class ValueError(Error, ValueError):
    """
    A setting or argument is out of its range.
    """
class ShapeError(Error, ValueError):
    """
    A tensor has not the shape, dtype or orientation that is asked for.
    """
class DataError(Error, ValueError):
    """
    The data cannot be used: not finite, weights that are not positive, baselines beyond the grid, ...
    """
def auto_start(dataset: GriddedDataset) -> torch.Tensor:
    """
    An image as bright as the data say, (nchan, npix, npix), Jy/arcsec^2, to begin a fit with.
    """
def cross_validate(coords: GridCoords, visibilities: Visibilities, terms: collections.abc.Sequence[Term], *, folds: typing.SupportsInt = 5, split: str = 'random', search: str = 'compass', points: typing.SupportsInt = 16, seed: typing.SupportsInt = 0, tolerance: typing.SupportsFloat = 0.005, on_point: collections.abc.Callable[[Scan], None] | None = None) -> Scan:
    """
    Chooses the weights of terms by the visibilities of held-out uv cells, as mpol crossval. on_point: called with the Scan after each.
    """
def image(coords: GridCoords, visibilities: Visibilities, sparsity: typing.SupportsFloat | None = None, tv: typing.SupportsFloat | None = None, tv_slope: typing.SupportsFloat | None = None, tolerance: typing.SupportsFloat = 0.001, mode: str = 'cube', dtype: torch.dtype | None = None, sign: str | None = None) -> torch.Tensor:
    """
    The image of `mpol image` where nothing is said: exact likelihood, sparsity and total variation of image and slopes in units of the noise, converged. (nchan, npix, npix) float64, Jy/arcsec^2, sky orientation. sign: positive or either, whether pixels may be below 0; by default those of Stokes Q, U and V.
    """
def lambda_unit(coords: GridCoords, visibilities: Visibilities, term: Term, likelihood: Likelihood, nchan: typing.SupportsInt = 1) -> float | None:
    """
    The natural unit of a term's lambda, from the noise of the data, or None.
    """
def predict(coords: GridCoords, sky: torch.Tensor, visibilities: Visibilities, mode: str = 'cube') -> torch.Tensor:
    """
    Visibilities of an image at the points of data, (nchan, nvis) complex128, Jy.
    """
def read_fits(path: os.PathLike | str | bytes) -> FitsImage:
    """
    The first image of a FITS file.
    """
def read_visibilities(path: os.PathLike | str | bytes, channels: collections.abc.Sequence[typing.SupportsInt] = [], uv_unit: str | None = None, conjugate: bool = False, select: str = '', column: str = '', mode: str = 'continuum') -> Visibilities:
    """
    Of an .npz file, a folder of .npy files, a UVFITS file, or a measurement set (select: TaQL; column; mode: continuum, all samples as one channel, or cube).
    """
def select_device(request: str = 'auto') -> torch.device:
    """
    The torch.device for `auto`, `cpu`, `cuda`, `cuda:N` or `least-loaded`; says once why `auto` gives the CPU.
    """
def write_fits(path: os.PathLike | str | bytes, sky: torch.Tensor, coords: GridCoords, unit: str = 'Jy/pixel', visibilities: Visibilities | None = None, history: collections.abc.Sequence[str] = []) -> None:
    """
    A sky cube in Jy/arcsec^2 as a FITS file in Jy/pixel or Jy/arcsec2, or one in Jy/beam as it is. visibilities: whose phase centre, object, date and frequencies go into the header.
    """
def write_npz(path: os.PathLike | str | bytes, visibilities: Visibilities) -> None:
    """
    What read_visibilities gives back.
    """
__version__: str = '0.2.0'
