// Times a training step, the transforms, gridding and input/output over image sizes and channels; one JSON row a case.
//
// usage: mpol_benchmark step|copy|fft|gridding|io [--npix N,N…] [--nchan C,C…] [--dtype float32,float64] [--nvis K,K…]
//        [--problems P,P…] [--step auto|eager|fused] [--data FILE.npz] [--threads T] [--seconds S]
#include <filesystem>
#include <string>

#include <ATen/ops/full.h>

#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/ops/real_fft.h>
#include <mpol_cpp/train/step.h>

#include "settings.h"

namespace {

using benchmarks::cell_size, benchmarks::dtype_of, benchmarks::print, benchmarks::Settings;
using nlohmann::json;

mpol::StepKind step_kind(const std::string& name) {
  for (const auto kind : {mpol::StepKind::automatic, mpol::StepKind::eager, mpol::StepKind::captured, mpol::StepKind::fused}) {
    if (mpol::to_string(kind) == name) return kind;
  }
  throw mpol::ValueError(fmt::format("step is {}; it must be auto, eager, captured or fused", name));
}

/// One training step of GriddedNet with sparsity and total variation, Adam, for one or several problems with the same data.
void step_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype) {
  const mpol::GridCoords coords(cell_size, npix);
  const auto visibilities = benchmarks::observation(settings, coords, nchan, 500'000);
  const auto averager_options = mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off);
  auto likelihood = mpol::GriddedLikelihood(mpol::DataAverager(coords, visibilities, averager_options).to_dataset());
  likelihood->to(dtype_of(dtype));
  for (const auto problems : settings.problems) {
    const auto start = at::full({problems, visibilities.nchan(), npix, npix}, -3.0, dtype_of(dtype));
    auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(start).dtype(dtype_of(dtype)));
    const mpol::Objective objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
    const auto options = mpol::TrainOptions().learning_rate(0.3).step(step_kind(settings.step));
    const auto step = mpol::make_step(model.ptr(), objective, options);
    print({{"case", "step"},
           {"npix", npix},
           {"nchan", visibilities.nchan()},
           {"problems", problems},
           {"dtype", dtype},
           {"step", mpol::to_string(step->kind())},
           {"cells", likelihood->samples()}},
          benchmarks::repeat([&] { step->take(0.3); }, settings.seconds));
  }
}

/// A copy of the cube: what the memory allows.
void copy_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype) {
  const auto from = at::rand({nchan, npix, npix}, dtype_of(dtype));
  auto to = at::empty_like(from);
  print({{"case", "copy"}, {"npix", npix}, {"nchan", nchan}, {"dtype", dtype}, {"bytes", 2 * from.nbytes()}},
        benchmarks::repeat([&] { to.copy_(from); }, settings.seconds));
}

/// A real transform of every channel image and its adjoint.
void fft_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype) {
  const auto image = at::rand({nchan, npix, npix}, dtype_of(dtype));
  print({{"case", "fft"}, {"npix", npix}, {"nchan", nchan}, {"dtype", dtype}},
        benchmarks::repeat([&] { mpol::ops::half_plane_adjoint(mpol::ops::half_plane_fft(image)); }, settings.seconds));
}

/// Cell averages with their scatter; reading and simulating are not timed.
void gridding_case(const Settings& settings, std::int64_t npix, std::int64_t nvis, const std::string& dtype) {
  const mpol::GridCoords coords(cell_size, npix);
  const auto visibilities = benchmarks::observation(settings, coords, 1, nvis, dtype_of(dtype));
  const auto options = mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off);
  print({{"case", "gridding"}, {"npix", npix}, {"nvis", visibilities.nvis()}, {"dtype", dtype}},
        benchmarks::repeat([&] { mpol::DataAverager(coords, visibilities, options).to_dataset(); }, settings.seconds));
}

void io_case(const Settings& settings, std::int64_t nvis, const std::string& dtype) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("mpol_benchmark_{}", getpid());
  std::filesystem::create_directories(folder);
  const auto npz = folder / "visibilities.npz", fits = folder / "image.fits";
  const mpol::GridCoords coords(cell_size, 1024);
  const auto visibilities = benchmarks::synthetic_observation(coords, 1, nvis, dtype_of(dtype));
  const auto image = at::rand({1, 1024, 1024}, dtype_of(dtype));
  const json row{{"nvis", nvis}, {"dtype", dtype}};
  const auto time = [&](const char* name, const auto& call) {
    json named = row;
    named["case"] = name;
    print(named, benchmarks::repeat(call, settings.seconds, 3));
  };
  time("write_npz", [&] { mpol::io::write_npz(npz, visibilities); });
  time("read_npz", [&] { mpol::io::read_npz(npz); });
  time("write_fits", [&] { mpol::io::write_fits(fits, image, coords); });
  std::filesystem::remove_all(folder);
}

void run(const Settings& settings) {
  for (const auto& dtype : settings.dtypes) {
    if (settings.what == "step" || settings.what == "fft" || settings.what == "copy") {
      const auto image_case = settings.what == "step" ? step_case : settings.what == "fft" ? fft_case : copy_case;
      for (const auto npix : settings.npix) {
        for (const auto nchan : settings.nchan) image_case(settings, npix, nchan, dtype);
      }
    } else if (settings.what == "gridding" || settings.what == "io") {
      for (const auto nvis : settings.nvis) {
        if (settings.what == "io") io_case(settings, nvis, dtype);
        else
          for (const auto npix : settings.npix) gridding_case(settings, npix, nvis, dtype);
      }
    } else {
      throw mpol::ValueError(fmt::format("group is {}; it must be step, copy, fft, gridding or io", settings.what));
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return benchmarks::run_benchmark("mpol_benchmark", argc, argv, run); }
