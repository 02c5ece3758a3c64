#pragma once

#include <memory>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/communicator.h>

// What tests on several threads of ranks ask: assertions of Catch2 are for one thread.
namespace mpol::testing {

inline double gap_between(const Tensor& a, const Tensor& b) {
  return ((a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max() / b.abs().max().to(torch::kFloat64)).item<double>();
}

inline void demand(bool holds, const std::string& what) {
  if (!holds) throw DataError(what);
}

/// Ranks are handed on as shared; these live as long as their threads.
inline std::shared_ptr<Communicator> as_shared(Communicator& ranks) {
  return {&ranks, [](Communicator*) {}};
}

}  // namespace mpol::testing
