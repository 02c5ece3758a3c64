#pragma once

#include <cstdint>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol::detail {

/// Everything that a fit goes on from after some epochs, apart from its settings: "model.NAME" (parameters and buffers),
/// "likelihood.NAME" (parameters; its buffers are data), "likelihood_state.NAME" (its working state), "optimizer.NAME",
/// "random.cpu"; of a fit whose problems end by themselves also "stop.NAME"; "flux.marked" (2) float64, after how many epochs the
/// flux was taken and what it was, Jy, once it was.
struct TrainingState {
  std::int64_t epochs = 0;  ///< done
  NamedTensors tensors;
};

/// A copy of the present state, on the device.
TrainingState capture_state(std::int64_t epochs, ImageModel& model, const Objective& objective, const Step& step);

/// Puts model, likelihood, optimiser and random generator into a state, which may be on another device.
/// @throws FileError when names, shapes or dtypes do not match; the model is then unchanged
void restore_state(const TrainingState& state, ImageModel& model, const Objective& objective, Step& step);

}  // namespace mpol::detail
