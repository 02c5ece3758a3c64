#include <mpol_cpp/train/image_trail.h>

#include <cmath>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t first_image = 16;
constexpr std::size_t images_of_octave = 4;
constexpr const char* epochs_name = "epochs";

std::string image_name(std::size_t i) { return fmt::format("image{}", i); }

/// (problems, pixels of all channels)
Tensor by_problem(const Tensor& sky) { return sky.reshape({-1, sky.size(-3) * sky.size(-2) * sky.size(-1)}); }

}  // namespace

std::int64_t ImageTrail::next() const {
  if (epochs_.empty()) return first_image;
  const auto last = static_cast<double>(epochs_.back());
  return static_cast<std::int64_t>(std::ceil(last * std::exp2(1.0 / static_cast<double>(images_of_octave))));
}

void ImageTrail::record(const Tensor& sky) {
  epochs_.push_back(next());
  images_.push_back(sky.detach());
  if (images_.size() <= images_of_octave + 1) return;
  epochs_.erase(epochs_.begin());
  images_.erase(images_.begin());
}

std::optional<ImageTrail::Change> ImageTrail::change(const std::function<void(std::vector<double>&)>& sum) const {
  if (images_.size() <= images_of_octave) return std::nullopt;
  const auto before = by_problem(images_.front()), now = by_problem(images_.back());
  const auto relative = [](const Tensor& part, const Tensor& whole) {
    return (part / whole.clamp_min(1e-300)).max().to(torch::kFloat64).item<double>();
  };
  const auto summed = [&sum](Tensor of_problems) {
    if (!sum) return of_problems;
    const auto own = of_problems.to(torch::kCPU).contiguous();
    std::vector<double> numbers(own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel());
    sum(numbers);
    return at::tensor(numbers, torch::kFloat64);
  };
  const auto length = [&summed](const Tensor& images) { return summed(images.square().sum(1, false, torch::kFloat64)).sqrt(); };
  const auto flux_of = [&summed](const Tensor& images) { return summed(images.sum(1, false, torch::kFloat64)); };
  const auto flux_before = flux_of(before), flux = flux_of(now);
  return Change{epochs_.front(), relative(length(now - before), length(now)),
                relative((flux - flux_before).abs(), flux_of(now.abs())),  // pixels of either sign may have a flux of 0
                flux_before.sum().item<double>()};
}

std::vector<bool> ImageTrail::still_images(double most_of_image, double most_of_flux) const {
  if (images_.size() <= images_of_octave) return {};
  const auto apart = [](const Tensor& sky) { return sky.reshape({-1, sky.size(-2) * sky.size(-1)}); };
  const auto before = apart(images_.front()), now = apart(images_.back());
  const auto length = [](const Tensor& images) { return images.square().sum(1, false, torch::kFloat64).sqrt(); };
  const auto flux_of = [](const Tensor& images) { return images.sum(1, false, torch::kFloat64); };
  const auto image_is_still = length(now - before) <= length(now) * most_of_image;
  const auto flux_is_still = (flux_of(now) - flux_of(before)).abs() <= flux_of(now.abs()) * most_of_flux;
  const auto still = image_is_still.logical_and(flux_is_still).to(torch::kCPU);
  const auto* values = still.const_data_ptr<bool>();
  return std::vector<bool>(values, values + still.numel());
}

NamedTensors ImageTrail::state() const {
  NamedTensors state;
  if (epochs_.empty()) return state;
  state[epochs_name] = at::tensor(epochs_, torch::kInt64);
  for (std::size_t i = 0; i < images_.size(); ++i) state[image_name(i)] = images_[i];
  return state;
}

void ImageTrail::load_state(const NamedTensors& state) {
  epochs_.clear();
  images_.clear();
  const auto found = state.find(epochs_name);
  if (found == state.end()) return;
  const auto epochs = found->second.to(torch::kCPU, torch::kInt64).contiguous();
  for (std::int64_t i = 0; i < epochs.numel(); ++i) {
    const auto image = state.find(image_name(static_cast<std::size_t>(i)));
    if (image == state.end()) throw FileError(fmt::format("the saved state has no image {} of its trail", i));
    epochs_.push_back(epochs.const_data_ptr<std::int64_t>()[i]);
    images_.push_back(image->second);
  }
}

}  // namespace mpol::detail
