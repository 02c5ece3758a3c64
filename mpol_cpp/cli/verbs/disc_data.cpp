#include <mpol_cpp/cli/verbs/disc_data.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {

void declare_disc_data(OptionSet& options, DataOptions& data) {
  declare(options, data);
  options.only({"--cell-size"}, "with --npix", [&data] { return data.npix.has_value(); });
  options.only({"--npix"}, "with --cell-size", [&data] { return data.cell_size.has_value(); });
  options.describe("--cell-size", "With --npix, a grid that the baselines must suit, lest they are in another unit");
  options.describe("--npix", "Pixels of that grid along each axis, even");
  declare_conjugate(options, data);
  declare_mode(options, data);
}

Visibilities read_disc_data(const DataOptions& data) {
  auto visibilities = read_visibilities(data);
  if (data.cell_size && data.npix) check_grid_holds(visibilities, data, GridCoords(*data.cell_size, *data.npix));
  if (find_hermitian_pairs(visibilities).present()) {
    log_warning("the data hold Hermitian pairs, which count twice and make the errors too small: leave out the half at (-u, -v)");
  }
  return visibilities;
}

std::string visibility_table(const VisibilityProfile& observed, const Tensor& model) {
  std::string text = "q_lambda,real,imag,error,model,samples\n";
  const auto mean = observed.mean.contiguous(), error = observed.error.contiguous();
  for (std::int64_t i = 0; i < observed.q.size(0); ++i) {
    const auto value = mean.const_data_ptr<c10::complex<double>>()[i];
    text += fmt::format("{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{}\n", observed.q[i].item<double>(), value.real(), value.imag(),
                        error.const_data_ptr<c10::complex<double>>()[i].real(), model[i].item<double>(),
                        observed.samples[0][i].item<std::int64_t>());
  }
  return text;
}

}  // namespace mpol::cli
