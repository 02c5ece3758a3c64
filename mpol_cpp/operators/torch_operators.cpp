// torch.ops.mpol and torch.classes.mpol: what any program that loads the library finds in LibTorch's dispatcher, by schema,
// Python without our module among them (docs/python.md). Each is differentiable by our own gradients; mpol::hann registers
// itself.

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/ops/fft/real_fft.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/train/steps/fused_loss.h>

namespace mpol {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Nonuniform transforms at the same points.
struct NufftObject : torch::CustomClassHolder {
  Nufft nufft;

  NufftObject(Tensor u, Tensor v, std::int64_t nchan, std::int64_t npix, double cell_size, double tolerance)
      : nufft(GridCoords(cell_size, npix), Baselines::in_lambda(std::move(u), std::move(v)), nchan, NufftOptions{tolerance}) {}
};
using NufftPtr = c10::intrusive_ptr<NufftObject>;

Tensor nufft_type2(const Tensor& sky, const NufftPtr& nufft) { return nufft->nufft->forward(sky); }
Tensor nufft_type1(const Tensor& visibilities, const NufftPtr& nufft) { return nufft->nufft->adjoint(visibilities); }

/// chi^2 of loose visibilities as a quadratic form.
struct NormalObject : torch::CustomClassHolder {
  NormalOperator normal;

  NormalObject(Tensor u, Tensor v, Tensor weights, Tensor data, std::int64_t npix, double cell_size)
      : normal(of(Visibilities(Baselines::in_lambda(std::move(u), std::move(v)), std::move(data), std::move(weights)),
                  GridCoords(cell_size, npix))) {}

 private:
  static NormalOperator of(const Visibilities& visibilities, const GridCoords& coords) {
    return NormalOperator::of(coords, visibilities, ChannelMap::cube(visibilities.nchan()));
  }
};
using NormalPtr = c10::intrusive_ptr<NormalObject>;

Tensor toeplitz_product(const Tensor& sky, const NormalPtr& normal);

/// T is symmetric: its product with the gradient is the gradient.
struct ToeplitzFunction : torch::autograd::Function<ToeplitzFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& sky, const NormalPtr& normal) {
    context->saved_data["normal"] = c10::IValue::make_capsule(normal);
    return normal->normal.apply(sky);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto normal = c10::static_intrusive_pointer_cast<NormalObject>(context->saved_data["normal"].toCapsule());
    return {toeplitz_product(gradients[0], normal), Tensor()};
  }
};

Tensor toeplitz_product(const Tensor& sky, const NormalPtr& normal) { return ToeplitzFunction::apply(sky, normal); }

using Weights = c10::Dict<std::string, double>;

/// The regularizers by name, with their usual settings.
std::vector<Term> terms_of(const Weights& weights) {
  std::vector<Term> terms;
  std::vector<std::string> known;
  for (const auto kind : all_regularizers()) {
    known.push_back(regularizer_of(kind).name);
    if (const auto found = weights.find(known.back()); found != weights.end()) terms.push_back(Term::known(kind, found->value()));
  }
  for (const auto& each : weights) {
    if (std::find(known.begin(), known.end(), each.key()) != known.end()) continue;
    throw ValueError(fmt::format("{} is no regularizer: there are {}", each.key(), fmt::join(known, ", ")));
  }
  return terms;
}

/// The loss of a model of softplus and Hann's convolution at data in cells.
c10::intrusive_ptr<FusedLoss> make_fused_loss(const Tensor& base, Tensor cells, Tensor visibilities, Tensor weights,
                                              double cell_size, const Weights& lambdas) {
  if (base.dim() < 3) throw ShapeError(fmt::format("base pixels of shape {}; give (…, nchan, npix, npix)", base.sizes().vec()));
  const GridCoords coords(cell_size, base.size(-1));
  const GriddedDataset data(coords, base.size(-3), std::move(cells), std::move(visibilities), std::move(weights));
  const GriddedNet model(BaseCubeOptions(coords).nchan(base.size(-3)).base_cube(base.detach()));
  return c10::make_intrusive<FusedLoss>(model, Objective(GriddedLikelihood(data), terms_of(lambdas)));
}
using FusedLossPtr = c10::intrusive_ptr<FusedLoss>;

Tensor fused_loss(const Tensor& base, const FusedLossPtr& loss) { return (*loss)(base); }

std::tuple<Tensor, Tensor> fused_gradient(const Tensor& base, const FusedLossPtr& loss) {
  auto gradient = at::empty_like(base.detach(), at::MemoryFormat::Contiguous);
  auto value = loss->value_and_gradient(base, gradient);
  return {std::move(value), std::move(gradient)};
}

TORCH_LIBRARY_FRAGMENT(mpol, library) {
  library.class_<NufftObject>("Nufft").def(torch::init<Tensor, Tensor, std::int64_t, std::int64_t, double, double>(), "",
                                           {torch::arg("u"), torch::arg("v"), torch::arg("nchan"), torch::arg("npix"),
                                            torch::arg("cell_size"), torch::arg("tolerance") = 1e-6});
  library.class_<NormalObject>("NormalOperator")
      .def(torch::init<Tensor, Tensor, Tensor, Tensor, std::int64_t, double>(), "",
           {torch::arg("u"), torch::arg("v"), torch::arg("weights"), torch::arg("data"), torch::arg("npix"),
            torch::arg("cell_size")})
      .def("kernel", [](const NormalPtr& self) { return self->normal.kernel(); })
      .def("dirty", [](const NormalPtr& self) { return self->normal.dirty(); })
      .def("constant", [](const NormalPtr& self) { return self->normal.constant(); });
  library.class_<FusedLoss>("FusedLoss")
      .def(torch::init(&make_fused_loss), "",
           {torch::arg("base"), torch::arg("cells"), torch::arg("visibilities"), torch::arg("weights"), torch::arg("cell_size"),
            torch::arg("lambdas")});

  library.def("half_plane_fft(Tensor image) -> Tensor", ops::half_plane_fft);
  library.def("half_plane_adjoint(Tensor half_plane) -> Tensor", ops::half_plane_adjoint);
  library.def("nufft_type2(Tensor sky, __torch__.torch.classes.mpol.Nufft nufft) -> Tensor", nufft_type2);
  library.def("nufft_type1(Tensor visibilities, __torch__.torch.classes.mpol.Nufft nufft) -> Tensor", nufft_type1);
  library.def("toeplitz_product(Tensor sky, __torch__.torch.classes.mpol.NormalOperator normal) -> Tensor", toeplitz_product);
  library.def("fused_loss(Tensor base, __torch__.torch.classes.mpol.FusedLoss loss) -> Tensor", fused_loss);
  library.def("fused_gradient(Tensor base, __torch__.torch.classes.mpol.FusedLoss loss) -> (Tensor, Tensor)", fused_gradient);
}

}  // namespace
}  // namespace mpol
