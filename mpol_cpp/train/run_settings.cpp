#include <mpol_cpp/train/run_settings.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/trained_parameters.h>

namespace mpol::detail {
namespace {

/// @param nchan  of all ranks that fit a cube together; nothing where this one fits it all
std::string shape_and_dtype(const Tensor& tensor, std::optional<std::int64_t> nchan) {
  auto shape = tensor.sizes().vec();
  constexpr std::size_t of_image = 3;
  if (nchan && shape.size() >= of_image) shape[shape.size() - of_image] = *nchan;
  return fmt::format("{} {}", tensor.scalar_type() == torch::kFloat64 ? "float64" : "float32", shape);
}

void add_fingerprint(const std::vector<std::string>& fingerprint, Metadata& settings) {
  constexpr std::string_view separator = " = ";
  for (const auto& line : fingerprint) {
    const auto at = line.find(separator);
    if (at == std::string::npos || at == 0) {
      throw ValueError(fmt::format("the fingerprint has a line '{}'; it must be 'key = value'", line));
    }
    settings.emplace(line.substr(0, at), line.substr(at + separator.size()));
  }
}

/// The weights of channels by their sums over all ranks, which do not depend on who has which.
std::string text_of_factors(const Term& term, const std::shared_ptr<Communicator>& ranks) {
  std::vector<double> sums(3);
  for (const double factor : term.channel_factors()) {
    sums[0] += 1;
    sums[1] += factor;
    sums[2] += factor * factor;
  }
  if (ranks) ranks->sum(sums);
  return fmt::format("of {} channels {:.9g} {:.9g}", sums[0], sums[1], sums[2]);
}

}  // namespace

Metadata run_settings(ImageModel& model, const Objective& objective, const TrainOptions& options) {
  auto& likelihood = objective.likelihood();
  Metadata settings = {{"optimizer", to_string(options.optimizer())},
                       {"learning_rate", fmt::format("{}", options.learning_rate())},
                       {"momentum", fmt::format("{}", options.momentum())},
                       {"schedule", options.schedule().description},
                       {"stop_relative", fmt::format("{}", options.stop_relative())},
                       {"stop_window", fmt::format("{}", options.stop_window())},
                       {"seed", fmt::format("{}", options.seed())},
                       {"likelihood", likelihood.name()},
                       {"likelihood_samples", fmt::format("{}", likelihood.samples())},
                       {"n_visibilities", fmt::format("{}", likelihood.visibilities_count())},
                       {"normalize", to_string(objective.normalize())},
                       {"cell_size", fmt::format("{}", model.coords().cell_size())},
                       {"npix", fmt::format("{}", model.coords().npix())}};
  const auto& ranks = options.ranks();
  std::optional<std::int64_t> nchan_of_all;
  if (ranks && !ranks->is_alone()) {  // a checkpoint is of all channels
    std::vector<double> numbers = {static_cast<double>(likelihood.samples()),
                                   static_cast<double>(likelihood.visibilities_count()),
                                   static_cast<double>(model.base().size(-3))};
    ranks->sum(numbers);
    settings["likelihood_samples"] = fmt::format("{}", static_cast<std::int64_t>(numbers[0]));
    settings["n_visibilities"] = fmt::format("{}", static_cast<std::int64_t>(numbers[1]));
    nchan_of_all = static_cast<std::int64_t>(numbers[2]);
  }
  if (const auto tolerance = options.wanted_tolerance()) settings["tolerance"] = fmt::format("{}", *tolerance);
  if (options.fewest_epochs() > 0) settings["fewest_epochs"] = fmt::format("{}", options.fewest_epochs());
  const Betas usual;
  if (options.betas().first != usual.first || options.betas().second != usual.second) {
    settings["betas"] = fmt::format("{}, {}", options.betas().first, options.betas().second);
  }
  if (options.weight_decay() != 0) settings["weight_decay"] = fmt::format("{}", options.weight_decay());
  if (options.own_optimizer()) settings["own_optimizer"] = options.own_optimizer()->description;
  if (options.stop_scope() != StopScope::sum) settings["stop_scope"] = to_string(options.stop_scope());
  if (!options.rate_factors().empty()) settings["rate_factors"] = fmt::format("{}", fmt::join(options.rate_factors(), ", "));
  for (const auto& term : objective.terms()) {
    auto& text = settings["term " + term.name()];
    text = fmt::format("lambda {} settings {}", fmt::join(term.weights(), ", "), term.settings());
    if (!term.channel_factors().empty()) text += " " + text_of_factors(term, options.ranks());
  }
  for (const auto& parameter : trained_parameters(model, objective)) {
    settings["parameter " + parameter.name] = shape_and_dtype(parameter.tensor, nchan_of_all);
  }
  add_fingerprint(options.fingerprint(), settings);
  return settings;
}

}  // namespace mpol::detail
