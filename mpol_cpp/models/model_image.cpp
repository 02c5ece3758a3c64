#include <mpol_cpp/models/model_image.h>

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace detail {

Tensor random_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state().clone();
}

void set_random_state(const Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  try {
    generator.set_state(state.to(torch::kCPU));
  } catch (const c10::Error&) {
    throw FileError("the saved state of the random generator, random.cpu, is none");
  }
}

Tensor sky_beside_fit(ImageModel& model) {
  const torch::NoGradGuard no_grad;
  const auto random = random_state();
  auto sky = model.make_sky();
  set_random_state(random);
  return sky;
}

}  // namespace detail

std::vector<std::int64_t> problem_shape(ImageModel& model) {
  constexpr std::int64_t of_problem = 3;
  const auto sky = detail::sky_beside_fit(model);
  const auto sizes = sky.sizes();  // of a tensor that must outlive them
  if (sizes.size() < of_problem) {
    throw ShapeError(fmt::format("the model's image has shape {}; it must be (…, nchan, npix, npix)", sizes.vec()));
  }
  return sizes.slice(0, sizes.size() - of_problem).vec();
}

}  // namespace mpol
