#include <mpol_cpp/ops/proximal/admm_update.h>

#include <algorithm>
#include <array>
#include <vector>

#include <ATen/Dispatch.h>

#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t values_per_piece = 16384;
constexpr std::int64_t lanes = 8;  // sums that do not wait for each other

struct LaneSums {
  std::array<double, lanes> primal{}, change{}, constraint{}, auxiliary{}, multiplier{};

  AdmmSums total() const {
    AdmmSums sums;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums.primal += primal[lane];
      sums.change += change[lane];
      sums.constraint += constraint[lane];
      sums.auxiliary += auxiliary[lane];
      sums.multiplier += multiplier[lane];
    }
    return sums;
  }
};

template <typename T>
void add_squares(LaneSums& sums, std::size_t lane, T left, T moved, T a, T z, T u) {
  sums.primal[lane] += static_cast<double>(left * left);
  sums.change[lane] += static_cast<double>(moved * moved);
  sums.constraint[lane] += static_cast<double>(a * a);
  sums.auxiliary[lane] += static_cast<double>(z * z);
  sums.multiplier[lane] += static_cast<double>(u * u);
}

/// Adds up what value(i, lane, sums) adds to the sums of its lane, for each i.
template <typename Value>
AdmmSums sum_up(std::int64_t size, const Value& value) {
  std::vector<AdmmSums> parts(static_cast<std::size_t>((size + values_per_piece - 1) / values_per_piece));
  share_tasks(
      static_cast<std::int64_t>(parts.size()), 1,
      [&](std::int64_t piece, std::int64_t) {
        auto i = piece * values_per_piece;
        const auto last = std::min(size, i + values_per_piece);
        LaneSums sums;
        for (; i + lanes <= last; i += lanes) {
          for (std::int64_t lane = 0; lane < lanes; ++lane) value(i + lane, static_cast<std::size_t>(lane), sums);
        }
        for (; i < last; ++i) value(i, 0, sums);
        parts[static_cast<std::size_t>(piece)] = sums.total();
      },
      WorkerPool::Order::near);
  AdmmSums sums;
  for (const auto& part : parts) {
    sums.primal += part.primal;
    sums.change += part.change;
    sums.constraint += part.constraint;
    sums.auxiliary += part.auxiliary;
    sums.multiplier += part.multiplier;
  }
  return sums;
}

}  // namespace

AdmmSums shrink_update(const Tensor& a, double alpha, double threshold, Tensor& z, Tensor& u) {
  AdmmSums sums;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "shrink_update", [&] {
    const auto* from = a.const_data_ptr<scalar_t>();
    auto *own_z = z.mutable_data_ptr<scalar_t>(), *own_u = u.mutable_data_ptr<scalar_t>();
    const auto of_a = static_cast<scalar_t>(alpha), of_z = static_cast<scalar_t>(1 - alpha), t = static_cast<scalar_t>(threshold);
    sums = sum_up(a.numel(), [&](std::int64_t i, std::size_t lane, LaneSums& lane_sums) {
      const auto x = from[i], old = own_z[i], v = of_a * x + of_z * old + own_u[i];
      const auto next_u = std::min(std::max(v, -t), t), next = v - next_u;
      own_z[i] = next;
      own_u[i] = next_u;
      add_squares<scalar_t>(lane_sums, lane, x - next, next - old, x, next, next_u);
    });
  });
  return sums;
}

AdmmSums multiplier_update(const Tensor& a, const Tensor& next, const Tensor& constant, const Tensor& v, Tensor& z, Tensor& u) {
  AdmmSums sums;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "multiplier_update", [&] {
    const auto *from = a.const_data_ptr<scalar_t>(), *from_next = next.const_data_ptr<scalar_t>(),
               *from_v = v.const_data_ptr<scalar_t>();
    const auto* from_c = constant.defined() ? constant.const_data_ptr<scalar_t>() : nullptr;
    auto *own_z = z.mutable_data_ptr<scalar_t>(), *own_u = u.mutable_data_ptr<scalar_t>();
    sums = sum_up(a.numel(), [&](std::int64_t i, std::size_t lane, LaneSums& lane_sums) {
      const auto x = from[i], new_z = from_next[i], new_u = from_v[i] - new_z, old = own_z[i];
      own_z[i] = new_z;
      own_u[i] = new_u;
      add_squares<scalar_t>(lane_sums, lane, from_c == nullptr ? x - new_z : x - new_z - from_c[i], new_z - old, x, new_z, new_u);
    });
  });
  return sums;
}

double squared_length(const Tensor& x) {
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "squared_length", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    sum = sum_up(x.numel(), [&](std::int64_t i, std::size_t lane, LaneSums& lane_sums) {
            lane_sums.primal[lane] += static_cast<double>(from[i] * from[i]);
          }).primal;
  });
  return sum;
}

}  // namespace mpol::ops
