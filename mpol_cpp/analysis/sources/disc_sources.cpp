#include <mpol_cpp/analysis/sources/disc_sources.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t samples_at_once = 1 << 18;

/// The model of unit flux that six numbers describe: size, width, inclination, position angle, East, North. Only the magnitudes
/// of size and width matter.
DiscModel model_of(DiscShape shape, const Tensor& numbers) {
  const auto values = numbers.detach().to(torch::kCPU).contiguous();
  const auto* value = values.const_data_ptr<double>();
  return {.shape = shape,
          .flux = 1,
          .size = std::abs(value[0]),
          .width = std::abs(value[1]),
          .geometry = {value[2], value[3], value[4], value[5]}};
}

struct UnitVisibilities : torch::autograd::Function<UnitVisibilities> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& numbers, const Tensor& u, const Tensor& v,
                        std::int64_t shape) {
    context->save_for_backward({numbers, u, v});
    context->saved_data["shape"] = shape;
    const auto model = model_of(static_cast<DiscShape>(shape), numbers);
    const auto flat_u = u.reshape({-1}), flat_v = v.reshape({-1});
    auto values = at::empty({flat_u.numel()}, u.options().dtype(torch::kComplexDouble));
    for (std::int64_t begin = 0; begin < flat_u.numel(); begin += samples_at_once) {
      const auto count = std::min(samples_at_once, flat_u.numel() - begin);
      values.narrow(0, begin, count)
          .copy_(disc_visibilities(model, flat_u.narrow(0, begin, count), flat_v.narrow(0, begin, count)));
    }
    return values.view(u.sizes());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (torch::GradMode::is_enabled())
      throw ValueError("visibilities of sources have no second derivative: leave create_graph out");
    const auto saved = context->get_saved_variables();
    const auto& numbers = saved[0];
    const auto model = model_of(static_cast<DiscShape>(context->saved_data["shape"].toInt()), numbers);
    const auto u = saved[1].reshape({-1}), v = saved[2].reshape({-1}), gradient = gradients[0].reshape({-1});
    auto sum = at::zeros({6}, u.options());
    for (std::int64_t begin = 0; begin < u.numel(); begin += samples_at_once) {
      const auto count = std::min(samples_at_once, u.numel() - begin);
      const auto slopes = disc_visibility_slopes(model, u.narrow(0, begin, count), v.narrow(0, begin, count));
      sum += at::real(slopes.narrow(0, 1, 6) * gradient.narrow(0, begin, count).conj()).sum({1});
    }
    auto signs = at::ones_like(numbers);
    signs.narrow(0, 0, 2).copy_(at::where(numbers.narrow(0, 0, 2) < 0, -1.0, 1.0));
    return {sum.to(numbers.device()) * signs, Tensor(), Tensor(), Tensor()};
  }
};

void check_start(const DiscModel& start) {
  const auto& geometry = start.geometry;
  const double sum = start.flux + start.size + start.width + geometry.inclination + geometry.position_angle +
                     geometry.offset_east + geometry.offset_north;
  if (!std::isfinite(sum) || start.size < 0 || start.width < 0) {
    throw ValueError(
        fmt::format("a source of flux {}, size {}, width {}, inclination {}, position angle {}, offset ({}, {}); all must be "
                    "finite, size and width at least 0",
                    start.flux, start.size, start.width, geometry.inclination, geometry.position_angle, geometry.offset_east,
                    geometry.offset_north));
  }
}

/// The number of a tensor, or zero where a shape has none.
double number_of(const Tensor& tensor) { return tensor.defined() ? tensor.item<double>() : 0; }

}  // namespace

SourceTensors source_start(const DiscModel& start) {
  check_start(start);
  const auto number = [](double value) { return at::scalar_tensor(value, torch::kFloat64); };
  SourceTensors tensors;
  tensors.flux = number(start.flux);
  tensors.offset = at::tensor({start.geometry.offset_east, start.geometry.offset_north}, torch::kFloat64);
  if (start.shape == DiscShape::point) return tensors;
  tensors.size = number(start.size);
  if (start.shape == DiscShape::broad_ring) tensors.width = number(start.width);
  tensors.inclination = number(start.geometry.inclination);
  tensors.position_angle = number(start.geometry.position_angle);
  return tensors;
}

Tensor source_visibilities(DiscShape shape, const SourceTensors& tensors, const Tensor& u, const Tensor& v) {
  if (u.sizes() != v.sizes() || u.scalar_type() != torch::kFloat64 || v.scalar_type() != torch::kFloat64) {
    throw ShapeError(
        fmt::format("u and v have shapes {} and {}; they must be float64 of one shape", u.sizes().vec(), v.sizes().vec()));
  }
  const auto zero = at::zeros({1}, tensors.flux.options().dtype(torch::kFloat64));
  const auto column = [&zero](const Tensor& tensor) {
    return tensor.defined() ? tensor.to(torch::kFloat64).reshape({-1}) : zero;
  };
  const auto numbers = at::cat({column(tensors.size), column(tensors.width), column(tensors.inclination),
                                column(tensors.position_angle), column(tensors.offset)});
  const auto unit = UnitVisibilities::apply(numbers, u, v, static_cast<std::int64_t>(shape));
  return unit.to(c10::toComplexType(tensors.flux.scalar_type())) * tensors.flux;
}

DiscModel source_model(DiscShape shape, const SourceTensors& tensors) {
  const auto offset = tensors.offset.detach().to(torch::kCPU).to(torch::kFloat64);
  return {.shape = shape,
          .flux = number_of(tensors.flux),
          .size = std::abs(number_of(tensors.size)),
          .width = std::abs(number_of(tensors.width)),
          .geometry = {number_of(tensors.inclination), number_of(tensors.position_angle), offset[0].item<double>(),
                       offset[1].item<double>()}};
}

}  // namespace mpol::detail
