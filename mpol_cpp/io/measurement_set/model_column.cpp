#include <mpol_cpp/io/measurement_set/model_column.h>

#include <algorithm>
#include <complex>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/measurement_set/set_column_writer.h>
#include <mpol_cpp/io/measurement_set/hands.h>

namespace mpol::io {
namespace {

using Complex = std::complex<float>;

constexpr std::int64_t values_at_once = std::int64_t{1} << 19;

/// The model of a block at a channel, in the set's own sign convention, (rows).
Tensor model_at(const SetCells& cells, double frequency, SetPhases phases, const ModelFunction& model) {
  const auto u = at::empty({cells.rows}, torch::kFloat64), v = at::empty({cells.rows}, torch::kFloat64);
  const double scale = units::metres_to_lambda(1, frequency);
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    u.mutable_data_ptr<double>()[row] = scale * cells.uvw[3 * row];
    v.mutable_data_ptr<double>()[row] = scale * cells.uvw[3 * row + 1];
  }
  const auto values = model(u, v, frequency).to(torch::kComplexFloat);
  return (phases == SetPhases::conjugated ? values.conj().resolve_conj() : values).contiguous();
}

/// Models and residuals of a block, (rows, nchan, ncorr).
struct ModelBlock {
  std::vector<Complex> model, residual;

  void fill(const SetPart& part, const SetCells& cells, SetPhases phases, const ModelFunction& function) {
    const auto nchan = part.nchan(), ncorr = part.ncorr();
    model.assign(static_cast<std::size_t>(cells.rows * nchan * ncorr), Complex());
    for (std::int64_t c = 0; c < nchan; ++c) {
      const auto values = model_at(cells, part.description.frequencies[static_cast<std::size_t>(c)], phases, function);
      const auto* at = values.const_data_ptr<c10::complex<float>>();
      for (std::int64_t k = 0; k < ncorr; ++k) {
        if (!is_parallel_hand(part.description.correlations[static_cast<std::size_t>(k)])) continue;
        for (std::int64_t row = 0; row < cells.rows; ++row)
          model[static_cast<std::size_t>((row * nchan + c) * ncorr + k)] = {at[row].real(), at[row].imag()};
      }
    }
    residual.resize(model.size());
    for (std::size_t i = 0; i < model.size(); ++i) residual[i] = cells.data[i] - model[i];
  }
};

}  // namespace

WrittenColumns write_model_columns(const std::filesystem::path& path, const ModelColumnOptions& options,
                                   const ModelFunction& model) {
  std::vector<std::string> names;
  if (!options.model_column.empty()) names.push_back(options.model_column);
  if (!options.residual_column.empty()) names.push_back(options.residual_column);
  SetColumnWriter writer(path, {options.set.select, options.set.column, options.set.windows}, names);
  WrittenColumns written;
  ModelBlock block;
  for (std::size_t index = 0; index < writer.parts().size(); ++index) {
    const auto part = writer.parts()[index];
    const auto most = std::max<std::int64_t>(1, values_at_once / (part.ncorr() * part.nchan()));
    for (std::int64_t begin = 0; begin < part.rows; begin += most) {
      const auto count = std::min(most, part.rows - begin);
      block.fill(part, writer.read(index, begin, count), options.set.phases, model);
      std::size_t column = 0;
      if (!options.model_column.empty()) writer.write(column++, index, begin, count, block.model.data());
      if (!options.residual_column.empty()) writer.write(column, index, begin, count, block.residual.data());
    }
    written.rows += part.rows;
  }
  written.kept_as = writer.commit();
  return written;
}

}  // namespace mpol::io
