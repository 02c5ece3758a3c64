#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/ops/empty.h>
#include <torch/types.h>

#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/proximal/proximal_kernels.h>

namespace mpol::ops {

using torch::Tensor;

/// Planes of dual images of a cube, as of now, before and next, whose rows are ours (ops/proximal/proximal_kernels.h).
template <typename T>
class DualImages {
 public:
  /// @param planes  of each image of the cube
  DualImages(std::int64_t planes, std::int64_t problems, std::int64_t nchan, std::int64_t npix)
      : planes_(planes),
        problems_(problems),
        nchan_(nchan),
        npix_(npix),
        distance_(AlignedArray<T>::padded(npix) + AlignedArray<T>::padded(2 * proximal_margin)),
        values_(3 * planes * problems * nchan * npix * distance_),
        order_(static_cast<std::size_t>(problems), {0, 1, 2}) {}

  std::int64_t distance() const { return distance_; }  ///< from row to row

  /// Which of the three are those of now, before and next; a raised problem turns them.
  const std::array<int, 3>& order_of(std::int64_t image) const { return order_[static_cast<std::size_t>(image / nchan_)]; }
  void turn(std::size_t problem) {
    auto& order = order_[problem];
    order = {order[2], order[0], order[1]};
  }

  T* row(int which, std::int64_t plane, std::int64_t image, std::int64_t row) const {
    return values_.data() + (((which * planes_ + plane) * problems_ * nchan_ + image) * npix_ + row) * distance_ +
           proximal_margin;
  }

  /// Those of now, (planes, problems, nchan, npix, npix).
  Tensor now() const {
    auto images = at::empty({planes_, problems_, nchan_, npix_, npix_}, c10::CppTypeToScalarType<T>::value);
    auto* values = images.template mutable_data_ptr<T>();
    each_row([&](const T* own, std::int64_t at) { std::copy_n(own, npix_, values + at); });
    return images;
  }
  void set_now(const Tensor& images) {
    const auto own = images.contiguous();
    const auto* values = own.template const_data_ptr<T>();
    each_row([&](T* to, std::int64_t at) { std::copy_n(values + at, npix_, to); });
  }

 private:
  template <typename Body>
  void each_row(const Body& body) const {
    const auto images = problems_ * nchan_;
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      for (std::int64_t image = 0; image < images; ++image) {
        for (std::int64_t line = 0; line < npix_; ++line) {
          body(row(order_of(image)[0], plane, image, line), ((plane * images + image) * npix_ + line) * npix_);
        }
      }
    }
  }

  std::int64_t planes_, problems_, nchan_, npix_, distance_;
  AlignedArray<T> values_;
  std::vector<std::array<int, 3>> order_;  // of each problem
};

}  // namespace mpol::ops
