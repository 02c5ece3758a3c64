#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <ATen/core/grad_mode.h>
#include <torch/ordered_dict.h>

#include "catch.h"

namespace mpol::testing {

/// Checks the gradients that parameters have got against differences of value() to both sides.
/// @param most  elements of each parameter that are looked at
template <typename Value>
void check_parameter_slopes(const torch::OrderedDict<std::string, torch::Tensor>& parameters, const Value& value, double epsilon,
                            double margin, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const torch::NoGradGuard no_gradient;
  for (const auto& parameter : parameters) {
    auto numbers = parameter.value().view({-1});
    for (std::int64_t i = 0; i < std::min(most, numbers.numel()); ++i) {
      constexpr double step = 1e-6;
      const double start = numbers[i].item<double>();
      numbers[i].fill_(start + step);
      const double above = value().template item<double>();
      numbers[i].fill_(start - step);
      const double below = value().template item<double>();
      numbers[i].fill_(start);
      INFO(parameter.key() << " " << i);
      CHECK(parameter.value().grad().view({-1})[i].item<double>() ==
            Approx((above - below) / (2 * step)).epsilon(epsilon).margin(margin));
    }
  }
}

}  // namespace mpol::testing
