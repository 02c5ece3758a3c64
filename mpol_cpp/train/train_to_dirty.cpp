#include <mpol_cpp/train/train_to_dirty.h>

#include <cmath>

#include <ATen/ops/linalg_vector_norm.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

void check_dirty_options(const TrainToDirtyOptions& options) {
  if (!std::isfinite(options.learning_rate()) || options.learning_rate() <= 0) {
    throw ValueError(fmt::format("the learning rate is {}; it must be finite and greater than 0", options.learning_rate()));
  }
  if (options.steps() < 1) throw ValueError(fmt::format("the number of steps is {}; it must be at least 1", options.steps()));
}

}  // namespace

double train_to_dirty_image(ImageModel& model, const Tensor& dirty, const TrainToDirtyOptions& options) {
  check_dirty_options(options);
  const auto sky = model.make_sky();
  if (dirty.sizes() != sky.sizes()) {
    throw ShapeError(fmt::format("the dirty image has shape {}, the model's image {}; they must be equal", dirty.sizes().vec(),
                                 sky.sizes().vec()));
  }
  const auto target = dirty.detach().to(sky.options());
  // Not the square root of a sum: where the distance is zero its gradient would not be a number.
  const auto distance = [&] { return at::linalg_vector_norm(model.make_sky() - target); };
  torch::optim::SGD optimizer(model.as_module().parameters(), torch::optim::SGDOptions(options.learning_rate()));
  for (std::int64_t step = 0; step < options.steps(); ++step) {
    optimizer.zero_grad();
    distance().backward();
    optimizer.step();
  }
  optimizer.zero_grad();
  const torch::NoGradGuard no_grad;
  const auto left = distance().item<double>();
  if (std::isfinite(left)) return left;
  throw DivergedError(fmt::format("the distance to the dirty image is {} after {} steps at a learning rate of {}: lower it", left,
                                  options.steps(), options.learning_rate()));
}

}  // namespace mpol
