#include <mpol_cpp/ops/lbfgs/cpu_lbfgs.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

/// Nobody else has it, or a view of it.
bool is_ours_alone(const Tensor& tensor) { return tensor.use_count() == 1 && tensor.storage().use_count() == 1; }

}  // namespace

template <typename T>
CpuLbfgs<T>::CpuLbfgs(std::int64_t elements, Isa isa)
    : elements_(elements), kernels_(lbfgs_row_kernels<T>(isa)), history_(static_cast<std::size_t>(slots)) {
  if (elements < 1) throw ValueError(fmt::format("{} elements for L-BFGS: at least one is needed", elements));
  for (auto* vector : {&origin_, &direction_, &start_gradient_, &kept_[0], &kept_[1]}) *vector = AlignedArray<T>(elements);
  for (auto* table : {&move_change_, &change_change_}) table->resize(static_cast<std::size_t>(slots * slots));
  gradient_products_.resize(static_cast<std::size_t>(2 * slots));
}

/// Runs task(piece, first element, elements).
template <typename T>
template <typename Task>
void CpuLbfgs<T>::each_piece(const Task& task) const {
  const auto own = [&](std::int64_t piece, std::int64_t) {
    const auto first = piece * piece_elements;
    task(piece, first, std::min(piece_elements, elements_ - first));
  };
  share_tasks(pieces(), 1, own, WorkerPool::Order::near);
}

template <typename T>
void CpuLbfgs<T>::step(T* position, const T* gradient, double first_trial, const std::function<double()>& evaluate) {
  value_ = evaluate();
  ++evaluations_;
  gradient_sum_ = measure(gradient).magnitudes;
  if (gradient_sum_ <= 0) return;
  std::int64_t evaluations = 1;
  const T* accepted = gradient;
  for (int iteration = 1;; ++iteration) {
    ++iterations_;
    keep_accepted(position, accepted);
    if (!is_first()) correlate();
    direct();
    if (!aim(first_trial)) return;
    LbfgsSlope measured{};
    for (bool ended = false; !ended;) {
      move_to(position, search_.trial);
      const auto value = evaluate();
      ++evaluations_, ++evaluations;
      measured = measure(gradient);
      ended = search_.judge(value, measured.slope);
      keep_gradient(search_.keep, gradient);
    }
    step_ = search_.accepted.step;
    value_ = search_.accepted.value;
    accepted = gradient_at(search_.accepted.gradient, gradient);
    if (accepted != gradient) move_to(position, step_);
    const bool is_solved = accepted == gradient && measured.magnitudes <= 0, rests = step_ * search_.largest <= 0;
    if (is_solved || rests || iteration == LbfgsLimits::iterations || evaluations >= LbfgsLimits::evaluations) return;
  }
}

/// Goes on from the end of the last search: makes the pair of it, and the origin of the next.
template <typename T>
void CpuLbfgs<T>::keep_accepted(T* position, const T* accepted) {
  T *move = nullptr, *change = nullptr;
  if (!is_first()) {
    auto& pair = empty_pair(new_slot());
    move = pair.move.template mutable_data_ptr<T>(), change = pair.change.template mutable_data_ptr<T>();
  }
  const T step = static_cast<T>(step_);
  each_piece([&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (auto i = first; i < first + count; ++i) {
      if (move != nullptr) {
        move[i] = step * direction_.data()[i];
        change[i] = accepted[i] - start_gradient_.data()[i];
      }
      origin_.data()[i] = position[i];
      start_gradient_.data()[i] = accepted[i];
    }
  });
}

/// Room for the pair that is being tried. What a memory() still has is left to it.
template <typename T>
typename CpuLbfgs<T>::Pair& CpuLbfgs<T>::empty_pair(std::int64_t slot) {
  auto& pair = history_[static_cast<std::size_t>(slot)];
  const auto is_free = [](const Pair& own) { return is_ours_alone(own.move) && is_ours_alone(own.change); };
  if (pair.move.defined() && !is_free(pair)) retired_.push_back(std::exchange(pair, {}));
  if (pair.move.defined()) return pair;
  if (const auto found = std::find_if(retired_.begin(), retired_.end(), is_free); found != retired_.end()) {
    pair = std::move(*found);
    retired_.erase(found);
    return pair;
  }
  const auto options = torch::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value);
  pair = {at::empty({elements_}, options), at::empty({elements_}, options)};
  return pair;
}

template <typename T>
std::vector<const T*> CpuLbfgs<T>::places(const LbfgsPairs& pairs) const {
  const auto count = static_cast<std::size_t>(pairs.count);
  std::vector<const T*> places(2 * count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto& pair = history_[static_cast<std::size_t>(pairs.slot(static_cast<std::int64_t>(k)))];
    places[k] = pair.move.template const_data_ptr<T>();
    places[count + k] = pair.change.template const_data_ptr<T>();
  }
  return places;
}

/// Products of each pair, the one that is being tried too, with that one's change and with the gradient.
template <typename T>
void CpuLbfgs<T>::correlate() {
  const auto kept = LbfgsPairs::of(pairs_);
  const LbfgsPairs with_new{kept.oldest, kept.count + 1};
  const auto tried = new_slot();
  const T* latest = history_[static_cast<std::size_t>(tried)].change.template const_data_ptr<T>();
  const auto products_of_piece = static_cast<std::size_t>(4 * with_new.count);
  std::vector<double> products(static_cast<std::size_t>(pieces()) * products_of_piece);
  const auto pair_places = places(with_new);
  each_piece([&](std::int64_t piece, std::int64_t first, std::int64_t count) {
    kernels_.correlate({pair_places.data(), pair_places.data() + with_new.count, with_new.count, first},
                       start_gradient_.data() + first, latest + first, count,
                       products.data() + static_cast<std::size_t>(piece) * products_of_piece);
  });
  for (std::size_t piece = 1; piece < static_cast<std::size_t>(pieces()); ++piece) {
    for (std::size_t i = 0; i < products_of_piece; ++i) products[i] += products[piece * products_of_piece + i];
  }
  for (std::int64_t k = 0; k < with_new.count; ++k) {
    const auto slot = with_new.slot(k);
    const double* own = products.data() + 4 * k;
    gradient_products_[static_cast<std::size_t>(slot)] = own[0];
    gradient_products_[static_cast<std::size_t>(slots + slot)] = own[1];
    of_pairs(move_change_, tried, slot) = own[2];
    of_pairs(change_change_, tried, slot) = of_pairs(change_change_, slot, tried) = own[3];
  }
}

/// Keeps the new pair if it has curvature, and finds the factors of the direction d = -H g. With the moves and changes of all
/// pairs as columns of S and Y, from the oldest on, R the upper triangle of S'Y, D its diagonal, p = R^-1 S'g,
///   H g = c g - c Y p + S R^-T ((D + c Y'Y) p - c Y'g),   c = s'y / (y'y) of the newest pair.
template <typename T>
void CpuLbfgs<T>::direct() {
  if (!is_first()) {
    const auto tried = new_slot();
    const double curvature = of_pairs(move_change_, tried, tried);
    if (curvature > LbfgsLimits::least_curvature) {
      scale_ = curvature / of_pairs(change_change_, tried, tried);
      ++pairs_;
    }
  }
  const auto pairs = LbfgsPairs::of(pairs_);
  const auto count = static_cast<std::size_t>(pairs.count);
  std::vector<std::size_t> slot(count);
  for (std::size_t k = 0; k < count; ++k) slot[k] = static_cast<std::size_t>(pairs.slot(static_cast<std::int64_t>(k)));
  const auto upper = [&](std::size_t row, std::size_t column) { return move_change_[slot[column] * slots + slot[row]]; };

  std::vector<double> p(count), rest(count);
  for (std::size_t k = 0; k < count; ++k) p[k] = gradient_products_[slot[k]];
  for (auto column = count; column-- > 0;) {
    p[column] /= upper(column, column);
    for (std::size_t row = 0; row < column; ++row) p[row] -= upper(row, column) * p[column];
  }
  for (std::size_t row = 0; row < count; ++row) {
    double sum = -gradient_products_[slots + slot[row]];
    for (std::size_t k = 0; k < count; ++k) sum += change_change_[slot[row] * slots + slot[k]] * p[k];
    rest[row] = upper(row, row) * p[row] + scale_ * sum;
  }
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t k = 0; k < row; ++k) rest[row] -= upper(k, row) * rest[k];
    rest[row] /= upper(row, row);
  }
  move_factors_.resize(count), change_factors_.resize(count);
  for (std::size_t k = 0; k < count; ++k) move_factors_[k] = -rest[k], change_factors_[k] = scale_ * p[k];
}

/// Adds the direction up and begins the search along it. @return false when the objective does not fall along it
template <typename T>
bool CpuLbfgs<T>::aim(double first_trial) {
  const auto pairs = LbfgsPairs::of(pairs_);
  std::vector<LbfgsDescent> descents(static_cast<std::size_t>(pieces()));
  // From the last piece on: what the products have just read is near.
  const auto pair_places = places(pairs);
  each_piece([&](std::int64_t reversed, std::int64_t, std::int64_t) {
    alignas(64) std::array<double, piece_elements + lbfgs_margin> sums;
    const auto piece = pieces() - 1 - reversed, first = piece * piece_elements;
    descents[static_cast<std::size_t>(piece)] =
        kernels_.steer({pair_places.data(), pair_places.data() + pairs.count, pairs.count, first}, move_factors_.data(),
                       change_factors_.data(), start_gradient_.data() + first, -scale_, direction_.data() + first,
                       std::min(piece_elements, elements_ - first), sums.data());
  });
  double slope = 0, largest = 0;
  for (const auto& descent : descents) {
    slope += descent.slope;
    largest = descent.largest > largest ? descent.largest : largest;
  }
  const double limit = 1.0 / gradient_sum_;
  step_ = first_trial * (is_first() && limit < 1.0 ? limit : 1.0);
  previous_value_ = value_;
  if (slope > 0) return false;
  search_.begin(value_, slope, step_, largest);
  return true;
}

template <typename T>
LbfgsSlope CpuLbfgs<T>::measure(const T* gradient) const {
  std::vector<LbfgsSlope> slopes(static_cast<std::size_t>(pieces()));
  each_piece([&](std::int64_t piece, std::int64_t first, std::int64_t count) {
    slopes[static_cast<std::size_t>(piece)] = kernels_.measure(gradient + first, direction_.data() + first, count);
  });
  return std::accumulate(slopes.begin(), slopes.end(), LbfgsSlope{}, [](const LbfgsSlope& a, const LbfgsSlope& b) {
    return LbfgsSlope{a.slope + b.slope, a.magnitudes + b.magnitudes};
  });
}

template <typename T>
void CpuLbfgs<T>::move_to(T* position, double step) const {
  const T length = static_cast<T>(step);
  each_piece([&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (auto i = first; i < first + count; ++i) position[i] = origin_.data()[i] + length * direction_.data()[i];
  });
}

template <typename T>
void CpuLbfgs<T>::keep_gradient(GradientAt place, const T* gradient) {
  if (place == GradientAt::none) return;
  T* to = kept_[static_cast<std::size_t>(place)].data();
  each_piece([&](std::int64_t, std::int64_t first, std::int64_t count) { std::copy_n(gradient + first, count, to + first); });
}

template <typename T>
const T* CpuLbfgs<T>::gradient_at(GradientAt place, const T* trial) const {
  if (place == GradientAt::trial) return trial;
  return place == GradientAt::start ? start_gradient_.data() : kept_[static_cast<std::size_t>(place)].data();
}

template <typename T>
LbfgsMemory CpuLbfgs<T>::memory() const {
  const auto copy_of = [&](const AlignedArray<T>& vector) {
    return at::from_blob(vector.data(), {elements_}, c10::CppTypeToScalarType<T>::value).clone();
  };
  LbfgsMemory memory{iterations_, evaluations_, scale_, step_, previous_value_, copy_of(direction_), copy_of(start_gradient_),
                     {},          {},           {}};
  const auto pairs = LbfgsPairs::of(pairs_);
  for (std::int64_t k = 0; k < pairs.count; ++k) {
    const auto slot = pairs.slot(k);
    memory.moves.push_back(history_[static_cast<std::size_t>(slot)].move);
    memory.changes.push_back(history_[static_cast<std::size_t>(slot)].change);
    memory.curvatures.push_back(move_change_[static_cast<std::size_t>(slot * slots + slot)]);
  }
  return memory;
}

template <typename T>
void CpuLbfgs<T>::restore(const LbfgsMemory& memory) {
  const auto count = static_cast<std::int64_t>(memory.moves.size());
  if (count > LbfgsLimits::history || memory.changes.size() != memory.moves.size()) {
    throw ValueError(fmt::format("{} moves and {} changes of L-BFGS: it keeps as many of both, at most {}", count,
                                 memory.changes.size(), static_cast<int>(LbfgsLimits::history)));
  }
  const auto taken_up = [&](const Tensor& from) {
    if (!from.defined() || from.numel() != elements_) {
      throw ValueError(fmt::format("a vector of L-BFGS has {} elements, the parameters have {}",
                                   from.defined() ? from.numel() : 0, elements_));
    }
    return from.to(torch::kCPU, c10::CppTypeToScalarType<T>::value).flatten().contiguous();
  };
  std::vector<Pair> pairs(static_cast<std::size_t>(slots));
  for (std::size_t k = 0; k < memory.moves.size(); ++k) pairs[k] = {taken_up(memory.moves[k]), taken_up(memory.changes[k])};
  if (memory.iterations > 0) {
    for (const auto& [to, from] : {std::pair(&direction_, &memory.direction), std::pair(&start_gradient_, &memory.gradient)}) {
      std::copy_n(taken_up(*from).template const_data_ptr<T>(), elements_, to->data());
    }
  }
  iterations_ = memory.iterations, evaluations_ = memory.evaluations;
  scale_ = memory.scale, step_ = memory.step, previous_value_ = memory.previous_value;
  history_ = std::move(pairs);
  retired_.clear();
  // The products are made as they were when each pair was the new one, to the last bit.
  for (pairs_ = 0; pairs_ < count; ++pairs_) correlate();
  if (count == 0) return;
  const auto newest = static_cast<std::size_t>((count - 1) * slots + count - 1);
  scale_ = move_change_[newest] / change_change_[newest];
}

template <typename T>
std::int64_t CpuLbfgs<T>::memory_bytes() const {
  auto bytes = 5 * origin_.bytes();
  for (const auto* all : {&history_, &retired_}) {
    for (const auto& pair : *all) bytes += pair.move.defined() ? pair.move.nbytes() + pair.change.nbytes() : 0;
  }
  return static_cast<std::int64_t>(bytes);
}

template class CpuLbfgs<float>;
template class CpuLbfgs<double>;

}  // namespace mpol::ops
