#include <mpol_cpp/gridding/gaussian_fit.h>

#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <mpol_cpp/core/units.h>

namespace mpol::gridding {
namespace {

constexpr double lobe_level = 0.35;
constexpr int most_iterations = 100;
constexpr double converged_step = 1e-13;

using Vector = std::array<double, 3>;  // a, b, c in pixel^-2
using Matrix = std::array<Vector, 3>;

struct LobePixel {
  double x, y, value;  // offsets to the East and North in pixels

  Vector quadratic_terms() const { return {x * x, x * y, y * y}; }
};

double dot(const Vector& p, const Vector& q) { return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]; }

/// Pixels of the main lobe without the peak itself, which every model fits; empty when the lobe reaches the border.
std::vector<LobePixel> main_lobe(const Tensor& beam) {
  const auto npix = beam.size(0);
  const auto* values = beam.const_data_ptr<double>();
  using Place = std::pair<std::int64_t, std::int64_t>;  // row, column
  const Place peak{npix / 2, npix / 2 - 1};
  std::set<Place> found{peak};
  std::vector<Place> queue{peak};
  std::vector<LobePixel> pixels;
  while (!queue.empty()) {
    const auto [row, column] = queue.back();
    queue.pop_back();
    if (row == 0 || column == 0 || row == npix - 1 || column == npix - 1) return {};
    const bool at_peak = Place{row, column} == peak;
    for (auto i = row - 1; i <= row + 1; ++i) {
      for (auto j = column - 1; j <= column + 1; ++j) {
        const double value = values[i * npix + j];
        const bool in_lobe = value >= lobe_level;
        if (!(in_lobe || (at_peak && value > 0)) || !found.insert({i, j}).second) continue;
        pixels.push_back({static_cast<double>(peak.second - j), static_cast<double>(i - peak.first), value});
        if (in_lobe) queue.push_back({i, j});
      }
    }
  }
  return pixels;
}

/// Solves the symmetric positive definite system by Cholesky's method; nothing when it is singular to rounding.
std::optional<Vector> solve(const Matrix& matrix, const Vector& right) {
  Matrix lower{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= lower[i][k] * lower[j][k];
      if (i != j) lower[i][j] = rest / lower[j][j];
      else if (rest <= 1e-12 * matrix[i][i] || !std::isfinite(rest)) return std::nullopt;
      else lower[i][i] = std::sqrt(rest);
    }
  }
  Vector solution = right;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < i; ++k) solution[i] -= lower[i][k] * solution[k];
    solution[i] /= lower[i][i];
  }
  for (std::size_t i = 3; i-- > 0;) {
    for (std::size_t k = i + 1; k < 3; ++k) solution[i] -= lower[k][i] * solution[k];
    solution[i] /= lower[i][i];
  }
  return solution;
}

double squared_residual(const std::vector<LobePixel>& lobe, const Vector& form) {
  double sum = 0;
  for (const auto& pixel : lobe) sum += std::pow(pixel.value - std::exp(-dot(form, pixel.quadratic_terms())), 2);
  return sum;
}

/// One damped step: (J'J + damping diag) step = J' residual, with `target` the residual and `slope` dmodel/d(form . terms).
struct NormalEquations {
  Matrix matrix{};
  Vector right{};

  void add(const Vector& gradient, double residual) {
    for (std::size_t i = 0; i < 3; ++i) {
      right[i] += gradient[i] * residual;
      for (std::size_t j = 0; j < 3; ++j) matrix[i][j] += gradient[i] * gradient[j];
    }
  }
  std::optional<Vector> step(double damping) const {
    auto damped = matrix;
    for (std::size_t i = 0; i < 3; ++i) damped[i][i] *= 1 + damping;
    return solve(damped, right);
  }
};

/// The linear fit to -ln(beam), weighted so that it approximates the fit to the beam.
std::optional<Vector> logarithmic_fit(const std::vector<LobePixel>& lobe) {
  NormalEquations equations;
  for (const auto& pixel : lobe) {
    auto terms = pixel.quadratic_terms();
    for (auto& term : terms) term *= pixel.value;
    equations.add(terms, -pixel.value * std::log(pixel.value));
  }
  return equations.step(0);
}

std::optional<Vector> fit(const std::vector<LobePixel>& lobe) {
  auto form = logarithmic_fit(lobe);
  if (!form) return std::nullopt;
  double damping = 1e-3, residual = squared_residual(lobe, *form);
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    NormalEquations equations;
    for (const auto& pixel : lobe) {
      const double model = std::exp(-dot(*form, pixel.quadratic_terms()));
      auto gradient = pixel.quadratic_terms();
      for (auto& term : gradient) term *= -model;
      equations.add(gradient, pixel.value - model);
    }
    const auto step = equations.step(damping);
    if (!step) return std::nullopt;
    const Vector moved{(*form)[0] + (*step)[0], (*form)[1] + (*step)[1], (*form)[2] + (*step)[2]};
    const double moved_residual = squared_residual(lobe, moved);
    const bool small = dot(*step, *step) <= converged_step * converged_step * dot(*form, *form);
    if (moved_residual <= residual) {
      form = moved;
      residual = moved_residual;
      damping *= 0.1;
    } else {
      damping *= 10;
    }
    if (small || damping > 1e12) break;
  }
  return form;
}

}  // namespace

std::optional<Beam> fit_main_lobe(const Tensor& beam, double cell_size) {
  const auto form = fit(main_lobe(beam));
  if (!form) return std::nullopt;
  const auto [a, b, c] = *form;
  const double mean = 0.5 * (a + c), spread = 0.5 * std::hypot(a - c, b);
  const double longest = static_cast<double>(beam.size(0));
  const auto fwhm = [](double eigenvalue) { return 2 * std::sqrt(std::log(2.0) / eigenvalue); };
  if (!(mean - spread > 0) || !(fwhm(mean - spread) < longest)) return std::nullopt;
  // The direction in which the form grows fastest, East towards North, is the minor axis; North towards East, the
  // major one lies at the opposite of that angle.
  const double angle = -0.5 * std::atan2(b, a - c);
  return Beam{.major = fwhm(mean - spread) * cell_size,
              .minor = fwhm(mean + spread) * cell_size,
              .position_angle = angle <= -units::pi / 2 ? angle + units::pi : angle};
}

}  // namespace mpol::gridding
