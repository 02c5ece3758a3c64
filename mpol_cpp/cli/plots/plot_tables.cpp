#include <mpol_cpp/cli/plots/plot_tables.h>

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>

#include <mpol_cpp/cli/output/csv_table.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/fit_diagnostics.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/plot/figures/training_figure.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::cli {
namespace {

Tensor tensor_of(const std::vector<double>& values) { return torch::tensor(values, torch::kFloat64); }

/// Rows of a table as (nchan, rows per channel): its channels follow each other, each with the same number of rows.
class ProfileTable {
 public:
  explicit ProfileTable(const CsvTable& table) : table_(table), channels_(count(table)) {}

  Tensor by_channel(const std::string& name) const { return tensor_of(table_[name]).reshape({channels_, -1}); }
  /// What all channels share.
  Tensor shared(const std::string& name) const { return by_channel(name)[0]; }

 private:
  static std::int64_t count(const CsvTable& table) {
    const auto& channel = table["channel"];
    const auto rows = static_cast<std::int64_t>(table.rows());
    const double last = *std::max_element(channel.begin(), channel.end());
    const bool countable = last >= 0 && last < static_cast<double>(rows);
    const auto channels = countable ? static_cast<std::int64_t>(last) + 1 : 1;
    const auto of_row = [each = rows / channels](std::size_t i) { return static_cast<std::int64_t>(i) / each; };
    bool regular = countable && rows % channels == 0;
    for (std::size_t i = 0; regular && i < channel.size(); ++i) {
      const auto expected = of_row(i);
      regular = channel[i] == static_cast<double>(expected);
    }
    if (regular) return channels;
    throw DataError(error_text("table", table.path.string(), "its channels are not complete and in order",
                               "give a profile.csv as mpol profile writes it"));
  }

  const CsvTable& table_;
  std::int64_t channels_;
};

}  // namespace

plot::Page page_of_training(const std::filesystem::path& file, const PlotOptions& options) {
  const auto table = read_csv(file);
  const auto& total = table["total"];
  const auto image_file = file.parent_path() / "image.fits";
  std::optional<SkyImage> image;
  if (std::filesystem::exists(image_file)) image = read_sky_image(image_file, "INPUT", SkyUnit::brightness, SkyFrame::own);
  const auto diagnostics = read_diagnostics(file.parent_path());
  const bool shown = diagnostics && diagnostics->image.defined();
  plot::TrainingFigure figure(image   ? image->coords
                              : shown ? GridCoords(diagnostics->cell_size, diagnostics->image.size(-1))
                                      : GridCoords(1, 2));
  if (image) figure.image = image->cube;
  figure.title = options.title;
  if (diagnostics) {
    figure.flux = diagnostics->flux;
    figure.flux_epochs = diagnostics->epochs;
  }
  if (shown) {
    if (!image) figure.image = diagnostics->image;
    figure.gradient = diagnostics->gradient;
    figure.change = diagnostics->change;
  }
  figure.loss_names = {"total"};
  figure.loss_history = {total};
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    const auto& name = table.names[i];
    if (name == "epoch" || name == "total" || name == "learning_rate") continue;
    figure.loss_names.push_back(name);
    figure.loss_history.push_back(table.columns[i]);
  }
  if (table.has("learning_rate")) figure.learning_rate = table["learning_rate"];
  auto page = plot::training_page(figure);
  if (image) plot::shift(page, image->center());
  return page;
}

plot::Page page_of_profile(const std::filesystem::path& file, const PlotOptions& options) {
  const auto table = read_csv(file);
  const ProfileTable rows(table);
  if (table.has("radius_arcsec")) {
    const BrightnessProfile profile{.radius = rows.shared("radius_arcsec"),
                                    .mean = rows.by_channel("mean"),
                                    .scatter = rows.by_channel("scatter"),
                                    .error = rows.by_channel("error"),
                                    .pixels = rows.shared("pixels").to(torch::kInt64)};
    return plot::profile_page(profile, "brightness", options.title);
  }
  const VisibilityProfile profile{.q = rows.shared("q_lambda"),
                                  .mean = at::complex(rows.by_channel("real"), rows.by_channel("imag")),
                                  .error = at::complex(rows.by_channel("real_error"), rows.by_channel("imag_error")),
                                  .samples = rows.by_channel("samples").to(torch::kInt64)};
  return plot::profile_page(profile, options.title);
}

plot::Page page_of_histogram(const std::filesystem::path& file, const PlotOptions& options) {
  const auto table = read_csv(file);
  const auto low = tensor_of(table["low"]), high = tensor_of(table["high"]);
  const ResidualHistogram histogram{.edges = at::cat({low, high.slice(0, -1)}),
                                    .density = tensor_of(table["density"]),
                                    .expected = tensor_of(table["expected"])};
  return plot::residual_page(histogram, options.title);
}

}  // namespace mpol::cli
