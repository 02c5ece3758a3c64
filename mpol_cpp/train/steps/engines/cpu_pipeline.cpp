#include <mpol_cpp/train/steps/engines/cpu_pipeline.h>

#include <iterator>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/train/steps/engines/fused_objective.h>

namespace mpol::detail {

template <typename T>
std::unique_ptr<ops::FusedPipeline<T>> make_cpu_pipeline(const ImageModel& model, const Objective& objective) {
  const auto settings = fused_settings(model, objective);
  std::vector<ops::ColumnCells<T>> columns;
  for (const auto& [cells, data, weights, nchan] : cells_of(objective.likelihood())) {
    auto own = ops::column_cells<T>(cells, data.to(c10::CppTypeToScalarType<c10::complex<T>>::value),
                                    weights.to(c10::CppTypeToScalarType<T>::value), nchan, settings.npix);
    std::move(own.begin(), own.end(), std::back_inserter(columns));
  }
  if (!columns.empty()) return std::make_unique<ops::FusedPipeline<T>>(settings, std::move(columns));
  return std::make_unique<ops::FusedPipeline<T>>(settings,
                                                 [held = objective.shared_likelihood()](const Tensor& images, Tensor& gradient) {
                                                   return held->value_and_gradient(images, gradient, Accumulate::overwrite);
                                                 });
}

template std::unique_ptr<ops::FusedPipeline<float>> make_cpu_pipeline(const ImageModel&, const Objective&);
template std::unique_ptr<ops::FusedPipeline<double>> make_cpu_pipeline(const ImageModel&, const Objective&);

Tensor loss_table(const std::vector<ops::FusedValues>& values, const Objective& objective) {
  const auto& terms = objective.terms();
  const auto normalizers = objective.normalizers();
  const auto problems = static_cast<std::int64_t>(values.size()), columns = static_cast<std::int64_t>(terms.size()) + 2;
  auto losses = at::empty({columns, problems}, torch::kFloat64);
  auto table = losses.accessor<double, 2>();
  for (std::int64_t problem = 0; problem < problems; ++problem) {
    const auto& own = values[static_cast<std::size_t>(problem)];
    const double nll = own.chi_squared * chi_squared_scale(normalizers, static_cast<std::size_t>(problem));
    double total = nll;
    for (std::int64_t i = 2; i < columns; ++i) {
      const auto& term = terms[static_cast<std::size_t>(i - 2)];
      const double weight = term.weight(static_cast<std::size_t>(problem));
      const double value = weight == 0 ? 0.0 : weight * own.of(term.kind());
      table[i][problem] = value;
      total += value;
    }
    table[0][problem] = total;
    table[1][problem] = nll;
  }
  return losses;
}

}  // namespace mpol::detail
