#include <mpol_cpp/uncertainty/fit_noise.h>

#include <cmath>
#include <utility>

#include <ATen/ops/empty_like.h>

namespace mpol {
namespace {

constexpr double lowest_right = 0.87, highest_right = 1.15;  // where findings about weights begin too
constexpr double suspicious = 1.1, least_shared = 1.15;
constexpr std::int64_t simulated_fits = 2;

/// The root mean square of the slope of chi^2/(2 N), in units of what noise as the weights say gives it.
double scatter_of_slope(ImageModel& model, const Objective& objective, const NoiseUnit& unit) {
  auto& likelihood = objective.likelihood();
  const auto before = likelihood.working_state();
  const auto sky = model.make_sky();
  auto slope = at::empty_like(sky);
  likelihood.value_and_gradient(sky, slope, Accumulate::overwrite);
  likelihood.load_working_state(before);
  objective.normalize_gradient(slope);
  return std::sqrt(slope.to(torch::kCPU, torch::kFloat64).square().mean().item<double>()) / unit.slope;
}

}  // namespace

bool FitNoise::differs_from(double other) const { return factor() < lowest_right * other || factor() > highest_right * other; }

FitNoise noise_to_follow(const FitNoise& found, const FitNoise& present) {
  if (!found.differs_from(present.factor())) return present;
  return found.is_off() ? found : FitNoise();
}

FitNoise noise_of_look(double reduced) {
  const FitNoise most{.of_samples = std::sqrt(reduced)};
  return most.factor() > 0 && most.factor() < lowest_right ? most : FitNoise();
}

FitNoise pooled_noise(const std::vector<FitNoise>& parts) {
  if (parts.empty()) return {};
  double of_samples = 0, of_image = 0;
  for (const auto& part : parts) {
    of_samples += part.of_samples * part.of_samples;
    of_image += part.factor() * part.factor();
  }
  return {.of_samples = std::sqrt(of_samples / static_cast<double>(parts.size())), .shared = std::sqrt(of_image / of_samples)};
}

FitNoise measure_fit_noise(const std::shared_ptr<GriddedNetImpl>& model, const Objective& objective, const NoiseUnit& unit,
                           double reduced, const std::function<DirtyNoise()>& noise, SharedErrors shared,
                           BootstrapOptions options) {
  const torch::NoGradGuard no_grad;
  FitNoise found{.of_samples = std::sqrt(reduced)};
  if (!(found.of_samples > 0) || !std::isfinite(found.of_samples)) return {};
  if (!noise || !Bootstrap::obstacle(*model, objective).empty()) return found;
  if (scatter_of_slope(*model, objective, unit) < suspicious * found.of_samples) return found;
  const auto draws = noise();
  options.samples(simulated_fits);
  const int rounds = shared == SharedErrors::once ? 1 : 2;
  for (int round = 0; round < rounds; ++round) {
    const double ratio = Bootstrap(model, objective, options.noise_factor(found.factor())).residual_ratio(draws);
    if (ratio < least_shared) break;
    found.shared *= ratio;
  }
  return found;
}

}  // namespace mpol
