#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// Images of a fit on its way, at numbers of epochs that grow by a quarter of an octave, from which one sees how far the image
/// moved over the second half of the fit: what is left of a way that slows down like 1/epochs is no longer than that. Five
/// images are kept.
class ImageTrail {
 public:
  /// How an image changed from about half the epochs on.
  struct Change {
    std::int64_t since;  ///< epochs done then
    double image;        ///< |x - x'|/|x|, of the problem where it is largest
    double flux;         ///< of the flux of all channels, relative, of the problem where it is largest
    double flux_before;  ///< then, of all problems, Jy/arcsec^2 summed over pixels
  };

  /// After how many epochs the image is wanted next.
  std::int64_t next() const;
  /// @param sky  (…, nchan, npix, npix), of after next() epochs; is kept as it is
  void record(const torch::Tensor& sky);
  /// Up to the newest image; nothing while there are too few.
  /// @param sum  over ranks that hold other channels of the same images; empty: there are none
  std::optional<Change> change(const std::function<void(std::vector<double>&)>& sum = {}) const;
  /// Which images (problems, nchan) changed by no more than these parts of themselves, and their fluxes of theirs, from about
  /// half the epochs on; empty while there are too few to tell.
  std::vector<bool> still_images(double most_of_image, double most_of_flux) const;
  /// How many epochs the newest image is of; 0: there is none.
  std::int64_t newest() const { return epochs_.empty() ? 0 : epochs_.back(); }

  NamedTensors state() const;
  /// @throws FileError for what state() did not give
  void load_state(const NamedTensors& state);

 private:
  std::vector<std::int64_t> epochs_;
  std::vector<torch::Tensor> images_;
};

}  // namespace mpol::detail
