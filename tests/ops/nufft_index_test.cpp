// Indices beyond 2^31: arrays of address space alone, of which a few elements are used.
#include "catch.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <sys/mman.h>

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>
#include <mpol_cpp/ops/nufft/nufft_window.h>

#include "compare.h"
#include "fourier/edge_baselines.h"
#include "instruction_sets.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;

/// Zeros of which only those that are written take memory.
template <typename T>
class SparseArray {
 public:
  explicit SparseArray(std::int64_t size) : size_(size) {
    void* mapped = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::runtime_error("no address space");
    madvise(mapped, bytes(), MADV_HUGEPAGE);  // reading all of it takes fewer faults
    data_ = static_cast<T*>(mapped);
  }
  ~SparseArray() { munmap(data_, bytes()); }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;

  T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  void put(std::int64_t at, const std::vector<T>& values) const { std::copy(values.begin(), values.end(), data_ + at); }
  std::vector<T> get(std::int64_t at, std::int64_t count) const { return {data_ + at, data_ + at + count}; }
  ops::DeviceArray<T> on_device() const { return {data_, size_}; }
  ops::DeviceArray<const T> constant() const { return {data_, size_}; }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  std::int64_t size_;
  T* data_;
};

template <typename T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed, double least = -0.5) {
  const auto values = (uniform({count}, torch::kFloat64, seed) + least).to(dtype_of<T>());
  return {values.template const_data_ptr<T>(), values.template const_data_ptr<T>() + count};
}

constexpr std::int64_t few = 200;  // points; the last of them a run

/// What the kernels of the CPU make of few points that begin at an index.
template <typename T>
std::vector<T> worked_off_at(std::int64_t begin, Isa isa) {
  constexpr int width = sizeof(T) == 4 ? 6 : 12;
  constexpr std::int64_t single = 150, room = few + 64;
  const auto tile = ops::NufftTile::of(width, sizeof(T));
  const SparseArray<T> x(begin + room), y(begin + room);
  const SparseArray<std::uint16_t> cell(begin + room);
  x.put(begin, random_values<T>(few, 1)), y.put(begin, random_values<T>(few, 2));
  for (std::int64_t i = 0; i < few; ++i) {
    const auto column = i < single ? i * 7 % 16 : 3, row = i < single ? i * 5 % 16 : 4;
    cell.data()[begin + i] = static_cast<std::uint16_t>(column * tile.distance + 2 * row);
  }
  const ops::NufftRun run{begin + single, few - single, cell.data()[begin + single]};
  const ops::NufftTilePoints<T> points{x.data(), y.data(), cell.data(), begin, begin + single, &run, 1, begin, begin + few};
  const auto cells = random_values<T>(tile.size() + 64, 3);
  auto real = random_values<T>(room, 4), imag = random_values<T>(room, 5), weight = random_values<T>(room, 6, 0.5);
  std::vector<T> result, sums(cells.size()), model_real(room), model_imag(room);
  const auto kernels = ops::nufft_kernels<T>(isa, width);
  const auto tables = std::make_unique<ops::NufftTables<T>>(ops::NufftWindow(width).tables<T>());
  for (const auto kernel : {kernels.degrid, kernels.grid, kernels.fused}) {
    std::fill(sums.begin(), sums.end(), T(0));
    ops::NufftImage<T> image{cells.data(),  sums.data(),       real.data(),       imag.data(),
                             weight.data(), model_real.data(), model_imag.data(), 0};
    kernel(*tables, points, &image, 1);
    result.insert(result.end(), sums.begin(), sums.end());
    result.insert(result.end(), model_real.begin(), model_real.begin() + few);
    result.insert(result.end(), model_imag.begin(), model_imag.begin() + few);
    result.push_back(static_cast<T>(image.chi_squared));
  }
  return result;
}

/// What the emulated kernels of a GPU make of the last few of so many points, of three images.
std::vector<float> emulated_at_the_end_of(std::int64_t points) {
  constexpr int width = 6, npix = 8, images = 3, side = ops::NufftTile::cells + width - 1;
  const auto begin = points - few;
  ops::NufftGpuArrays<float> arrays{};
  arrays.shape = {npix, images, images, 0, -3, -3, 1, 1, width, points, 1};
  arrays.scale = 1;
  const auto tables = std::make_unique<ops::NufftTables<float>>(ops::NufftWindow(width).tables<float>());
  for (std::ptrdiff_t k = 0; k <= ops::nufft_power_degree<float>(width); ++k) {
    std::copy_n(tables->power[k], width, arrays.power + k * width);
  }
  const SparseArray<float> x(points), y(points), real(images * points), imag(images * points), weight(images * points);
  const SparseArray<std::uint8_t> cell(points);
  const SparseArray<std::int32_t> order(points);
  const SparseArray<ops::ComplexValue<float>> visibilities(images * points), tile(std::int64_t{images} * side * side),
      half(images * arrays.shape.half_plane());
  x.put(begin, random_values<float>(few, 1)), y.put(begin, random_values<float>(few, 2));
  for (std::int64_t i = 0; i < few; ++i) {
    cell.data()[begin + i] = static_cast<std::uint8_t>(i * 37 % 256);
    order.data()[begin + i] = static_cast<std::int32_t>(points - 1 - i);
  }
  for (int image = 0; image < images; ++image) {
    const auto seed = std::uint64_t{10} * static_cast<std::uint64_t>(image);
    real.put(image * points + begin, random_values<float>(few, seed + 3));
    imag.put(image * points + begin, random_values<float>(few, seed + 4));
    weight.put(image * points + begin, random_values<float>(few, seed + 5, 0.5));
  }
  const auto cells = random_values<float>(2 * half.size(), 6);
  std::copy(cells.begin(), cells.end(), reinterpret_cast<float*>(half.data()));
  const ops::NufftGpuTask task{begin, points, 0, 0};
  std::vector<double> chi_squared(images);
  arrays.half = half.on_device(), arrays.x = x.constant(), arrays.y = y.constant(), arrays.cell = cell.constant();
  arrays.order = order.constant(), arrays.task = {&task, 1}, arrays.tile = tile.on_device();
  arrays.visibilities = visibilities.on_device(), arrays.task_values = {chi_squared.data(), images};
  arrays.real = real.constant(), arrays.imag = imag.constant(), arrays.weight = weight.constant();
  std::vector<float> result;
  const auto keep = [&](const ops::ComplexValue<float>* values, std::int64_t count) {
    const auto* parts = reinterpret_cast<const float*>(values);
    result.insert(result.end(), parts, parts + 2 * count);
  };
  for (const auto kernel : {ops::NufftGpuKernel::degrid, ops::NufftGpuKernel::grid, ops::NufftGpuKernel::fused}) {
    ops::emulate(kernel, arrays, ops::EmulatedOrder::ascending);
    for (int image = 0; image < images; ++image) keep(visibilities.data() + image * points + begin, few);
    keep(tile.data(), tile.size());
  }
  result.insert(result.end(), chi_squared.begin(), chi_squared.end());
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("points beyond 2^31 are worked off as the first ones are, bit for bit", "[ops][nufft][index][quick]", float,
                   double) {
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa));
    const auto expected = worked_off_at<TestType>(0, isa);
    CHECK(*std::max_element(expected.begin(), expected.end()) > 0);
    CHECK(worked_off_at<TestType>(two_to_31 + 64, isa) == expected);
  }
}

TEST_CASE("emulated GPU kernels reach values beyond 2^31", "[ops][nufft][cuda][index][quick]") {
  const auto expected = emulated_at_the_end_of(few);
  CHECK(*std::max_element(expected.begin(), expected.end()) > 0);
  CHECK(emulated_at_the_end_of(two_to_31 - 1) == expected);
}

TEST_CASE("of more than 2^31 visibilities those of the last channel make its image", "[fourier][nufft][index]") {
  const GridCoords coords(0.03, 8);
  const std::int64_t nvis = std::int64_t{1} << 20, nchan = two_to_31 / nvis + 1;
  const auto baselines = crowd(coords, nvis, 1);
  const SparseArray<std::complex<float>> sparse(nchan * nvis);
  const auto visibilities = at::from_blob(sparse.data(), {nchan, nvis}, torch::kComplexFloat);
  const auto last = normal({1, nvis}, torch::kComplexFloat, 3);
  visibilities[nchan - 1].copy_(last[0]);
  const auto images = Nufft(coords, baselines, nchan)->adjoint(visibilities);
  CHECK(same(images[nchan - 1], Nufft(coords, baselines, 1)->adjoint(last)[0]));
  CHECK((images.narrow(0, 0, nchan - 1) == 0).all().item<bool>());
}
