// What is promised of memory: above data and results at most 64 MiB + 10 % of the data, at any npix.
#include "catch.h"

#include <malloc.h>

#include <fstream>
#include <memory>
#include <string>

#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>

#include "observation.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

double status_megabytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == key) {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  }
  return -1;
}

/// Largest resident memory while a function runs, above what was resident before, MiB.
template <typename Function>
double peak_above_start(const Function& function) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // forgets the peak so far
  const double before = status_megabytes("VmRSS:");
  REQUIRE(status_megabytes("VmHWM:") < before + 4);
  function();
  return status_megabytes("VmHWM:") - before;
}

double megabytes(double bytes) { return bytes / (1 << 20); }
double megabytes(const Tensor& values) { return megabytes(static_cast<double>(values.nbytes())); }
double allowance(const Visibilities& visibilities) {
  return 64 + 0.1 * megabytes(static_cast<double>(visibilities.memory_bytes()));
}

void check_averager(std::int64_t npix, const Visibilities& visibilities) {
  std::unique_ptr<DataAverager> averager;
  GriddedDataset dataset = nullptr;
  const GridCoords coords(0.001, npix);
  const double peak = peak_above_start([&] {
    averager = std::make_unique<DataAverager>(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off));
    dataset = averager->to_dataset();
  });
  const double results = megabytes(dataset->cells()) + megabytes(dataset->visibilities()) + megabytes(dataset->weights());
  INFO("npix " << npix << ", cells " << dataset->ncells() << ", peak " << peak << " MiB, results " << results << " MiB");
  CHECK(peak - results < allowance(visibilities));
}

}  // namespace

TEST_CASE("gridding keeps within its memory where nearly every sample has a cell of its own", "[gridding][memory]") {
  check_averager(16384, random_observation(GridCoords(0.001, 16384), 1, 2'000'000, torch::kFloat, 1));
}

TEST_CASE("gridding keeps within its memory where most cells have two samples or more", "[gridding][memory]") {
  check_averager(2048, random_observation(GridCoords(0.001, 2048), 1, 4'000'000, torch::kFloat, 2));
}

TEST_CASE("gridding keeps within its memory on a cube of many channels", "[gridding][memory]") {
  check_averager(512, random_observation(GridCoords(0.001, 512), 40, 50'000, torch::kFloat, 3));
}

TEST_CASE("dirty imaging keeps within its memory on a large image", "[gridding][memory]") {
  const GridCoords coords(0.001, 4096);
  const auto visibilities = random_observation(coords, 1, 1'000'000, torch::kFloat, 4);
  Tensor image;
  std::unique_ptr<DirtyImager> imager;
  const double peak = peak_above_start([&] {
    imager = std::make_unique<DirtyImager>(coords, visibilities);
    image = imager->image();
  });
  const double cells = static_cast<double>(imager->cells().size(0)) * (8 + 16 + 8);
  INFO("peak " << peak << " MiB, image " << megabytes(image) << " MiB, cells " << megabytes(cells) << " MiB");
  CHECK(peak - megabytes(image) - megabytes(cells) < allowance(visibilities));
}
