#include <mpol_cpp/analysis/sparse_operator.h>

#include <algorithm>
#include <array>
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

constexpr std::int64_t vectors_at_once = 4;
constexpr std::int64_t entries_per_piece = 8192;

using Entries = std::vector<SparseOperator::Entry>;
using Index = std::int32_t SparseOperator::Entry::*;

/// The entries by one of their two indices, those of a line in the order of the list.
Lines sorted_by(const Entries& entries, Index line, Index place, std::int64_t lines) {
  const auto count = static_cast<std::int64_t>(entries.size());
  Lines sorted{lines, at::zeros({lines + 1}, torch::kInt64), at::empty({count}, torch::kInt32),
               at::empty({count}, torch::kFloat64)};
  auto* start = sorted.starts.mutable_data_ptr<std::int64_t>();
  auto* places = sorted.places.mutable_data_ptr<std::int32_t>();
  auto* values = sorted.values.mutable_data_ptr<double>();
  for (const auto& entry : entries) ++start[entry.*line + 1];
  for (std::int64_t i = 0; i < lines; ++i) start[i + 1] += start[i];
  std::vector<std::int64_t> next(start, start + lines);
  for (const auto& entry : entries) {
    const auto target = next[static_cast<std::size_t>(entry.*line)]++;
    places[target] = entry.*place;
    values[target] = entry.value;
  }
  return sorted;
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
  static constexpr bool about_centre = false;
  static double of(double value, double x, double) { return value * x; }
};

/// A_ij (x_j - centre_i)^2
struct SquaredDistance {
  static constexpr bool about_centre = true;
  static double of(double value, double x, double centre) { return value * (x - centre) * (x - centre); }
};

/// `Count` vectors go through the entries together, so that these are read once for all of them.
template <typename Addend, std::int64_t Count, typename T>
void add_lines(const LineView& view, const T* in, std::int64_t places, const T* centre, T* out, std::int64_t first,
               std::int64_t last) {
  for (auto line = first; line < last; ++line) {
    std::array<double, Count> sums{}, centres{};
    if constexpr (Addend::about_centre) {
      for (std::int64_t k = 0; k < Count; ++k)
        centres[static_cast<std::size_t>(k)] = static_cast<double>(centre[k * view.lines + line]);
    }
    for (auto i = view.starts[line]; i < view.starts[line + 1]; ++i) {
      const auto place = static_cast<std::int64_t>(view.places[i]);
      const double value = view.values[i];
      for (std::int64_t k = 0; k < Count; ++k) {
        const auto j = static_cast<std::size_t>(k);
        sums[j] += Addend::of(value, static_cast<double>(in[k * places + place]), centres[j]);
      }
    }
    for (std::int64_t k = 0; k < Count; ++k) out[k * view.lines + line] = static_cast<T>(sums[static_cast<std::size_t>(k)]);
  }
}

/// @param in (vectors, places), out (vectors, lines), contiguous
template <typename Addend, typename T>
void line_sums_on_cpu(const LineView& view, const T* in, std::int64_t places, const T* centre, T* out, std::int64_t vectors) {
  const auto entries = std::max<std::int64_t>(1, view.starts[view.lines]);
  const auto lines_per_piece = std::clamp<std::int64_t>(view.lines * entries_per_piece / entries, 1, view.lines);
  const auto pieces = (view.lines + lines_per_piece - 1) / lines_per_piece;
  const auto groups = (vectors + vectors_at_once - 1) / vectors_at_once;
  const auto add = [&](std::int64_t task, std::int64_t) {
    const auto vector = task / pieces * vectors_at_once, first = task % pieces * lines_per_piece;
    const auto last = std::min(first + lines_per_piece, view.lines), end = std::min(vector + vectors_at_once, vectors);
    const auto centre_of = [&](std::int64_t v) { return centre == nullptr ? nullptr : centre + v * view.lines; };
    if (end - vector == vectors_at_once) {
      add_lines<Addend, vectors_at_once>(view, in + vector * places, places, centre_of(vector), out + vector * view.lines, first,
                                         last);
      return;
    }
    for (auto v = vector; v < end; ++v)
      add_lines<Addend, 1>(view, in + v * places, places, centre_of(v), out + v * view.lines, first, last);
  };
  ops::share_tasks(groups * pieces, 1, add, WorkerPool::Order::near);
}

/// The line of every entry, int64.
Tensor lines_of_entries(const Lines& lines) {
  const auto counts = lines.starts.narrow(0, 1, lines.lines) - lines.starts.narrow(0, 0, lines.lines);
  return at::repeat_interleave(at::arange(lines.lines, torch::kInt64), counts);
}

/// @param in  (vectors, places) contiguous; centre: undefined, or (vectors, lines) for squared distances
Tensor line_sums(const Lines& lines, const Tensor& in, const Tensor& centre = {}) {
  if (!in.is_cpu()) return centre.defined() ? line_spreads_by_index(lines, in, centre) : line_sums_by_index(lines, in);
  auto out = at::empty({in.size(0), lines.lines}, in.options());
  if (out.numel() == 0) return out;
  const LineView view(lines);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "mpol::SparseOperator", [&] {
    const auto* from = in.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    if (centre.defined()) {
      line_sums_on_cpu<SquaredDistance>(view, from, in.size(1), centre.const_data_ptr<scalar_t>(), to, in.size(0));
    } else {
      line_sums_on_cpu<Product, scalar_t>(view, from, in.size(1), nullptr, to, in.size(0));
    }
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
    return line_sums(side == Side::rows ? matrix->by_row : matrix->by_column, in.contiguous());
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
  matrix_->by_row = sorted_by(entries, &Entry::row, &Entry::column, rows);
  matrix_->by_column = sorted_by(entries, &Entry::column, &Entry::row, columns);
}

Tensor SparseOperator::apply(const Tensor& x) const {
  check_vectors(x, columns(), "vectors");
  return apply_side(x.reshape({-1, columns()}), matrix_, Side::rows).view(with_length(x, rows()));
}

Tensor SparseOperator::apply_adjoint(const Tensor& y) const {
  check_vectors(y, rows(), "vectors of the adjoint");
  return apply_side(y.reshape({-1, rows()}), matrix_, Side::columns).view(with_length(y, columns()));
}

Tensor SparseOperator::spread(const Tensor& x, const Tensor& centre) const {
  check_vectors(x, columns(), "vectors");
  check_vectors(centre, rows(), "centres");
  const auto in = x.detach().reshape({-1, columns()}).contiguous();
  const auto about = centre.detach().to(in.options()).expand(with_length(x, rows())).reshape({-1, rows()}).contiguous();
  return line_sums(matrix_->by_row, in, about).view(with_length(x, rows()));
}

Tensor SparseOperator::row_sums() const { return line_sums(matrix_->by_row, at::ones({1, columns()}, torch::kFloat64))[0]; }

Tensor line_sums_by_index(const SparseOperator::Lines& lines, const Tensor& in) {
  const auto places = lines.places.to(in.device(), torch::kInt64), of_line = lines_of_entries(lines).to(in.device());
  const auto values = lines.values.to(in.device());
  auto sums = at::zeros({in.size(0), lines.lines}, in.options().dtype(torch::kFloat64));
  for (std::int64_t v = 0; v < in.size(0); ++v)
    sums[v].index_add_(0, of_line, values * in[v].to(torch::kFloat64).index_select(0, places));
  return sums.to(in.scalar_type());
}

Tensor line_spreads_by_index(const Lines& lines, const Tensor& in, const Tensor& centre) {
  const auto places = lines.places.to(in.device(), torch::kInt64), of_line = lines_of_entries(lines).to(in.device());
  const auto values = lines.values.to(in.device());
  auto sums = at::zeros({in.size(0), lines.lines}, in.options().dtype(torch::kFloat64));
  for (std::int64_t v = 0; v < in.size(0); ++v) {
    const auto distance =
        in[v].to(torch::kFloat64).index_select(0, places) - centre[v].to(torch::kFloat64).index_select(0, of_line);
    sums[v].index_add_(0, of_line, values * distance.square());
  }
  return sums.to(in.scalar_type());
}

}  // namespace mpol
