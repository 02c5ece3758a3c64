// Times a training step, the transforms, gridding and input/output over image sizes and channels; one JSON row a case.
//
// usage: mpol_benchmark step|copy|fft|gridding|io [--npix N,N…] [--nchan C,C…] [--dtype float32,float64] [--nvis K,K…]
//        [--problems P,P…] [--step auto|eager|fused] [--optimizer adam|sgd|lbfgs] [--data FILE.npz] [--threads T] [--seconds S]
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/train/steps/make_step.h>
#include <mpol_cpp/train/steps/step.h>

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

mpol::OptimizerKind optimizer_kind(const std::string& name) {
  for (const auto kind : {mpol::OptimizerKind::adam, mpol::OptimizerKind::sgd, mpol::OptimizerKind::lbfgs}) {
    if (mpol::to_string(kind) == name) return kind;
  }
  throw mpol::ValueError(fmt::format("optimizer is {}; it must be adam, sgd or lbfgs", name));
}

/// What L-BFGS has evaluated so far.
double evaluations_of(const mpol::Step& step) { return step.state().at("func_evals").item<double>(); }

/// A step of L-BFGS is up to 20 iterations: what one of its evaluations takes, when its history of 100 pairs is full.
json time_evaluations(mpol::Step& step, double rate, double seconds) {
  for (int i = 0; i < 8; ++i) step.take(rate);
  const auto before = evaluations_of(step);
  auto times = benchmarks::repeat([&] { step.take(rate); }, seconds);
  const auto calls = times["repeats"].get<double>() + 2;
  times["evaluation_s"] = times["mean_s"].get<double>() * calls / (evaluations_of(step) - before);
  return times;
}

/// One training step of GriddedNet with sparsity and total variation for one or several problems with the same data.
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
    const auto optimizer = optimizer_kind(settings.optimizer);
    const auto options = mpol::TrainOptions().learning_rate(0.3).optimizer(optimizer).step(step_kind(settings.step));
    const auto step = mpol::make_step(model.ptr(), objective, options);
    const auto times = optimizer == mpol::OptimizerKind::lbfgs ? time_evaluations(*step, 1, settings.seconds)
                                                               : benchmarks::repeat([&] { step->take(0.3); }, settings.seconds);
    print({{"case", "step"},
           {"npix", npix},
           {"nchan", visibilities.nchan()},
           {"problems", problems},
           {"dtype", dtype},
           {"step", mpol::to_string(step->kind())},
           {"optimizer", settings.optimizer},
           {"cells", likelihood->samples()}},
          times);
  }
}

/// A copy of the cube: what the memory allows.
void copy_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype) {
  const auto from = at::rand({nchan, npix, npix}, dtype_of(dtype));
  auto to = at::empty_like(from);
  print({{"case", "copy"}, {"npix", npix}, {"nchan", nchan}, {"dtype", dtype}, {"bytes", 2 * from.nbytes()}},
        benchmarks::repeat([&] { to.copy_(from); }, settings.seconds));
}

/// A real transform of an image and its adjoint by the lines and panels of the fused step, all columns kept.
template <typename T>
class OwnTransforms {
 public:
  using Lines = mpol::ops::LineTransforms<T>;

  explicit OwnTransforms(std::int64_t npix)
      : lines_(npix),
        columns_(static_cast<std::size_t>(npix / 2 + 1)),
        panels_((npix + 8) * Lines::row_size * Lines::panels(npix / 2 + 1)) {
    std::iota(columns_.begin(), columns_.end(), 0);
    for (int worker = 0; worker < at::get_num_threads(); ++worker) scratch_.emplace_back(lines_.scratch_size());
  }

  void run(const T* image, T* adjoint) {
    const auto npix = lines_.length(), distance = npix + Lines::batch, blocks = (npix + Lines::batch - 1) / Lines::batch;
    const auto scratch = [&](std::int64_t worker) { return scratch_[static_cast<std::size_t>(worker)].data(); };
    const auto count = [&](std::int64_t row) { return std::min(Lines::batch, npix - row); };
    mpol::ops::share_tasks(blocks, 1, [&](std::int64_t block, std::int64_t worker) {
      const auto row = block * Lines::batch;
      lines_.forward_rows(image + row * distance, distance, count(row), lines_.everything(), from_row(row), scratch(worker));
    });
    mpol::ops::share_tasks(Lines::panels(npix / 2 + 1), 1, [&](std::int64_t panel, std::int64_t worker) {
      lines_.forward_panel(panels_.data() + panel * from_row(0).distance, scratch(worker));
      lines_.inverse_panel(panels_.data() + panel * from_row(0).distance, scratch(worker));
    });
    mpol::ops::share_tasks(blocks, 1, [&](std::int64_t block, std::int64_t worker) {
      const auto row = block * Lines::batch;
      lines_.adjoint_rows(from_row(row), adjoint + row * distance, distance, count(row), lines_.everything(), scratch(worker));
    });
  }

 private:
  mpol::ops::FftPanels<T> from_row(std::int64_t row) {
    return {columns_.data(), lines_.length() / 2 + 1, panels_.data() + row * Lines::row_size,
            (lines_.length() + 8) * Lines::row_size};
  }

  Lines lines_;
  std::vector<std::int32_t> columns_;
  mpol::ops::AlignedArray<T> panels_;
  std::vector<mpol::ops::AlignedArray<T>> scratch_;
};

template <typename T>
void own_fft_case(const Settings& settings, std::int64_t npix, const json& row) {
  constexpr auto room = mpol::ops::LineTransforms<T>::batch;
  const auto image = at::rand({npix, npix + room}, c10::CppTypeToScalarType<T>::value);
  auto adjoint = at::empty_like(image);
  OwnTransforms<T> transforms(npix);
  const auto* from = image.template const_data_ptr<T>();
  auto* to = adjoint.template mutable_data_ptr<T>();
  print(row, benchmarks::repeat([&] { transforms.run(from, to); }, settings.seconds));
}

/// A real transform of every channel image and its adjoint: LibTorch's, and of one image our own.
void fft_case(const Settings& settings, std::int64_t npix, std::int64_t nchan, const std::string& dtype) {
  const auto image = at::rand({nchan, npix, npix}, dtype_of(dtype));
  json row{{"case", "fft"}, {"npix", npix}, {"nchan", nchan}, {"dtype", dtype}, {"by", "libtorch"}};
  const auto transform = [&] { at::fft_irfft2(at::fft_rfft2(image), at::IntArrayRef({npix, npix}), {-2, -1}, "forward"); };
  print(row, benchmarks::repeat(transform, settings.seconds));
  if (nchan > 1) return;
  row["by"] = "mpol_cpp";
  if (dtype == "float32") own_fft_case<float>(settings, npix, row);
  else own_fft_case<double>(settings, npix, row);
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
