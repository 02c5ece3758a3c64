// What is promised of memory: above data and results at most 64 MiB + 10 % of the data, at any npix.
#include "catch.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>

#include "observation.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Resident memory without the pages of files, which come and go as the system likes, MiB.
double anonymous_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  }
  throw std::runtime_error("/proc/self/status has no RssAnon");
}

/// Largest resident memory while a function runs, above what was resident before, MiB: looked at every half millisecond.
template <typename Function>
double peak_above_start(const Function& function) {
  malloc_trim(0);
  const double before = anonymous_megabytes();
  std::atomic<bool> running = true;
  double peak = before;
  std::thread watch([&] {
    while (running) {
      peak = std::max(peak, anonymous_megabytes());
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  });
  function();
  running = false;
  watch.join();
  return std::max(peak, anonymous_megabytes()) - before;
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
    averager = std::make_unique<DataAverager>(coords, visibilities, unchecked());
    dataset = averager->to_dataset();
  });
  const double results = megabytes(dataset->cells()) + megabytes(dataset->visibilities()) + megabytes(dataset->weights());
  INFO("npix " << npix << ", cells " << dataset->ncells() << ", peak " << peak << " MiB, results " << results << " MiB");
  CHECK(peak >= results);
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

TEST_CASE("dirty imaging keeps within its memory at any npix", "[gridding][memory]") {
  // Of samples all over the plane, whose fine grid is the largest.
  const auto npix = GENERATE(1024, 2048, 4096);
  const auto imaging = GENERATE(Imaging::exact, Imaging::cells);
  const GridCoords coords(0.001, npix);
  const auto visibilities = random_observation(coords, 1, 1'000'000, torch::kFloat, 4);
  Tensor image;
  std::unique_ptr<DirtyImager> imager;
  const double peak = peak_above_start([&] {
    imager = std::make_unique<DirtyImager>(coords, visibilities, DirtyImagerOptions().imaging(imaging));
    image = imager->beam();
    image = Tensor();
    image = imager->image();
  });
  const double cells = static_cast<double>(imager->cells().size(0)) * (8 + 16 + 8);
  INFO("npix " << npix << (imaging == Imaging::exact ? ", exact" : ", cells") << ", peak " << peak << " MiB, image "
               << megabytes(image) << " MiB, cells " << megabytes(cells) << " MiB");
  CHECK(peak - megabytes(image) - megabytes(cells) < allowance(visibilities));
}

TEST_CASE("exact imaging of ten million samples keeps within its memory, in one part at 1024 pixels", "[gridding][memory]") {
  const GridCoords coords(0.001, 1024);
  const auto visibilities = random_observation(GridCoords(0.00125, 1024), 1, 10'000'000, torch::kFloat, 5);
  Tensor image;
  std::int64_t asked = 0;
  const double peak = peak_above_start([&] {
    const DirtyImager imager(coords, visibilities);
    image = imager.image_of([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      asked += end - begin;
      return visibilities.data()[0].slice(0, begin, end);
    });
  });
  const double cells = static_cast<double>(coords.npix() * coords.npix()) * (8 + 16 + 8);
  INFO("peak " << peak << " MiB, image " << megabytes(image) << " MiB, cells at most " << megabytes(cells) << " MiB");
  CHECK(asked == 10'000'000);
  CHECK(peak - megabytes(image) - megabytes(cells) < allowance(visibilities));
}
