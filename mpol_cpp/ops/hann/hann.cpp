#include <mpol_cpp/ops/hann/hann.h>

#include <vector>

#include <ATen/Dispatch.h>
#include <torch/autograd.h>
#include <torch/library.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

/// [1/4, 1/2, 1/4] along one row of n values, zero padded.
template <typename T>
void convolve_row(const T* __restrict in, T* __restrict out, std::int64_t n) {
  const T half = T(0.5), quarter = T(0.25);
  if (n == 1) {
    out[0] = half * in[0];
    return;
  }
  out[0] = half * in[0] + quarter * in[1];
  for (std::int64_t i = 1; i < n - 1; ++i) out[i] = half * in[i] + quarter * (in[i - 1] + in[i + 1]);
  out[n - 1] = half * in[n - 1] + quarter * in[n - 2];
}

/// out = centre/2 + (below + above)/4
template <typename T>
void combine_rows(const T* __restrict below, const T* __restrict center, const T* __restrict above, T* __restrict out,
                  std::int64_t n) {
  const T half = T(0.5), quarter = T(0.25);
  for (std::int64_t i = 0; i < n; ++i) out[i] = half * center[i] + quarter * (below[i] + above[i]);
}

/// Rows [first, last) of one image: each input row is convolved once and kept while its neighbours need it.
template <typename T>
void hann_rows(const T* image, T* result, std::int64_t rows, std::int64_t columns, std::int64_t first, std::int64_t last) {
  const auto n = static_cast<std::size_t>(columns);
  std::vector<T> storage(4 * n, T(0));
  const T* const zeros = storage.data() + 3 * n;
  const auto convolved = [&](std::int64_t row) -> const T* {
    if (row < 0 || row >= rows) return zeros;
    return storage.data() + static_cast<std::size_t>(row % 3) * n;
  };
  const auto convolve = [&](std::int64_t row) {
    if (row < 0 || row >= rows) return;
    convolve_row(image + row * columns, storage.data() + static_cast<std::size_t>(row % 3) * n, columns);
  };
  convolve(first - 1);
  convolve(first);
  for (std::int64_t row = first; row < last; ++row) {
    convolve(row + 1);
    combine_rows(convolved(row - 1), convolved(row), convolved(row + 1), result + row * columns, columns);
  }
}

void convolve_on_cpu(const Tensor& input, Tensor& output) {
  constexpr std::int64_t rows_per_task = 32;
  const std::int64_t rows = input.size(-2), columns = input.size(-1);
  if (input.numel() == 0) return;
  const std::int64_t images = input.numel() / (rows * columns);
  const std::int64_t tasks_per_image = (rows + rows_per_task - 1) / rows_per_task;
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "mpol::hann", [&] {
    const auto* in = input.const_data_ptr<scalar_t>();
    auto* out = output.mutable_data_ptr<scalar_t>();
    const auto convolve = [&](std::int64_t task, std::int64_t) {
      const auto offset = task / tasks_per_image * rows * columns;
      const auto first = task % tasks_per_image * rows_per_task;
      hann_rows(in + offset, out + offset, rows, columns, first, std::min(first + rows_per_task, rows));
    };
    share_tasks(images * tasks_per_image, 1, convolve, WorkerPool::Order::near);
  });
}

Tensor hann_cpu(const Tensor& sky) {
  const auto input = sky.contiguous();
  auto output = at::empty_like(input);
  convolve_on_cpu(input, output);
  return output;
}

/// Along one dimension with slices and adds, for every other device.
Tensor hann_along(const Tensor& image, std::int64_t dim) {
  auto result = image * 0.5;
  const auto n = image.size(dim);
  if (n > 1) {
    result.narrow(dim, 1, n - 1).add_(image.narrow(dim, 0, n - 1), 0.25);
    result.narrow(dim, 0, n - 1).add_(image.narrow(dim, 1, n - 1), 0.25);
  }
  return result;
}

Tensor hann_by_slices(const Tensor& sky) { return hann_along(hann_along(sky, -1), -2); }

struct HannFunction : torch::autograd::Function<HannFunction> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& sky) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return hann(sky);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {hann(gradients[0])};
  }
};

Tensor hann_autograd(const Tensor& sky) { return HannFunction::apply(sky); }

TORCH_LIBRARY_FRAGMENT(mpol, library) { library.def("hann(Tensor sky) -> Tensor"); }
TORCH_LIBRARY_IMPL(mpol, CPU, library) { library.impl("hann", hann_cpu); }
TORCH_LIBRARY_IMPL(mpol, CompositeExplicitAutograd, library) { library.impl("hann", hann_by_slices); }
TORCH_LIBRARY_IMPL(mpol, Autograd, library) { library.impl("hann", hann_autograd); }

}  // namespace

void hann_out(const Tensor& sky, Tensor& out) {
  if (sky.is_cpu()) convolve_on_cpu(sky.contiguous(), out);
  else out.copy_(hann(sky));
}

Tensor hann(const Tensor& sky) {
  if (sky.dim() < 2) throw ShapeError("hann needs an image (…, npix, npix), not " + std::to_string(sky.dim()) + " dimensions");
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("mpol::hann", "").typed<Tensor(const Tensor&)>();
  return operation.call(sky);
}

}  // namespace mpol::ops
