#pragma once

#include <optional>
#include <string>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The primary beam of an array whose antennas are alike: the power that they receive from a direction, 1 where they point. Their
/// data, and what is imaged of them, are those of the sky times this beam. It is round and the same at all times, as CASA takes
/// it for ALMA, and its width goes as the wavelength.
class PrimaryBeam {
 public:
  /// The pattern of an evenly lit round dish whose middle is blocked: |(2 J1(x)/x - b^2 2 J1(b x)/(b x)) / (1 - b^2)|^2, where
  /// x = pi D sin(distance)/lambda and b is the blocked part of the diameter D.
  /// @param diameter, blocked  metres  @throws ValueError unless 0 <= blocked < diameter, both finite
  static PrimaryBeam airy(double diameter, double blocked = 0);
  /// A Gaussian. @param fwhm  arcsec, at a frequency in Hz  @throws ValueError unless both are finite and > 0
  static PrimaryBeam gaussian(double fwhm, double frequency);
  /// That of a known telescope's antennas, from the name that headers have; nothing for an unknown one, or one whose antennas
  /// differ. ALMA's are those that CASA takes: a dish of 10.7 m (7 m antennas: 6.25 m) whose middle 0.75 m are blocked; widths of
  /// others are those that their observatories give.
  /// @param shortest  baseline in metres, which no antenna is wider than: an ALMA of less than 12 m is that of 7 m antennas; 0:
  ///                  unknown
  static std::optional<PrimaryBeam> of_telescope(const std::string& telescope, double shortest = 0);
  /// That of a known telescope's antennas of this diameter; of others a Gaussian as wide as dishes mostly have it, 1.13 lambda/D.
  /// @param diameter  metres  @throws ValueError unless it is finite and > 0
  static PrimaryBeam of_antennas(double diameter, const std::string& telescope = {});

  /// Power at a distance from where the antennas point. @param distance  arcsec, any shape, real
  /// @return  of the same shape and dtype  @throws ValueError unless the frequency is finite and > 0
  Tensor power(const Tensor& distance, double frequency) const;
  /// The same on a grid, (npix, npix) float64, sky orientation, for antennas that point at an offset from the middle of its
  /// pixels.
  Tensor power(const GridCoords& coords, const SkyOffset& pointing, double frequency) const;
  /// Where the main lobe falls to a power, arcsec. @throws ValueError unless 0.01 <= power < 1
  double radius(double power, double frequency) const;
  double fwhm(double frequency) const { return 2 * radius(0.5, frequency); }  ///< full width at half power, arcsec

  /// Whose it is: "12 m antennas of ALMA", "a Gaussian".
  const std::string& words() const { return words_; }

 private:
  PrimaryBeam(double diameter, double blocked, double width, std::string words);

  double diameter_, blocked_;  // metres, of an evenly lit dish; 0: a Gaussian
  double width_;               // of that, sin of the FWHM times frequency, Hz
  std::string words_;
};

}  // namespace mpol
