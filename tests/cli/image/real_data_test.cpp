#include "catch.h"

#include <filesystem>
#include <sstream>

#include <mpol_cpp/io/npz_archive.h>

#include "program.h"

using namespace mpol::testing;

TEST_CASE("mpol image on the real observation follows MPoL's loss", "[cli]") {
  const Scratch scratch;
  const auto data = std::filesystem::path(MPOL_DATA_DIR) / "hd142527_band9.npz";
  const auto run = run_mpol({"image",
                             data.string(),
                             "-o",
                             (scratch / "disc").string(),
                             "--cell-size",
                             "0.08",
                             "--npix",
                             "128",
                             "--sparsity",
                             "1e-4",
                             "--tv",
                             "2e-4",
                             "--optimizer",
                             "adam",
                             "--learning-rate",
                             "0.3",
                             "--start",
                             "base:-3",
                             "--epochs",
                             "20",
                             "--dtype",
                             "float64",
                             "--likelihood",
                             "gridded",
                             "--device",
                             "cpu"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto reference =
      mpol::io::read_npz_array(std::filesystem::path(MPOL_TEST_DATA_DIR) / "hd142527_band9_mpol.npz", "out_loss_nll_sparsity_tv");
  std::istringstream history(read_text(scratch / "disc" / "history.csv"));
  std::string line;
  std::getline(history, line);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    REQUIRE(std::getline(history, line));
    const auto total = std::stod(line.substr(line.find(',') + 1));
    CHECK_THAT(total, WithinRel(reference[epoch][0].item<double>(), 1e-6));
  }
}
