#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// Sums numbers that lie in several places over ranks, in one exchange.
/// @param visit_all  calls the function that it is given with each place, (double* numbers, std::size_t count); the same on all
template <typename VisitAll>
void sum_visited(Communicator& ranks, const VisitAll& visit_all) {
  std::vector<double> numbers;
  visit_all([&](const double* sums, std::size_t count) { numbers.insert(numbers.end(), sums, sums + count); });
  ranks.sum(numbers);
  auto from = numbers.cbegin();
  visit_all([&](double* sums, std::size_t count) {
    std::copy_n(from, count, sums);
    from += static_cast<std::ptrdiff_t>(count);
  });
}

/// Adds the numbers of one to those of another.
/// @param visit_all, visit_others  as above, of the same places
template <typename VisitAll, typename VisitOthers>
void add_visited(const VisitAll& visit_all, const VisitOthers& visit_others) {
  std::vector<double> numbers;
  visit_others([&](const double* sums, std::size_t count) { numbers.insert(numbers.end(), sums, sums + count); });
  auto from = numbers.cbegin();
  visit_all([&](double* sums, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += *from++;
  });
}

}  // namespace mpol
