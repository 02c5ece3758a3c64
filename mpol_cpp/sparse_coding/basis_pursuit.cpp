#include <mpol_cpp/sparse_coding/basis_pursuit.h>

#include <tuple>
#include <utility>

#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/sparse_coding/coding_defaults.h>

namespace mpol {
namespace {

/// |D x - s|^2 / 2. By the eigenvectors of the smaller of D* D and D D*, so that no rho needs a factorization of its own.
class DictionaryModel : public AdmmModel {
 public:
  DictionaryModel(Tensor dictionary, Tensor signals)
      : dictionary_(std::move(dictionary)), signals_(std::move(signals)), is_tall_(dictionary_.size(0) >= dictionary_.size(1)) {
    const auto transposed = dictionary_.transpose(0, 1);
    std::tie(eigenvalues_, vectors_) =
        at::linalg_eigh(is_tall_ ? transposed.matmul(dictionary_) : dictionary_.matmul(transposed));
    eigenvalues_ = eigenvalues_.clamp_min(0).unsqueeze(-1);
    vectors_ = is_tall_ ? vectors_.transpose(0, 1) : vectors_.transpose(0, 1).matmul(dictionary_);
    gathered_ = transposed.matmul(signals_);
  }

  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& /*x*/) override {
    const auto right = gathered_ + rho * v;
    const auto within = vectors_.transpose(0, 1).matmul(vectors_.matmul(right) / (eigenvalues_ + rho));
    return is_tall_ ? within : (right - within) / rho;
  }
  Tensor value(const Tensor& x) override { return problem_sums((dictionary_.matmul(x) - signals_).square()) / 2; }

 private:
  Tensor dictionary_, signals_;
  bool is_tall_;
  Tensor eigenvalues_, vectors_, gathered_;
};

}  // namespace

BasisPursuitOptions::BasisPursuitOptions(double lambda) : l1_weight(lambda) {
  choose_penalty(*this, lambda);
  objective_at = ObjectiveAt::auxiliary;
}

std::unique_ptr<Admm> basis_pursuit(const Tensor& dictionary, const Tensor& signals, const BasisPursuitOptions& options) {
  if (dictionary.dim() != 2 || signals.dim() < 2 || signals.size(-2) != dictionary.size(0)) {
    throw ShapeError(
        fmt::format("a dictionary {} does not make signals {}: it must be (values, atoms), they (…, values, signals)",
                    dictionary.sizes().vec(), signals.sizes().vec()));
  }
  const torch::NoGradGuard no_grad;
  const auto columns = signals.unsqueeze(-3);
  auto shape = columns.sizes().vec();
  shape[shape.size() - 2] = dictionary.size(1);
  std::shared_ptr<ProximalMap> norm = std::make_shared<JointSparsity>(options.l1_weight, options.l21_weight, -1);
  if (options.l21_weight == 0) norm = std::make_shared<L1Norm>(options.l1_weight);
  return std::make_unique<Admm>(std::make_shared<DictionaryModel>(dictionary, columns), norm, at::zeros(shape, signals.options()),
                                options);
}

}  // namespace mpol
