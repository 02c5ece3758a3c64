#include <mpol_cpp/uncertainty/harmonic_fill.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr double tolerance_of_fill = 1e-12;  // of the residual, beside its first

/// The equations of neighbours on the marked pixels of one image.
class MarkedPixels {
 public:
  MarkedPixels(const bool* marked, std::int64_t rows, std::int64_t columns)
      : columns_(columns), number_(static_cast<std::size_t>(rows * columns), -1) {
    for (std::int64_t pixel = 0; pixel < rows * columns; ++pixel) {
      if (!marked[pixel]) continue;
      number_[static_cast<std::size_t>(pixel)] = static_cast<std::int64_t>(pixels_.size());
      pixels_.push_back(pixel);
    }
  }

  bool is_empty() const { return pixels_.empty(); }
  bool is_everywhere() const { return pixels_.size() == number_.size(); }

  void fill(double* image) const {
    std::vector<double> residual(pixels_.size(), 0.0), x(pixels_.size(), 0.0);
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::size_t i = 0; i < pixels_.size(); ++i) {
      each_neighbor(pixels_[i], [&](std::int64_t neighbor) {
        if (number_[static_cast<std::size_t>(neighbor)] >= 0) return;
        residual[i] += image[neighbor];
        low = std::min(low, image[neighbor]);
        high = std::max(high, image[neighbor]);
      });
    }
    solve(residual, x);
    for (std::size_t i = 0; i < pixels_.size(); ++i) image[pixels_[i]] = std::clamp(x[i], low, high);
  }

  void write_window(double* image) const {
    std::vector<double> ones(pixels_.size(), 1.0), x(pixels_.size(), 0.0);
    solve(ones, x);
    const double largest = *std::max_element(x.begin(), x.end());
    for (std::size_t i = 0; i < pixels_.size(); ++i) image[pixels_[i]] = x[i] * x[i] / (largest * largest);
  }

 private:
  template <typename Visit>
  void each_neighbor(std::int64_t pixel, const Visit& visit) const {
    const auto count = static_cast<std::int64_t>(number_.size()), column = pixel % columns_;
    if (column > 0) visit(pixel - 1);
    if (column + 1 < columns_) visit(pixel + 1);
    if (pixel >= columns_) visit(pixel - columns_);
    if (pixel + columns_ < count) visit(pixel + columns_);
  }

  /// The neighbours' number times a pixel, less those neighbours that are marked.
  void laplacian(const std::vector<double>& x, std::vector<double>& out) const {
    for (std::size_t i = 0; i < pixels_.size(); ++i) {
      double sum = 0;
      each_neighbor(pixels_[i], [&](std::int64_t neighbor) {
        const auto number = number_[static_cast<std::size_t>(neighbor)];
        sum += number >= 0 ? x[i] - x[static_cast<std::size_t>(number)] : x[i];
      });
      out[i] = sum;
    }
  }

  /// Conjugate gradients from x = 0. @param residual  the right-hand side; overwritten
  void solve(std::vector<double>& residual, std::vector<double>& x) const {
    auto direction = residual;
    std::vector<double> bent(residual.size());
    const auto dot = [](const auto& a, const auto& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); };
    double squares = dot(residual, residual);
    const double enough = squares * tolerance_of_fill * tolerance_of_fill;
    for (std::size_t step = 0; step < 2 * pixels_.size() && squares > enough; ++step) {
      laplacian(direction, bent);
      const double length = squares / dot(direction, bent);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] += length * direction[i];
        residual[i] -= length * bent[i];
      }
      const double next = dot(residual, residual);
      for (std::size_t i = 0; i < x.size(); ++i) direction[i] = residual[i] + next / squares * direction[i];
      squares = next;
    }
  }

  std::int64_t columns_;
  std::vector<std::int64_t> number_, pixels_;  // of each pixel among the marked ones, or -1; of each marked one in the image
};

/// Calls at(pixels, place of the first) for each image that has marked pixels.
template <typename At>
void each_marked(const Tensor& region, const At& at) {
  const auto marked = region.to(torch::kCPU).ne(0).contiguous();
  const auto rows = region.size(-2), columns = region.size(-1);
  const auto* marks = marked.const_data_ptr<bool>();
  for (std::int64_t first = 0; first < marked.numel(); first += rows * columns) {
    const MarkedPixels pixels(marks + first, rows, columns);
    if (pixels.is_everywhere())
      throw ValueError("the region is the whole image: leave pixels around it, from which it can be filled");
    if (!pixels.is_empty()) at(pixels, first);
  }
}

}  // namespace

Tensor harmonic_fill(const Tensor& images, const Tensor& region) {
  const torch::NoGradGuard no_grad;
  if (images.dim() < 2 || !at::is_expandable_to(region.sizes(), images.sizes())) {
    throw ShapeError(
        fmt::format("a region of shape {} in images of shape {}: expected (…, npix, npix), and a region of their shape",
                    region.sizes().vec(), images.sizes().vec()));
  }
  auto filled = images.detach().to(torch::kCPU, torch::kFloat64, /*non_blocking=*/false, /*copy=*/true).contiguous();
  auto* values = filled.mutable_data_ptr<double>();
  each_marked(region.expand(images.sizes()),
              [&](const MarkedPixels& pixels, std::int64_t first) { pixels.fill(values + first); });
  return filled.to(images.options());
}

Tensor smooth_window(const Tensor& region) {
  const torch::NoGradGuard no_grad;
  if (region.dim() < 2) throw ShapeError(fmt::format("a region of shape {}: expected (…, npix, npix)", region.sizes().vec()));
  auto window = at::zeros(region.sizes(), torch::kFloat64);
  auto* values = window.mutable_data_ptr<double>();
  each_marked(region, [&](const MarkedPixels& pixels, std::int64_t first) { pixels.write_window(values + first); });
  return window;
}

}  // namespace mpol
