#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/device_timer.h>
#include <mpol_cpp/device/precision.h>
#include <mpol_cpp/device/recorded_work.h>
#include <mpol_cpp/device/streams.h>
#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_steps.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::ops {
namespace {

/// Kernels and transforms must have written what others read.
Tensor unwritten(torch::IntArrayRef shape, torch::TensorOptions options) {
  return at::full(shape, std::numeric_limits<double>::quiet_NaN(), options);
}

/// Whether a regularizer is part of the objective of any problem.
bool has_weight(const FusedSettings& settings, TermKind kind) {
  if (settings.own.empty()) return settings.terms.weight(kind) > 0;
  return std::any_of(settings.own.begin(), settings.own.end(),
                     [kind](const FusedProblem& own) { return own.terms.weight(kind) > 0; });
}

/// (problems) float64 on the CPU.
template <typename ValueOf>
Tensor values_of_problems(const FusedSettings& settings, const ValueOf& value_of) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(settings.problems));
  for (std::int64_t problem = 0; problem < settings.problems; ++problem) values.push_back(value_of(settings.problem(problem)));
  return at::tensor(values, torch::kFloat64);
}

}  // namespace

FusedGpuPipeline::FusedGpuPipeline(const FusedGpuSettings& settings, const Tensor& cells, const Tensor& data,
                                   const Tensor& weights)
    : FusedGpuPipeline(settings, {{cells, data, weights}}, nullptr) {}

FusedGpuPipeline::FusedGpuPipeline(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells)
    : FusedGpuPipeline(settings, cells, nullptr) {}

FusedGpuPipeline::FusedGpuPipeline(const FusedGpuSettings& settings, ImageLikelihood likelihood)
    : FusedGpuPipeline(settings,
                       {{at::empty({0}, torch::kInt64), at::empty({0}, torch::kComplexDouble), at::empty({0}, torch::kFloat64)}},
                       std::move(likelihood)) {}

FusedGpuPipeline::FusedGpuPipeline(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells,
                                   ImageLikelihood likelihood)
    : device_(settings.device),
      dtype_(settings.dtype),
      shape_{static_cast<std::int32_t>(settings.npix), static_cast<std::int32_t>(settings.nchan),
             static_cast<std::int32_t>(settings.problems)},
      order_(settings.order),
      image_likelihood_(std::move(likelihood)),
      entries_(settings.history_entries) {
  check(settings);
  const torch::NoGradGuard no_grad;
  fill_constants(settings);
  choose_tile(settings);
  place_cells(settings, cells);
  allocate(settings);
  if (!cut_) {
    transforms_ =
        device_.is_cpu() ? aten_image_transforms() : cufft_image_transforms(shape_.images(), shape_.npix, dtype_, device_);
  }
  if (!device_.is_cpu()) beside_ = mpol::detail::side_stream(device_);
  choose_kernels(settings.kernels);
}

/// The tiles of square and curve, where those are needed, are low ones in one kernel.
bool FusedGpuPipeline::can_be_one_kernel() const {
  const bool has_tiles = uses<regularizers::Driver::spectra>() || uses<regularizers::Driver::curvatures>();
  return cut_ && StepsKernel::has(tile_) && !(has_tiles && image_tile_ == TileKind::high);
}

void FusedGpuPipeline::choose_kernels(StepKernels wanted) {
  constexpr std::int64_t busy_blocks = 1024;  // keep every device busy: nothing is tried
  const bool possible = can_be_one_kernel();
  if (wanted == StepKernels::one && !possible) {
    throw ValueError(fmt::format(
        "{} images of {} x {} pixels, as they are cut: steps in one kernel are for those that are cut into two or four "
        "rows, and into low tiles where regularizers need tiles; take several kernels",
        shape_.images(), shape_.npix, shape_.npix));
  }
  const bool is_small = possible && shape_.images() * cut_->pieces().of_image < busy_blocks;
  const bool is_usual = !device_.is_cpu() && !is_deterministic();  // compilers may round alike expressions otherwise in each
  const bool tries = wanted == StepKernels::faster || (wanted == StepKernels::usual && is_usual);
  one_kernel_ = wanted == StepKernels::one || (tries && is_small && is_one_kernel_faster());
}

/// Times recordings of steps that update nothing, so that all stays as it was, and compares their gradients.
bool FusedGpuPipeline::is_one_kernel_faster() {
  constexpr int steps = 8, runs = 3;
  constexpr double worthwhile = 0.95;  // of the time of several kernels
  const double same = dtype_ == torch::kFloat64 ? 1e-10 : 1e-4;
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(device_);
  const auto entries = std::exchange(entries_, std::max<std::int64_t>(entries_, steps));
  const auto put_back = [&] {
    entries_ = entries;
    one_kernel_ = false;
    new_history();
  };
  const auto refused = [&](const char* why) {
    log_info(fmt::format("steps are launched in several kernels, not in one: {}", why));
    put_back();
    return false;
  };
  double seconds[2];
  try {
    const auto base = at::arange(image_.numel(), image_.options().dtype(torch::kFloat64)).sin_().to(dtype_).view_as(image_);
    const Tensor gradients[] = {at::empty_like(image_), at::empty_like(image_)};
    new_history();
    for (const bool one : {false, true}) {
      one_kernel_ = one;
      const auto& gradient = gradients[one];
      make_room(1);
      run(base, gradient, FusedUpdate::none, 1);  // loads kernels, which a recording could not
      RecordedWork work(
          device_, [&] { run(base, gradient, FusedUpdate::none, steps); }, /*warm_ups=*/0);
      seconds[one] = std::numeric_limits<double>::infinity();
      for (int i = 0; i < runs; ++i) {
        make_room(steps);
        DeviceTimer timer(device_);
        work.replay();
        timer.stop();
        seconds[one] = std::min(seconds[one], timer.seconds());
      }
    }
    const double difference = (gradients[1] - gradients[0]).abs().max().item<double>();
    if (!(difference <= same * gradients[0].abs().max().item<double>())) return refused("its gradient differs from theirs");
  } catch (const c10::Error& error) {
    return refused(error.what_without_backtrace());
  } catch (const Error& error) {
    return refused(error.what());
  }
  put_back();
  return seconds[1] < worthwhile * seconds[0];
}

void FusedGpuPipeline::choose_tile(const FusedGpuSettings& settings) {
  const auto wanted = settings.tile;
  const bool wants_tiles = wanted && !is_of_rows(*wanted);
  image_tile_ = wants_tiles ? *wanted : wanted == TileKind::odd_rows ? TileKind::odd : suitable_tile(shape_);
  tile_ = image_tile_;
  if (wants_tiles) return;
  std::optional<TileKind> rows;
  if (!image_likelihood_) rows = GpuRowCut::kind_for(shape_, dtype_, device_, wanted);
  if (wanted && !rows) {
    throw ValueError(fmt::format(
        "rows of {} pixels, or the images of this likelihood, are not transformed within a block: take tiles", shape_.npix));
  }
  tile_ = rows.value_or(image_tile_);
}

void FusedGpuPipeline::place_cells(const FusedGpuSettings& settings, const std::vector<ProblemCells>& cells) {
  if (cells.size() != 1 && static_cast<std::int64_t>(cells.size()) != settings.problems) {
    throw ValueError(
        fmt::format("{} problems, but cells of {}: give them for each, or for all at once", settings.problems, cells.size()));
  }
  std::vector<GpuCells> problems;
  problems.reserve(cells.size());
  for (const auto& [places, data, weights] : cells) {
    problems.push_back(gpu_cells(places, data, weights, settings.nchan, settings.npix, dtype_));
  }
  cells_ = joined_cells(problems);
  cells_.constant = cells_.constant.expand({settings.problems}).contiguous();
  if (is_of_rows(tile_)) {
    cut_.emplace(tile_, shape_, dtype_, device_, cells_, has_power());
    cells_ = cut_->cells();
    return;
  }
  for (auto* table : {&cells_.cell_of, &cells_.weight, &cells_.real, &cells_.imag, &cells_.constant}) *table = table->to(device_);
}

FusedGpuPipeline::~FusedGpuPipeline() = default;

void FusedGpuPipeline::check(const FusedGpuSettings& settings) const {
  settings.check_counts();
  if (settings.npix < 2 || settings.npix % 2 != 0) {
    throw ValueError(fmt::format("{} problems of {} channels of {} x {} pixels: npix must be even, and at least 2",
                                 settings.problems, settings.nchan, settings.npix, settings.npix));
  }
  constexpr std::int64_t most_images = 0x7fffffff;
  if (settings.npix > GpuShape::largest_npix || settings.nchan > most_images / settings.problems) {
    throw ValueError(
        fmt::format("{} problems of {} channels of {} x {} pixels: the fused step counts up to {} x {} pixels and {} "
                    "images on a GPU; take the eager step",
                    settings.problems, settings.nchan, settings.npix, settings.npix, GpuShape::largest_npix,
                    GpuShape::largest_npix, most_images));
  }
  if (dtype_ != torch::kFloat32 && dtype_ != torch::kFloat64) {
    throw ValueError(fmt::format("the fused step computes in float32 or float64, not in {}", c10::toString(dtype_)));
  }
  if (settings.stop_window < 0 || settings.stop_relative < 0) {
    throw ValueError(fmt::format("stop_window is {} and stop_relative {}: neither may be below 0", settings.stop_window,
                                 settings.stop_relative));
  }
  if (entries_ < 1) throw ValueError(fmt::format("a history of {} entries: at least one is needed", entries_));
  if (settings.columns.size() > regularizer_count) {
    throw ValueError(fmt::format("{} terms: there are {}", settings.columns.size(), regularizer_count));
  }
  const bool has_power = regularizers::has_any(regularizers::KindsOf<regularizers::Driver::half_plane>{},
                                               [&](TermKind kind) { return has_weight(settings, kind); });
  if (has_power && (!settings.inverse_power.defined() ||
                    settings.inverse_power.sizes() != torch::IntArrayRef({settings.npix, settings.npix / 2 + 1}))) {
    throw ValueError(fmt::format("the regularizer of the half plane needs inverse_power of shape ({}, {})", settings.npix,
                                 settings.npix / 2 + 1));
  }
  if ((settings.tile == TileKind::odd || settings.tile == TileKind::odd_rows) && !device_.is_cpu())
    throw ValueError("odd tiles and rows are for the emulation on the CPU");
}

void FusedGpuPipeline::fill_constants(const FusedGpuSettings& settings) {
  const auto& terms = settings.terms;
  constants_.cell_area = settings.cell_area;
  constants_.settings = terms.values.prepared();
  constants_.momentum = settings.momentum;
  constants_.beta1 = settings.beta1;
  constants_.beta2 = settings.beta2;
  constants_.epsilon = adam_epsilon;
  constants_.update = settings.update;
  constants_.stop_relative = settings.stop_relative;
  constants_.stop_window = settings.stop_window;
  for (const auto kind : all_regularizers()) constants_.present[static_cast<int>(kind)] = has_weight(settings, kind);
  constants_.summed[parameters_sum] = true;
  for (const auto kind : all_regularizers()) {
    if (is_of_images(driver_of(kind))) constants_.summed[image_sum_of(kind)] = constants_.present[static_cast<int>(kind)];
  }
  constants_.columns = 2;
  for (const auto kind : settings.columns) {
    const auto divisor = regularizer_of(kind).scaled_by;
    constants_.term_of_column[constants_.columns] = static_cast<int>(kind);
    constants_.sum_of_column[constants_.columns] = is_of_images(driver_of(kind)) ? half_plane_sums + image_sum_of(kind) : 1;
    constants_.divisor_of_column[constants_.columns++] = divisor ? terms.settings(kind)[*divisor] : 1;
  }
}

void FusedGpuPipeline::allocate(const FusedGpuSettings& settings) {
  const auto real = torch::TensorOptions(dtype_).device(device_), sums = torch::TensorOptions(torch::kFloat64).device(device_);
  const auto counts = torch::TensorOptions(torch::kInt64).device(device_);
  const auto problems = shape_.problems;
  const std::vector<std::int64_t> cube = {problems, shape_.nchan, shape_.npix, shape_.npix};
  image_ = unwritten(cube, real);
  if (!cut_ || uses<regularizers::Driver::curvatures>()) likelihood_ = unwritten(cube, real);
  if (uses<regularizers::Driver::spectra>()) squares_ = unwritten({problems, shape_.npix, shape_.npix}, real);
  if (image_likelihood_ && has_power()) slope_ = unwritten(cube, real);
  const auto columns = cut_ ? cut_->columns() : std::int64_t{shape_.half()};
  spectrum_ = unwritten({shape_.images(), columns, shape_.npix}, real.dtype(c10::toComplexType(dtype_)));
  if (!cut_) spectrum_ = spectrum_.view({shape_.images(), shape_.npix, columns});
  if (settings.update == FusedUpdate::adam) second_ = at::zeros(cube, real);
  if (settings.update == FusedUpdate::adam || (settings.update == FusedUpdate::sgd && settings.momentum != 0)) {
    first_ = at::zeros(cube, real);
  }
  if (has_power()) {
    inverse_power_ = (even_inverse_power(settings.inverse_power) * std::pow(settings.cell_area, 2)).contiguous().to(real);
  }
  scale_ = values_of_problems(settings, [](const FusedProblem& own) { return own.likelihood_scale; }).to(device_);
  scale_of_images_ = scale_.view({problems, 1, 1, 1}).to(dtype_);
  lambda_ = at::empty({regularizer_count, problems}, sums);
  for (const auto kind : all_regularizers()) {
    const auto lambdas = values_of_problems(settings, [kind](const FusedProblem& own) { return own.terms.weight(kind); });
    lambda_.select(0, static_cast<int>(kind)).copy_(lambdas);
  }
  rate_ = at::zeros({problems}, sums);
  stopped_ = at::zeros({problems}, torch::TensorOptions(torch::kUInt8).device(device_));
  recent_ = at::zeros({settings.stop_window + 1, problems}, sums);
  recorded_ = at::zeros({problems}, counts);
  steps_ = at::empty({problems}, counts);
  bias_ = at::empty({2, problems}, sums);
  total_ = unwritten({problems}, sums);
  set_steps(0);
  const auto tiles = pieces_of_tiles(image_tile_, shape_), pieces = cut_ ? cut_->pieces() : tiles;
  plane_sums_ = unwritten({half_plane_sums, shape_.images(), pieces.of_plane}, sums);
  if (image_likelihood_) plane_sums_.zero_();
  pixel_sums_ = unwritten({finish_sums, shape_.images(), pieces.of_image}, sums);
  curve_sums_ = unwritten({curvature_sums, shape_.images(), tiles.of_image}, sums);
  address_ = at::empty({1}, counts);
  entry_ = at::empty({problems}, counts);
  new_history();
}

void FusedGpuPipeline::new_history() {
  history_ =
      unwritten({entries_, constants_.columns + 1, shape_.problems}, torch::TensorOptions(torch::kFloat64).device(device_));
  address_.fill_(reinterpret_cast<std::int64_t>(history_.data_ptr()));
  entry_.zero_();
  enqueued_ = read_ = 0;
}

void FusedGpuPipeline::make_room(std::int64_t steps) {
  if (steps > entries_) {
    throw ValueError(fmt::format("{} steps at once are more than the {} entries of the history", steps, entries_));
  }
  if (enqueued_ + steps > entries_) new_history();
  enqueued_ += steps;
}

FusedGpuPipeline::Losses FusedGpuPipeline::next_losses() {
  if (read_ >= enqueued_) throw ValueError("the losses of all steps were asked for already");
  const auto entry = history_.select(0, read_++);
  return {entry.narrow(0, 0, constants_.columns), entry.select(0, constants_.columns)};
}

void FusedGpuPipeline::set_learning_rate(double rate) {
  if (rate == learning_rate_) return;
  learning_rate_ = rate;
  rate_.fill_(rate);
}

void FusedGpuPipeline::set_steps(std::int64_t steps) {
  const auto bias = AdamBias::of(steps + 1, constants_);
  steps_.fill_(steps);
  bias_.select(0, 0).fill_(bias.rate);
  bias_.select(0, 1).fill_(bias.second);
}

void FusedGpuPipeline::set_recent_totals(const Tensor& totals) {
  if (totals.dim() != 2 || totals.size(1) != shape_.problems) {
    throw ValueError(
        fmt::format("totals of shape {} for {} problems: (steps, problems) are needed", totals.sizes().vec(), shape_.problems));
  }
  const auto kept = std::min(totals.size(0), recent_.size(0));
  recent_.narrow(0, 0, kept).copy_(totals.narrow(0, totals.size(0) - kept, kept));
  recorded_.fill_(kept);
}

void FusedGpuPipeline::check_pixels(const Tensor& pixels, const char* name) const {
  if (pixels.scalar_type() != dtype_ || pixels.device() != device_ || !pixels.is_contiguous() ||
      pixels.numel() != shape_.images() * std::int64_t{shape_.pixels()}) {
    throw ValueError(fmt::format("{} is {} of shape {} on {}; the fused step was made for {} on {}", name,
                                 c10::toString(pixels.scalar_type()), pixels.sizes().vec(), pixels.device().str(),
                                 c10::toString(dtype_), device_.str()));
  }
}

void FusedGpuPipeline::enqueue(const Tensor& base, std::int64_t steps) {
  check_pixels(base, "base");
  run(base, {}, constants_.update, steps);
}

void FusedGpuPipeline::enqueue_gradient(const Tensor& base, const Tensor& gradient) {
  check_pixels(base, "base");
  check_pixels(gradient, "gradient");
  run(base, gradient, FusedUpdate::none, 1);
}

void FusedGpuPipeline::run(const Tensor& base, const Tensor& gradient, FusedUpdate update, std::int64_t steps) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(device_);
  if (dtype_ == torch::kFloat64) launch(arrays<double>(base, gradient, update), steps);
  else launch(arrays<float>(base, gradient, update), steps);
}

template <typename T>
GpuArrays<T> FusedGpuPipeline::arrays(const Tensor& base, const Tensor& gradient, FusedUpdate update) const {
  GpuArrays<T> arrays{};
  arrays.shape = shape_;
  arrays.constants = constants_;
  arrays.constants.update = update;
  arrays.base = device_array<T>(base);
  arrays.first = device_array<T>(first_);
  arrays.second = device_array<T>(second_);
  arrays.gradient = device_array<T>(gradient);
  arrays.image = device_array<T>(image_);
  arrays.likelihood = device_array<T>(likelihood_);
  arrays.squares = device_array<T>(squares_);
  arrays.spectrum = device_array<ComplexValue<T>>(spectrum_);
  set_cells(arrays, cells_);
  arrays.inverse_power = device_array<const T>(inverse_power_);
  arrays.scale = device_array<const double>(scale_);
  arrays.lambda = device_array<const double>(lambda_);
  arrays.rate = device_array<const double>(rate_);
  arrays.stopped = device_array<std::uint8_t>(stopped_);
  arrays.recent = device_array<double>(recent_);
  arrays.recorded = device_array<std::int64_t>(recorded_);
  arrays.steps = device_array<std::int64_t>(steps_);
  arrays.bias = device_array<double>(bias_);
  arrays.plane_pieces = static_cast<std::int32_t>(plane_sums_.size(2));
  arrays.image_pieces = static_cast<std::int32_t>(pixel_sums_.size(2));
  arrays.curve_pieces = static_cast<std::int32_t>(curve_sums_.size(2));
  arrays.plane_sums = device_array<double>(plane_sums_);
  arrays.pixel_sums = device_array<double>(pixel_sums_);
  arrays.curve_sums = device_array<double>(curve_sums_);
  arrays.total = device_array<double>(total_);
  arrays.history = device_array<std::int64_t>(address_);
  arrays.entry = device_array<std::int64_t>(entry_);
  arrays.entries = entries_;
  if (!cut_) return arrays;
  arrays.curves_alone = true;
  arrays.kept = cut_->kept<T>();
  return arrays;
}

void FusedGpuPipeline::evaluate_likelihood() {
  auto& gradient = has_power() ? slope_ : likelihood_;
  const auto values = image_likelihood_(image_, gradient);
  plane_sums_[0].view({shape_.problems, -1}).select(1, 0).copy_(values);
  if (has_power()) likelihood_.addcmul_(slope_, scale_of_images_);
  else likelihood_.mul_(scale_of_images_);
}

template <typename T>
void FusedGpuPipeline::launch(const GpuArrays<T>& arrays, std::int64_t steps) {
  if (one_kernel_) return run_stages(StepsKernel{tile_, static_cast<int>(steps)}, arrays, device_, order_);
  const auto kernel = [&](GpuKernel which) {
    const bool of_tiles = which == GpuKernel::square || which == GpuKernel::curve || which == GpuKernel::collect;
    run_kernel(TiledKernel{which, of_tiles ? image_tile_ : tile_}, arrays, device_, order_);
  };
  const bool library = transforms_ && (!image_likelihood_ || has_power());  // whose transforms go between kernels
  const auto images = image_.view({shape_.images(), shape_.npix, shape_.npix});
  std::optional<c10::Event> collected;  // of the step before, beside this one
  const auto wait_for_collected = [&] {
    if (collected) collected->block(mpol::detail::current_stream(device_));
    collected.reset();
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    kernel(GpuKernel::map);
    if (squares_.defined()) kernel(GpuKernel::square);
    if (library) transforms_->forward(images, spectrum_);
    wait_for_collected();  // before anything is summed up again
    if (library || cut_) kernel(GpuKernel::weigh);
    if (library) transforms_->inverse(spectrum_, likelihood_.view_as(images));
    if (image_likelihood_) evaluate_likelihood();
    if (uses<regularizers::Driver::curvatures>()) kernel(GpuKernel::curve);
    kernel(GpuKernel::finish);
    if (!beside_ || step + 1 == steps) {
      kernel(GpuKernel::collect);
      continue;
    }
    mpol::detail::record_event(device_, mpol::detail::EventTiming::off).block(*beside_);
    const c10::StreamGuard beside(*beside_);
    kernel(GpuKernel::collect);
    collected.emplace(mpol::detail::record_event(device_, mpol::detail::EventTiming::off));
  }
}

std::int64_t FusedGpuPipeline::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto* tensor :
       {&first_, &second_, &image_, &likelihood_, &squares_, &slope_, &spectrum_, &inverse_power_, &cells_.cell_of,
        &cells_.weight, &cells_.real, &cells_.imag, &plane_sums_, &pixel_sums_, &curve_sums_, &history_}) {
    if (tensor->defined()) bytes += tensor->nbytes();
  }
  return static_cast<std::int64_t>(bytes) + (transforms_ ? transforms_->memory_bytes() : 0) + (cut_ ? cut_->memory_bytes() : 0);
}

}  // namespace mpol::ops
