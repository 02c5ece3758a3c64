#include <mpol_cpp/analysis/sparse_operator.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include <ATen/Dispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

using Lines = SparseOperator::Lines;

constexpr std::int64_t vectors_at_once = 8;  // entries are read once for all
constexpr std::int64_t entries_per_piece = 8192;

using Entries = std::vector<SparseOperator::Entry>;
using Index = std::int32_t SparseOperator::Entry::*;

/// The entries in the order of one of their indices; those that have it in common stay in their order.
Entries sorted_by(const Entries& entries, Index index, std::int64_t count) {
  std::vector<std::size_t> next(static_cast<std::size_t>(count) + 1);
  for (const auto& entry : entries) ++next[static_cast<std::size_t>(entry.*index) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  Entries sorted(entries.size());
  for (const auto& entry : entries) sorted[next[static_cast<std::size_t>(entry.*index)]++] = entry;
  return sorted;
}

/// @param entries  in the order of `line`
Lines lines_of(const Entries& entries, Index line, Index place, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(entries.size());
  Lines lines{count, at::zeros({count + 1}, torch::kInt64), at::empty({size}, torch::kInt32), at::empty({size}, torch::kFloat64)};
  auto* start = lines.starts.mutable_data_ptr<std::int64_t>();
  auto* places = lines.places.mutable_data_ptr<std::int32_t>();
  auto* values = lines.values.mutable_data_ptr<double>();
  for (const auto& entry : entries) {
    ++start[entry.*line + 1];
    *places++ = entry.*place;
    *values++ = entry.value;
  }
  for (std::int64_t i = 0; i < count; ++i) start[i + 1] += start[i];
  return lines;
}

void check_entries(const Entries& entries, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || rows > most || columns < 0 || columns > most) {
    throw ValueError(fmt::format("a matrix of {} x {}; its places are counted in 32 bits: make it smaller", rows, columns));
  }
  for (const auto& entry : entries) {
    if (entry.row >= 0 && entry.row < rows && entry.column >= 0 && entry.column < columns) continue;
    throw ValueError(fmt::format("an entry at {}, {} of a matrix of {} x {}", entry.row, entry.column, rows, columns));
  }
}

/// Raw pointers to lines, for loops.
struct LineView {
  explicit LineView(const Lines& of)
      : lines(of.lines),
        starts(of.starts.const_data_ptr<std::int64_t>()),
        places(of.places.const_data_ptr<std::int32_t>()),
        values(of.values.const_data_ptr<double>()) {}

  std::int64_t lines;
  const std::int64_t* starts;
  const std::int32_t* places;
  const double* values;
};

/// What an entry adds, A_ij x_j.
struct Product {
  static constexpr bool about_center = false;
  static double of(double value, double x, double) { return value * x; }
};

/// A_ij (x_j - centre_i)^2
struct SquaredDistance {
  static constexpr bool about_center = true;
  static double of(double value, double x, double center) { return value * (x - center) * (x - center); }
};

/// Lines [first, last) of one vector.
template <typename Addend, typename T>
void add_lines(const LineView& by_line, const T* in, const T* center, T* out, std::int64_t first, std::int64_t last) {
  for (auto line = first; line < last; ++line) {
    const double about = Addend::about_center ? static_cast<double>(center[line]) : 0.0;
    double sum = 0;
    for (auto i = by_line.starts[line]; i < by_line.starts[line + 1]; ++i)
      sum += Addend::of(by_line.values[i], static_cast<double>(in[by_line.places[i]]), about);
    out[line] = static_cast<T>(sum);
  }
}

/// A few vectors, each from its first place to its last: reads are in order, and sums lie side by side. They add the same
/// numbers in the same order as add_lines.
/// @param by_place  lines are the places of `in`; @param sums  scratch
template <typename Addend, std::int64_t Count, typename T>
void scatter_places(const LineView& by_place, const T* in, std::int64_t lines, const T* center, T* out,
                    std::vector<double>& sums) {
  const auto size = static_cast<std::size_t>(lines * Count);
  sums.assign(Addend::about_center ? 2 * size : size, 0);
  auto *sum = sums.data(), *centers = sum + (Addend::about_center ? size : 0);
  if constexpr (Addend::about_center) {
    for (std::int64_t k = 0; k < Count; ++k)
      for (std::int64_t line = 0; line < lines; ++line) centers[line * Count + k] = static_cast<double>(center[k * lines + line]);
  }
  for (std::int64_t place = 0; place < by_place.lines; ++place) {
    const auto first = by_place.starts[place], last = by_place.starts[place + 1];
    if (first == last) continue;
    std::array<double, Count> x{};
    for (std::int64_t k = 0; k < Count; ++k) x[static_cast<std::size_t>(k)] = static_cast<double>(in[k * by_place.lines + place]);
    for (auto i = first; i < last; ++i) {
      const auto target = static_cast<std::int64_t>(by_place.places[i]) * Count;
      for (std::int64_t k = 0; k < Count; ++k)
        sum[target + k] += Addend::of(by_place.values[i], x[static_cast<std::size_t>(k)], centers[target + k]);
    }
  }
  for (std::int64_t k = 0; k < Count; ++k)
    for (std::int64_t line = 0; line < lines; ++line) out[k * lines + line] = static_cast<T>(sum[line * Count + k]);
}

/// A stack: groups of vectors are shared between threads.
template <typename Addend, typename T>
void stack_sums_on_cpu(const LineView& by_place, const T* in, std::int64_t lines, const T* center, T* out, std::int64_t vectors) {
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(ops::sharing_threads()));
  const auto groups = (vectors + vectors_at_once - 1) / vectors_at_once;
  ops::share_tasks(groups, 1, [&](std::int64_t group, std::int64_t worker) {
    auto& own = sums[static_cast<std::size_t>(worker)];
    const auto first = group * vectors_at_once, end = std::min(first + vectors_at_once, vectors);
    const auto center_of = [&](std::int64_t v) { return center == nullptr ? nullptr : center + v * lines; };
    if (end - first == vectors_at_once) {
      scatter_places<Addend, vectors_at_once>(by_place, in + first * by_place.lines, lines, center_of(first), out + first * lines,
                                              own);
      return;
    }
    for (auto v = first; v < end; ++v)
      scatter_places<Addend, 1>(by_place, in + v * by_place.lines, lines, center_of(v), out + v * lines, own);
  });
}

/// One vector or a few: lines are shared between threads.
/// @param in (vectors, places), out (vectors, lines), contiguous
template <typename Addend, typename T>
void line_sums_on_cpu(const LineView& by_line, const T* in, std::int64_t places, const T* center, T* out, std::int64_t vectors) {
  const auto entries = std::max<std::int64_t>(1, by_line.starts[by_line.lines]);
  const auto lines_per_piece = std::clamp<std::int64_t>(by_line.lines * entries_per_piece / entries, 1, by_line.lines);
  const auto pieces = (by_line.lines + lines_per_piece - 1) / lines_per_piece;
  ops::share_tasks(vectors * pieces, 1, [&](std::int64_t task, std::int64_t) {
    const auto v = task / pieces, first = task % pieces * lines_per_piece,
               last = std::min(first + lines_per_piece, by_line.lines);
    add_lines<Addend>(by_line, in + v * places, center == nullptr ? nullptr : center + v * by_line.lines, out + v * by_line.lines,
                      first, last);
  });
}

/// The line of every entry, int64.
Tensor lines_of_entries(const Lines& lines) {
  const auto counts = lines.starts.narrow(0, 1, lines.lines) - lines.starts.narrow(0, 0, lines.lines);
  return at::repeat_interleave(at::arange(lines.lines, torch::kInt64), counts);
}

template <typename Addend, typename T>
void sums_on_cpu(const Lines& by_line, const Lines& by_place, const Tensor& in, const Tensor& center, Tensor& out) {
  const auto vectors = in.size(0);
  const auto* from = in.const_data_ptr<T>();
  const auto* about = center.defined() ? center.const_data_ptr<T>() : nullptr;
  auto* to = out.mutable_data_ptr<T>();
  if (vectors >= ops::sharing_threads() * vectors_at_once) {
    stack_sums_on_cpu<Addend>(LineView(by_place), from, by_line.lines, about, to, vectors);
  } else {
    line_sums_on_cpu<Addend>(LineView(by_line), from, by_place.lines, about, to, vectors);
  }
}

/// @param in  (vectors, places) contiguous; centre: undefined, or (vectors, lines) for squared distances
Tensor line_sums(const Lines& by_line, const Lines& by_place, const Tensor& in, const Tensor& center = {}) {
  if (!in.is_cpu()) return center.defined() ? line_spreads_by_index(by_line, in, center) : line_sums_by_index(by_line, in);
  auto out = at::empty({in.size(0), by_line.lines}, in.options());
  if (out.numel() == 0) return out;
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "mpol::SparseOperator", [&] {
    if (center.defined()) sums_on_cpu<SquaredDistance, scalar_t>(by_line, by_place, in, center, out);
    else sums_on_cpu<Product, scalar_t>(by_line, by_place, in, center, out);
  });
  return out;
}

using MatrixPtr = c10::intrusive_ptr<SparseOperator::Matrix>;

enum class Side : std::int64_t { rows, columns };

Tensor apply_side(const Tensor& in, const MatrixPtr& matrix, Side side);

/// Sums along rows, whose derivative are sums along columns, and the other way round.
struct LineSums : torch::autograd::Function<LineSums> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& in, const MatrixPtr& matrix, Side side) {
    context->saved_data["matrix"] = c10::IValue::make_capsule(matrix);
    context->saved_data["other side"] = static_cast<std::int64_t>(side == Side::rows ? Side::columns : Side::rows);
    const auto &by_row = matrix->by_row, &by_column = matrix->by_column;
    return side == Side::rows ? line_sums(by_row, by_column, in.contiguous()) : line_sums(by_column, by_row, in.contiguous());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto matrix = c10::static_intrusive_pointer_cast<SparseOperator::Matrix>(context->saved_data["matrix"].toCapsule());
    return {apply_side(gradients[0], matrix, static_cast<Side>(context->saved_data["other side"].toInt())), Tensor(), Tensor()};
  }
};

Tensor apply_side(const Tensor& in, const MatrixPtr& matrix, Side side) { return LineSums::apply(in, matrix, side); }

void check_vectors(const Tensor& x, std::int64_t size, const char* what) {
  const bool fits = x.dim() >= 1 && x.size(-1) == size;
  const bool is_real = x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kFloat64;
  if (fits && is_real) return;
  throw ShapeError(fmt::format("the {} have shape ({}), {}; (…, {}) in float32 or float64 is needed", what,
                               fmt::join(x.sizes(), ", "), c10::toString(x.scalar_type()), size));
}

std::vector<std::int64_t> with_length(const Tensor& like, std::int64_t size) {
  auto shape = like.sizes().vec();
  shape.back() = size;
  return shape;
}

}  // namespace

SparseOperator::SparseOperator(const std::vector<Entry>& entries, std::int64_t rows, std::int64_t columns) {
  check_entries(entries, rows, columns);
  matrix_ = c10::make_intrusive<Matrix>();
  // Each sum then goes by the other index, whichever way it is taken.
  const auto by_row = sorted_by(sorted_by(entries, &Entry::column, columns), &Entry::row, rows);
  matrix_->by_row = lines_of(by_row, &Entry::row, &Entry::column, rows);
  matrix_->by_column = lines_of(sorted_by(by_row, &Entry::column, columns), &Entry::column, &Entry::row, columns);
}

Tensor SparseOperator::apply(const Tensor& x) const {
  check_vectors(x, columns(), "vectors");
  return apply_side(x.reshape({-1, columns()}), matrix_, Side::rows).view(with_length(x, rows()));
}

Tensor SparseOperator::apply_adjoint(const Tensor& y) const {
  check_vectors(y, rows(), "vectors of the adjoint");
  return apply_side(y.reshape({-1, rows()}), matrix_, Side::columns).view(with_length(y, columns()));
}

Tensor SparseOperator::spread(const Tensor& x, const Tensor& center) const {
  check_vectors(x, columns(), "vectors");
  check_vectors(center, rows(), "centres");
  const auto in = x.detach().reshape({-1, columns()}).contiguous();
  const auto about = center.detach().to(in.options()).expand(with_length(x, rows())).reshape({-1, rows()}).contiguous();
  return line_sums(matrix_->by_row, matrix_->by_column, in, about).view(with_length(x, rows()));
}

Tensor SparseOperator::row_sums() const {
  return line_sums(matrix_->by_row, matrix_->by_column, at::ones({1, columns()}, torch::kFloat64))[0];
}

Tensor line_sums_by_index(const SparseOperator::Lines& lines, const Tensor& in) {
  const auto places = lines.places.to(in.device(), torch::kInt64), of_line = lines_of_entries(lines).to(in.device());
  const auto values = lines.values.to(in.device());
  auto sums = at::zeros({in.size(0), lines.lines}, in.options().dtype(torch::kFloat64));
  for (std::int64_t v = 0; v < in.size(0); ++v)
    sums[v].index_add_(0, of_line, values * in[v].to(torch::kFloat64).index_select(0, places));
  return sums.to(in.scalar_type());
}

Tensor line_spreads_by_index(const Lines& lines, const Tensor& in, const Tensor& center) {
  const auto places = lines.places.to(in.device(), torch::kInt64), of_line = lines_of_entries(lines).to(in.device());
  const auto values = lines.values.to(in.device());
  auto sums = at::zeros({in.size(0), lines.lines}, in.options().dtype(torch::kFloat64));
  for (std::int64_t v = 0; v < in.size(0); ++v) {
    const auto distance =
        in[v].to(torch::kFloat64).index_select(0, places) - center[v].to(torch::kFloat64).index_select(0, of_line);
    sums[v].index_add_(0, of_line, values * distance.square());
  }
  return sums.to(in.scalar_type());
}

}  // namespace mpol
