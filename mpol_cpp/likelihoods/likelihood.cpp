#include <mpol_cpp/likelihoods/likelihood.h>

#include <string_view>

#include <torch/autograd.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {

Tensor Likelihood::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  losses::detail::check_gradient(sky, gradient);
  const torch::AutoGradMode with_gradients(true);
  const auto leaf = sky.detach().clone().set_requires_grad(true);
  const auto value = chi_squared(leaf);
  const auto slope = torch::autograd::grad({value.sum()}, {leaf})[0];
  const torch::NoGradGuard no_grad;
  if (accumulate == Accumulate::add) gradient.add_(slope);
  else gradient.copy_(slope);
  return value.detach().to(torch::kFloat64);
}

Tensor Likelihood::channel_values_and_gradient(const Tensor&, Tensor&, Accumulate) {
  throw ValueError(fmt::format("the {} likelihood tells no chi^2 of each channel: ask for value_and_gradient()", name()));
}

std::int64_t Likelihood::samples() const { return static_cast<std::int64_t>(normalizer()); }

std::int64_t Likelihood::visibilities_count() const { return samples(); }

std::int64_t Likelihood::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& parameter : as_module().parameters()) bytes += parameter.nbytes();
  for (const auto& buffer : as_module().buffers()) bytes += buffer.nbytes();
  return static_cast<std::int64_t>(bytes);
}

void Likelihood::load_working_state(const NamedTensors& state) {
  if (!state.empty()) throw FileError(fmt::format("the {} likelihood has no state {}", name(), state.begin()->first));
}

std::string Likelihood::name() const {
  constexpr std::string_view ending = "Impl";
  auto name = as_module().name();
  if (const auto place = name.rfind(':'); place != std::string::npos) name.erase(0, place + 1);
  if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

torch::nn::Module& Likelihood::as_module() {
  auto* module = dynamic_cast<torch::nn::Module*>(this);
  if (module == nullptr) throw ValueError("a likelihood is not a module: derive its class from mpol::Module<its class> too");
  return *module;
}

const torch::nn::Module& Likelihood::as_module() const {
  return const_cast<Likelihood*>(this)->as_module();  // NOLINT(cppcoreguidelines-pro-type-const-cast): it only looks
}

std::map<std::string, std::string> Likelihood::state_labels() const { return grid_labels(coords_); }

}  // namespace mpol
