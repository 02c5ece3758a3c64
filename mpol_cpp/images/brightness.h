#pragma once

#include <torch/types.h>

#include <mpol_cpp/images/beam.h>

namespace mpol {

// Brightness in other units than the library's Jy/arcsec^2. Jy/pixel is Jy/arcsec^2 times GridCoords::cell_area(),
// Jy/beam is Jy/arcsec^2 times beam_area().

/// Solid angle of a Gaussian beam, pi major minor / (4 ln 2), arcsec^2.
double beam_area(const Beam& beam);

/// Brightness in Jy/arcsec^2 of a brightness temperature of 1 K at a frequency in Hz (Rayleigh-Jeans): 2 k nu^2 / c^2.
/// Multiply kelvin with it, divide Jy/arcsec^2 by it.
/// @throws ValueError unless the frequency is finite and > 0
double jy_per_arcsec2_per_kelvin(double frequency);

}  // namespace mpol
