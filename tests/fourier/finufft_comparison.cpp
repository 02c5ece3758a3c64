// Nonuniform transforms against FINUFFT, a second opinion at sizes where direct sums take too long.
#include "catch.h"

#include <complex>
#include <cstdint>
#include <memory>

#include <ATen/ops/empty.h>
#include <dlfcn.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/nufft.h>

#include "../compare.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// int finufft2d1(...) and finufft2d2(...): points, x, y, their values, sign, tolerance, modes of x (fastest) and y, modes,
/// options.
template <typename T>
using Transform = int(std::int64_t, T*, T*, std::complex<T>*, int, T, std::int64_t, std::int64_t, std::complex<T>*, void*);

/// FINUFFT's function of one type, "1" or "2".
template <typename T>
Transform<T>* finufft(const std::string& type) {
  static void* library = dlopen(MPOL_FINUFFT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto name = std::string(sizeof(T) == 4 ? "finufftf2d" : "finufft2d") + type;
  auto* function = reinterpret_cast<Transform<T>*>(dlsym(library, name.c_str()));
  if (function == nullptr) throw std::runtime_error(dlerror());
  return function;
}

/// The same transforms by FINUFFT. Its modes of x go from -npix/2 upwards, our columns from l = (npix/2 - 1) dl downwards.
template <typename T>
struct Reference {
  GridCoords coords;
  Tensor x, y;  // 2 pi u dl, 2 pi v dl
  double tolerance;

  Tensor type2(const Tensor& image) const {
    auto modes = image.flip({-1}).to(complex_dtype_of<T>()).contiguous();
    auto values = at::empty({x.size(0)}, complex_dtype_of<T>());
    run("2", values, -1, modes);
    return values * coords.cell_area();
  }
  Tensor type1(const Tensor& visibilities) const {
    auto values = visibilities.clone();
    auto modes = at::empty({coords.npix(), coords.npix()}, complex_dtype_of<T>());
    run("1", values, 1, modes);
    return at::real(modes).flip({-1}) * coords.cell_area();
  }

 private:
  void run(const std::string& type, Tensor& values, int sign, Tensor& modes) const {
    const auto complex_data = [](Tensor& t) { return reinterpret_cast<std::complex<T>*>(t.mutable_data_ptr<c10::complex<T>>()); };
    auto own_x = x.to(dtype_of<T>(), false, true), own_y = y.to(dtype_of<T>(), false, true);
    const auto status = finufft<T>(type)(x.size(0), own_x.template mutable_data_ptr<T>(), own_y.template mutable_data_ptr<T>(),
                                         complex_data(values), sign, static_cast<T>(tolerance), coords.npix(), coords.npix(),
                                         complex_data(modes), nullptr);
    REQUIRE(status == 0);
  }
};

double norm_distance(const Tensor& a, const Tensor& b) {
  const auto wide = [](const Tensor& t) { return t.to(t.is_complex() ? torch::kComplexDouble : torch::kDouble); };
  return ((wide(a) - wide(b)).norm() / wide(b).norm()).item().toDouble();
}

}  // namespace

TEMPLATE_TEST_CASE("nonuniform transforms are FINUFFT's", "[fourier][nufft][finufft]", float, double) {
  const auto npix = GENERATE(std::int64_t{64}, std::int64_t{300});
  const GridCoords coords(0.03, npix);
  const std::int64_t nvis = 40000;
  const auto reach = [&](std::uint64_t seed) { return (uniform({nvis}, torch::kFloat64, seed) * 2 - 1) * (0.499 / coords.dl()); };
  const auto u = reach(1), v = reach(2);
  const auto image = normal({npix, npix}, dtype_of<TestType>(), 3);
  const auto visibilities = normal({nvis}, complex_dtype_of<TestType>(), 4);
  // Float32 coordinates of FINUFFT cost it 2 pi npix / 2 times their rounding.
  const double floor = std::is_same_v<TestType, float> ? 4e-8 * static_cast<double>(npix) : 0;
  for (const double tolerance : {1e-3, 1e-5, 1e-9, 1e-12}) {
    if (std::is_same_v<TestType, float> && tolerance < 1e-6) continue;
    CAPTURE(npix, tolerance);
    const double angle = 2 * units::pi * coords.dl();
    const Reference<TestType> reference{coords, u * angle, v * angle, std::max(0.1 * tolerance, floor > 0 ? 1e-6 : 1e-13)};
    const auto nufft = Nufft(coords, Baselines::in_lambda(u, v), 1, NufftOptions{tolerance});
    CHECK(norm_distance(nufft->forward(image.unsqueeze(0))[0], reference.type2(image)) < 1.2 * tolerance + floor);
    CHECK(norm_distance(nufft->adjoint(visibilities.unsqueeze(0))[0], reference.type1(visibilities)) < 1.2 * tolerance + floor);
  }
}
