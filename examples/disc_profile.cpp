// The profile of a disc whose geometry is known only nearly: first the profile of the geometry that is thought, then profile and
// geometry together, with the Gaussian process of the first as the prior.
//
// usage: disc_profile [iterations]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <torch/optim/lbfgs.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/mpol.h>

namespace {

constexpr double degree = mpol::units::degree;

/// What the array observes: a smooth ring of 0.1 Jy, inclined by 40 degrees.
mpol::Visibilities observe() {
  mpol::RingedDisc disc;
  disc.rings = {{.radius = 0.5, .width = 0.3, .brightness = 1}};
  disc.crescent.reset();
  disc.flux = 0.1;
  disc.inclination = 40 * degree;
  disc.position_angle = 60 * degree;
  const auto array = mpol::alma_like_array(/*longest_baseline=*/1600, /*antennas=*/20);
  return mpol::simulate_observation(array, disc, mpol::SimulationOptions().seed(1));
}

void run(int iterations) {
  const auto visibilities = observe();
  const mpol::DiscGeometry thought{.inclination = 36 * degree, .position_angle = 63 * degree};
  const auto first = mpol::fit_radial_profile(visibilities, thought, mpol::RadialProfileOptions().radius(1.5).points(60));

  auto profile = mpol::RadialProfileModel(first);
  auto optimizer = torch::optim::LBFGS(profile->parameters(),
                                       torch::optim::LBFGSOptions(1).max_iter(iterations).line_search_fn("strong_wolfe"));
  const auto objective = [&] {  // -ln of the posterior
    optimizer.zero_grad();
    const auto residual = profile->loose(visibilities.baselines()) - visibilities.data();
    auto loss = 0.5 * (visibilities.weights() * residual.abs().square()).sum() + profile->negative_log_prior(first.power);
    loss.backward();
    return loss;
  };
  const double before = objective().item<double>();
  optimizer.step(objective);
  const double after = objective().item<double>();

  const auto found = profile->geometry();
  fmt::print("inclination: {:.1f} degrees, position angle: {:.1f} degrees; -ln of the posterior fell by {:.0f}\n",
             found.inclination / degree, found.position_angle / degree, before - after);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int iterations = argc > 1 ? std::stoi(argv[1]) : 300;
    if (iterations < 1) throw mpol::ValueError(fmt::format("iterations is {}; it must be at least 1", iterations));
    run(iterations);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "disc_profile: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
