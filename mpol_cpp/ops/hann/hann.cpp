#include <mpol_cpp/ops/hann/hann.h>

#include <algorithm>
#include <vector>

#include <ATen/Dispatch.h>
#include <torch/autograd.h>
#include <torch/library.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/hann/hann_on_gpu.h>
#include <mpol_cpp/ops/hann/hann_rows.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

void convolve_on_cpu(const Tensor& input, Tensor& output) {
  constexpr std::int64_t rows_per_task = 32;
  const std::int64_t rows = input.size(-2), columns = input.size(-1);
  if (input.numel() == 0) return;
  const std::int64_t images = input.numel() / (rows * columns);
  const std::int64_t tasks_per_image = (rows + rows_per_task - 1) / rows_per_task;
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "mpol::hann", [&] {
    const auto kernels = hann_rows<scalar_t>(selected_isa());
    const std::vector<scalar_t> zeros(static_cast<std::size_t>(columns), 0);
    const auto* in = input.const_data_ptr<scalar_t>();
    auto* out = output.mutable_data_ptr<scalar_t>();
    const auto convolve = [&](std::int64_t task, std::int64_t) {
      const auto* image = in + task / tasks_per_image * rows * columns;
      const auto pixels = [&](std::int64_t row) { return row < 0 || row >= rows ? zeros.data() : image + row * columns; };
      const auto first = task % tasks_per_image * rows_per_task;
      for (auto row = first; row < std::min(first + rows_per_task, rows); ++row) {
        kernels.convolve(pixels(row - 1), pixels(row), pixels(row + 1), out + (image - in) + row * columns, columns);
      }
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

/// Along one dimension with slices and adds, for every device without a kernel.
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

#ifdef MPOL_WITH_CUDA
bool has_kernel(const Tensor& sky) {
  return sky.is_cuda() && (sky.scalar_type() == torch::kFloat32 || sky.scalar_type() == torch::kFloat64);
}

Tensor hann_cuda(const Tensor& sky) {
  if (!has_kernel(sky)) return hann_by_slices(sky);
  auto output = at::empty_like(sky, at::MemoryFormat::Contiguous);
  hann_on_gpu(sky, output);
  return output;
}
#else
bool has_kernel(const Tensor&) { return false; }
#endif

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
#ifdef MPOL_WITH_CUDA
TORCH_LIBRARY_IMPL(mpol, CUDA, library) { library.impl("hann", hann_cuda); }
#endif
TORCH_LIBRARY_IMPL(mpol, Autograd, library) { library.impl("hann", hann_autograd); }

}  // namespace

void hann_out(const Tensor& sky, Tensor& out) {
  if (sky.is_cpu()) convolve_on_cpu(sky.contiguous(), out);
  else if (has_kernel(sky) && out.is_contiguous()) hann_on_gpu(sky, out);
  else out.copy_(hann(sky));
}

Tensor hann(const Tensor& sky) {
  if (sky.dim() < 2) throw ShapeError("hann needs an image (…, npix, npix), not " + std::to_string(sky.dim()) + " dimensions");
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("mpol::hann", "").typed<Tensor(const Tensor&)>();
  return operation.call(sky);
}

}  // namespace mpol::ops
