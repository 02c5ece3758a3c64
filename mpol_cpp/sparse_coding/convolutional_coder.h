#pragma once

#include <memory>

#include <mpol_cpp/solvers/admm.h>
#include <mpol_cpp/sparse_coding/filter_bank.h>

namespace mpol {

/// Options of a ConvolutionalCoder.
struct ConvolutionalCodingOptions : AdmmOptions {
  /// Chooses rho = 50 lambda + 1, the balance's target 1 + 18.3^(log10 lambda + 1), and a balance in every iteration, which is
  /// fast to 1e-3; for much less fix rho: as long as it changes residuals need not vanish.
  /// @throws ValueError unless lambda is finite and above 0
  explicit ConvolutionalCodingOptions(double lambda);

  double l1_weight;            ///< lambda
  Tensor l1_weights = {};      ///< (M), >= 0, that lambda is multiplied with for each filter; undefined: 1
  double l21_weight = 0;       ///< >= 0, of vectors along the channels: colors then share their places; not with l1_weights
  double gradient_weight = 0;  ///< mu, >= 0, of |D x_m|^2 / 2 for the periodic differences of each map
  double tv_weight = 0;        ///< >= 0, of the total variation of each map, periodic and isotropic
  /// Weights of the data, >= 0, broadcastable to the image: 0 where there are none; undefined: 1. The image is then a constraint
  /// of its own (mask decoupling), whose dual residual is that of the multiplier. Not with a gradient or total variation.
  Tensor mask = {};
  /// The signs that are allowed.
  enum class Sign {
    any,               ///< both
    nonnegative        ///< none below 0
  } sign = Sign::any;  ///< of the coefficients
};

/// Convolutional sparse coding:  min_x |W (D x - s)|^2 / 2 + lambda |x|_1 + ...  of images s as sums of few filters, FilterBank's
/// D. Source: Wohlberg 2016, 2017: ConvBPDN, ConvBPDNJoint, ConvBPDNGradReg, ConvBPDNMaskDcpl and ConvBPDNScalarTV of SPORCO,
/// with the defaults of the first.
class ConvolutionalCoder {
 public:
  /// @param filters  (M, h, w), or (M, C, h, w) for channels that share maps
  /// @param image    (…, C, rows, columns), any floating dtype and device; leading dimensions are problems
  /// @throws ShapeError when they do not go together, ValueError for options out of range or that exclude each other
  ConvolutionalCoder(const Tensor& filters, const Tensor& image, const ConvolutionalCodingOptions& options);

  /// Runs until the coefficients have converged or the iterations are used up.
  SolverReport solve() { return solver_->solve(); }
  /// Exactly sparse maps (…, C or 1, M, rows, columns).
  Tensor coefficients() const;
  /// D of them, (…, C, rows, columns).
  Tensor reconstruction() const { return bank_->apply(coefficients()); }
  const FilterBank& bank() const { return *bank_; }  ///< the filters, their transforms and D
  /// With its state, its residuals and its penalties.
  Admm& solver() { return *solver_; }

 private:
  std::shared_ptr<const FilterBank> bank_;
  std::unique_ptr<Admm> solver_;
};

}  // namespace mpol
