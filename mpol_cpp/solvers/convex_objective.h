#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/solvers/composite_function.h>
#include <mpol_cpp/solvers/cube_proximal.h>

namespace mpol {

namespace ops {
struct LengthEpsilons;
struct PixelSums;
}  // namespace ops

/// What a ConvexObjective minimizes by itself.
enum class Parts {
  problems,  ///< each problem
  images,    ///< each image, where no term joins channels and the likelihood tells chi^2 of each (Likelihood::tells_channels)
};

/// An objective as a convex function of the base pixels z of a GriddedNet whose pixel mapping is nonnegative_mapping(), z >= 0,
/// or either_sign_mapping(), so that its image is x = S z, the Hann convolution of z or (Smoothing::none) z itself:
///
///   F(z) = chi^2(x)/(2 N_norm) + lambda sum x + quadratic terms
///          `------------------- f -----------------------------'
///          + k_1 TV(x) + k_2 TV_channel(x) + k_3 L21(x) + k_4 TV_slope(x) + k_5 |W x|_1,
///            `-------------------------------- g --------------------------------'
///
/// Of pixels of either sign lambda sum x is not part of f: in its stead g has lambda sum |z|. Of an objective over ranks that
/// hold channels of one cube (Objective::over) it is this rank's part, and all ranks call the same functions. Terms that join
/// channels may be among the quadratic ones. Of losses::wavelets the part in the basis of Dirac is linear as no pixel is
/// negative, and in lambda; W are the other bases.
///
/// Where images are parts, they are problems of their own with one channel each, to whoever minimizes it.
class ConvexObjective : public CompositeFunction {
 public:
  /// Why a model and an objective do not make such a function; empty when they do.
  static std::string obstacle(ImageModel& model, const Objective& objective);

  /// Base pixels below 0 that are mapped to 0, and those outside of the mask, become 0, which changes no image.
  /// @param by     who computes the proximal map, where the model is on the CPU
  /// @param parts  what is minimized by itself, where it can be
  /// @throws ValueError where there is an obstacle
  ConvexObjective(const std::shared_ptr<ImageModel>& model, Objective objective, CubeProximal::By by = CubeProximal::By::kernels,
                  Parts parts = Parts::problems);

  /// What is minimized by itself: the problems below.
  Parts parts() const { return images_apart_ ? Parts::images : Parts::problems; }
  std::int64_t channels() const { return channels_; }  ///< of the model
  /// The base pixels as (problems, nchan, npix, npix), in the model's storage; (problems nchan, 1, npix, npix) of images apart.
  Tensor images() const;
  /// Sums over parts, (…, parts), as those over the model's problems.
  Tensor of_problems(const Tensor& of_parts) const;

  /// By power steps, once: in each image what it curves by itself, and in all of a problem what quadratic terms that join
  /// channels add. Some per cent too small where power steps take many to find the largest.
  std::vector<double> curvatures() override;
  bool mixes_images() const override;
  std::vector<double> evaluate(const Tensor& images, Tensor& gradient) override;
  void proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes, Tensor& x) override;

  /// What evaluate_on_device() finds, in float64 where the images are.
  struct DeviceValues {
    Tensor simple;  ///< (problems): g
    Tensor losses;  ///< (columns, problems), in the order of Objective::columns()
  };
  /// The same as evaluate(), without waiting for a device: the values stay there, and losses() is left alone.
  DeviceValues evaluate_on_device(const Tensor& images, Tensor& gradient);
  /// Whether it waits for a device even so: for terms whose weights of channels come from the host.
  bool waits_for_device() const;

  /// What bend() needs, once. The objective is evaluated where the image is 0, which a likelihood's working state may show.
  void prepare_bend();
  /// f'' times the images, by LibTorch's second derivatives. @throws ValueError before prepare_bend()
  Tensor bend(const Tensor& images) const;

  /// The columns of Objective::columns() at the images of the last call of evaluate(), of each problem: columns problems values.
  const std::vector<double>& losses() const { return losses_; }
  /// The regularizers' part of F in such losses, of each problem; chi^2/(2 N_norm) where there are none. Of images apart it is no
  /// less than a hundredth of that, for channels of next to nothing.
  std::vector<double> scales(const std::vector<double>& losses) const;
  std::vector<double> scales() const { return scales(losses_); }  ///< those at the images of the last call of evaluate()
  Tensor device_scales(const Tensor& losses) const;               ///< the same of DeviceValues::losses, (problems) on the device

  /// How far F of each problem can at most be above its minimum, by a dual point near the images; empty where the objective has
  /// neither sparsity nor wavelets, without which no dual point is feasible; of an objective over ranks this rank's part of it.
  /// Six hundred dual steps of total variation; what rounding may take is added. With f(x) = x.Ax/2 - b.x + c, dual images |u_j|
  /// <= 1 (CubeProximal) and any t in [0, 1] for which t (S(b - Ax) - S sum_j k_j D_j^T u_j) <= lambda S 1, or, of pixels of
  /// either sign, its magnitude <= lambda,
  ///
  ///   F >= c - ((1-t)^2 2c + 2t(1-t) b.x + t^2 x.Ax)/2 + sum_j k_j sqrt(epsilon_j) sum sqrt(1 - t^2 |u_j|^2)
  ///
  /// as c is no less than b.A^-1 b/2: chi^2 is not negative.
  std::vector<double> gaps();

  CubeProximal& map() { return *map_; }              ///< the proximal map of g, with the state of its last call
  const CubeProximal& map() const { return *map_; }  ///< the same

 private:
  static constexpr double least_share_of_images = 0.01;  // of scales() beside chi^2/(2 N_norm)
  static bool is_length(TermKind kind);                  // whether a term belongs to g, whatever the pixels' sign
  /// Whether a term belongs to g.
  bool is_simple(TermKind kind) const;
  /// Gives the share of the weight of a term that counts the sum of the pixels, which is not in g; 0 where there is none.
  static double share_of_sum(TermKind kind);
  /// The model's problem of a part, and the model's channel of an image, (problems, nchan).
  std::size_t problem_of(std::size_t part) const;
  std::size_t channel_of(std::size_t image) const;
  /// The weight of a term in each problem, or in each image where terms have weights of channels; 0 where there is no such term.
  std::vector<double> weights_of(TermKind kind) const;
  /// Those of weights_of() as the images have them, (problems, nchan or 1, 1, 1) float64.
  Tensor beside_images(const std::vector<double>& weights) const;
  /// Those of the sum of the pixels: sparsity's, and the part of the wavelets in the basis of Dirac.
  std::vector<double> linear_weights() const;
  std::vector<double> weights_in_bases() const;  // k_5, as weights_of()
  /// Adds what of a term belongs to g to `simple`, of each problem. @param values  the term's own, weighted
  void add_simple(const Term& term, const std::vector<double>& values, const Tensor& sky, std::vector<double>& simple) const;
  /// S of the images into sky_, and the gradient behind it. @return chi^2, of each problem
  Tensor gradient_into(const Tensor& images, Tensor& gradient);
  /// The weights of a term on the device, float64: one, or (problems).
  const Tensor& device_weights(const Term& term) const;
  /// Sums of images, (problems, nchan) float64 on the device, over the channels of each problem, as the term counts them.
  Tensor counted(const Term& term, const Tensor& sums) const;
  bool is_used(TermKind kind) const;                        ///< whether a term of this kind has a weight
  double epsilon_of(TermKind kind) const;                   ///< the first one's, should there be several; 0 where there is none
  std::optional<double> used_epsilon(TermKind kind) const;  // nothing where there is none
  ops::LengthEpsilons used_epsilons() const;                ///< of the lengths that kernels sum
  /// Terms whose values are sums over pixels that kernels tell together.
  enum class PixelSum { pixels, variation, curvature };
  std::optional<PixelSum> pixel_sum_of(TermKind kind) const;  // none for other terms
  bool sums_pixels() const;                                   ///< whether any term is one of them
  /// Whether a term's epsilon is that of the first one of its kind, with which sums are told.
  bool has_first_epsilon(const Term& term) const;
  std::unique_ptr<CubeProximal> new_map() const;
  /// A term's value at an image, weighted, of each problem.
  /// @param images  base pixels
  /// @param sky     S of them
  /// @param known   sums over the pixels of the sky, if somebody has them
  std::vector<double> weighted(const Term& term, const Tensor& images, const Tensor& sky,
                               const std::vector<ops::PixelSums>* known = nullptr) const;
  /// A term's value at an image, without its weights but those of channels, of each problem.
  Tensor value_of(const Term& term, const Tensor& images, const Tensor& sky) const;
  /// What a term sees of an image.
  ModelOutput output_of(const Tensor& images, const Tensor& sky) const;
  void smooth_into(const Tensor& images, Tensor& out) const;  // S
  Tensor shaped_like_model(const Tensor& images) const { return images.view(model_->base().sizes()); }
  /// Whether the slope of linear terms is added, which is a constant of each problem.
  enum class Linear { added, left_out };
  /// Writes the slopes of chi^2/(2 N_norm) and the quadratic terms into `gradient`. @return chi^2, of each problem
  Tensor slopes_at(const Tensor& sky, Tensor& gradient, Linear linear) const;
  /// Makes a gradient of chi^2, (problems, nchan, npix, npix), that of chi^2/(2 N_norm).
  void normalize(Tensor& gradient, Linear linear) const;
  /// The slope of quadratic terms that are of images by themselves, or join channels, is added to `gradient`.
  enum class Quadratic { of_images, joining };
  void add_slopes(const Tensor& sky, Quadratic which, Tensor& gradient) const;
  std::vector<double> curvatures_of_images() const;
  std::vector<double> curvatures_between_images() const;  // of each problem

  std::shared_ptr<GriddedNetImpl> model_;
  Objective objective_;
  CubeProximal::By by_;
  bool either_sign_ = false;
  bool weighs_channels_ = false;  // whether terms have weights of channels
  bool images_apart_ = false;
  std::int64_t channels_ = 0;                            // of the model
  std::vector<Tensor> device_weights_, device_factors_;  // of each term; factors of channels undefined where it has none
  Tensor term_weights_, simple_;  // (terms, problems) and (terms, 1): 1 for a term of g, else 0; undefined without terms
  Tensor linear_;                 // beside_images(); undefined where no pixel has a linear weight
  Tensor mask_;                   // undefined: every pixel may shine
  std::unique_ptr<CubeProximal> map_;
  Tensor sky_, slopes_;              // room
  Tensor origin_, slope_at_origin_;  // of f, with its graph
  std::vector<double> curvatures_, losses_;
};

}  // namespace mpol
