#include <mpol_cpp/cli/image/dirty_products.h>

namespace mpol::cli {

Imaging imaging_of(const ImageOptions& options) { return options.likelihood_kind().of_cells ? Imaging::cells : Imaging::exact; }

std::string residual_words(Imaging imaging) {
  return imaging == Imaging::cells ? "residual: cell averages of the data minus the model at the centres of the cells, as in MPoL"
                                   : "residual: data minus model at the samples themselves, by a nonuniform transform";
}

}  // namespace mpol::cli
