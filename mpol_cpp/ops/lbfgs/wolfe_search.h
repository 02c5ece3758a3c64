#pragma once

// A line search that is told value and slope at one point after another; C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

/// Where the gradient at a point of a line search is kept: in one of two places beside the search, where it was when the
/// search began, or where the trial left it.
enum class GradientAt { first, second, start, trial, none };

/// Search along a direction for a step with the strong Wolfe conditions,
///   f(t) <= f(0) + c1 t f'(0),   |f'(t)| <= c2 |f'(0)|,
/// by cubic interpolation: steps grow until an interval must hold one, which then shrinks. It gives what the search of
/// torch::optim::LBFGS gives, as states instead of loops: nothing in it evaluates the function.
/// Source: Nocedal & Wright, Numerical Optimization, algorithms 3.5 and 3.6, formula 3.59.
struct WolfeSearch {
  static constexpr double c1 = 1e-4, c2 = 0.9, smallest_change = 1e-9;
  static constexpr int most_trials = 25;  // beside the first

  struct Point {
    double step, value, slope;
    GradientAt gradient;
  };

  Point start, previous, ends[2], accepted;
  double trial;     // the step to be evaluated next
  double largest;   // element of the direction
  GradientAt keep;  // where the gradient of the point judged last is to be copied
  int low, trials;  // the end with the lower value; trials beside the first
  bool encloses, stalled;

  MPOL_DEVICE void begin(double value, double slope, double first_step, double largest_element) {
    start = previous = {0, value, slope, GradientAt::start};
    trial = first_step;
    largest = largest_element;
    keep = GradientAt::none;
    low = trials = 0;
    encloses = stalled = false;
  }

  /// Takes up value and slope at the trial. @return whether the search has ended, at `accepted`
  MPOL_DEVICE bool judge(double value, double slope) {
    keep = GradientAt::none;
    const Point found{trial, value, slope, GradientAt::trial};
    return encloses ? narrow(found) : widen(found);
  }

 private:
  MPOL_DEVICE bool is_too_high(const Point& found) const { return found.value > start.value + c1 * found.step * start.slope; }
  MPOL_DEVICE bool is_flat(const Point& found) const { return gpu_math::magnitude(found.slope) <= -c2 * start.slope; }

  MPOL_DEVICE bool accept(const Point& point) {
    accepted = point;
    return true;
  }
  MPOL_DEVICE bool try_next(double step) {
    trial = step;
    ++trials;
    return false;
  }
  /// The point with its gradient in the one of the two places that the other point does not need.
  MPOL_DEVICE Point kept(Point point, const Point& other) {
    point.gradient = keep = other.gradient == GradientAt::first ? GradientAt::second : GradientAt::first;
    return point;
  }
  MPOL_DEVICE void find_lower_end() { low = ends[0].value <= ends[1].value ? 0 : 1; }

  MPOL_DEVICE bool widen(const Point& found) {
    if (trials == most_trials) return accept(start.value <= found.value ? start : found);
    if (is_too_high(found) || (trials > 1 && found.value >= previous.value)) return enclose(found);
    if (is_flat(found)) return accept(found);
    if (found.slope >= 0) return enclose(found);
    const double step = minimum_between(previous, found, found.step + 0.01 * (found.step - previous.step), 10 * found.step);
    previous = kept(found, previous);
    return try_next(step);
  }

  MPOL_DEVICE bool enclose(const Point& found) {
    ends[0] = previous;
    ends[1] = kept(found, previous);
    find_lower_end();
    encloses = true;
    return try_within();
  }

  MPOL_DEVICE bool narrow(const Point& found) {
    bool satisfied = false;
    if (is_too_high(found) || found.value >= ends[low].value) {
      ends[1 - low] = kept(found, ends[low]);
      find_lower_end();
    } else {
      satisfied = is_flat(found);
      if (!satisfied && found.slope * (ends[1 - low].step - ends[low].step) >= 0) ends[1 - low] = ends[low];
      ends[low] = kept(found, ends[1 - low]);
    }
    if (satisfied || gpu_math::magnitude(ends[1].step - ends[0].step) * largest < smallest_change) return accept(ends[low]);
    return try_within();
  }

  /// A trial within the ends that is not too near to either twice.
  MPOL_DEVICE bool try_within() {
    if (trials == most_trials) return accept(ends[low]);
    const double shorter = ends[0].step < ends[1].step ? ends[0].step : ends[1].step;
    const double longer = ends[0].step < ends[1].step ? ends[1].step : ends[0].step;
    const double margin = 0.1 * (longer - shorter);
    double step = minimum_between(ends[0], ends[1], shorter, longer);
    const bool near = longer - step < margin || step - shorter < margin;
    const bool moves = near && (stalled || step >= longer || step <= shorter);
    if (moves) {
      const bool to_longer = gpu_math::magnitude(step - longer) < gpu_math::magnitude(step - shorter);
      step = to_longer ? longer - margin : shorter + margin;
    }
    stalled = near && !moves;
    return try_next(step);
  }

  /// The minimum, within bounds, of the cubic through values and slopes of two points; their middle where it has none.
  MPOL_DEVICE static double minimum_between(const Point& a, const Point& b, double least, double most) {
    const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
    const double square = d1 * d1 - a.slope * b.slope;
    if (!(square >= 0)) return (least + most) / 2;
    const double d2 = gpu_math::square_root(square);
    const Point &left = a.step <= b.step ? a : b, &right = a.step <= b.step ? b : a;
    const double step = right.step - (right.step - left.step) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
    const double raised = step < least ? least : step;
    return most < raised ? most : raised;
  }
};

}  // namespace mpol::ops
