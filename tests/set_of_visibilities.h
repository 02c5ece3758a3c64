#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/visibilities/visibilities.h>

#include "set_writer.h"

namespace mpol::testing {

/// Adds visibilities to a measurement set as a window of their own: CASA's sign, two hands, rows of its fields by turns.
/// @throws std::invalid_argument unless u and v are in metres, and the same in all channels
inline void add_window(TestSet& set, const Visibilities& visibilities) {
  const auto& baselines = visibilities.baselines();
  if (!baselines.frequencies().defined() || baselines.u().dim() != 1) {
    throw std::invalid_argument("a measurement set has u and v in metres, one of each for all channels");
  }
  TestWindow window;
  for (const auto& hertz : visibilities.frequencies().unbind()) window.frequencies.push_back(hertz.item<double>());
  const auto number = static_cast<int>(set.windows.size());
  set.windows.push_back(window);
  const auto u = baselines.u().to(torch::kFloat64), v = baselines.v().to(torch::kFloat64);
  const auto data = visibilities.data().to(torch::kComplexFloat), weights = visibilities.weights().to(torch::kFloat32);
  for (std::int64_t i = 0; i < visibilities.nvis(); ++i) {
    TestRow row;
    row.window = number;
    row.field = static_cast<int>(static_cast<std::size_t>(i) % set.fields.size());
    row.uvw = {u[i].item<double>(), v[i].item<double>(), 0};
    for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
      const auto value = data[channel][i].item<c10::complex<float>>();
      row.data.insert(row.data.end(), 2, {value.real(), -value.imag()});
      row.spectrum.insert(row.spectrum.end(), 2, weights[channel][i].item<float>() / 2);
    }
    row.weight = {row.spectrum[0], row.spectrum[1]};
    set.rows.push_back(row);
  }
}

}  // namespace mpol::testing
