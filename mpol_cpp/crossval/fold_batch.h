#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/crossval/fold_fit.h>
#include <mpol_cpp/models/gridded_net.h>

namespace mpol::detail {

/// Several folds that are fitted as the problems of one batch: one step for all of them, each with its own data and normalizer. A
/// fold whose fit has come to its end stands still while others go on, so that each ends as it would alone.
class FoldBatch {
 public:
  /// Images that a fold's fit takes, POGM's with its dual ones.
  static constexpr double images_of_fold = 16;

  /// Says why folds cannot be a batch; empty where they can.
  static std::string obstacle(const std::vector<FoldFit*>& folds, const TrainOptions& options);

  /// @param folds  which stay where they are while this lives
  /// @throws ValueError where there is an obstacle
  FoldBatch(std::vector<FoldFit*> folds, Normalize normalize, const TrainOptions& options);

  /// Fits them from the parameters that they have. @return the end of each
  std::vector<FoldFit::End> fit(const std::vector<Term>& terms);

 private:
  Tensor base_of(std::size_t problem) const;

  std::vector<FoldFit*> folds_;
  FoldFit all_;
};

}  // namespace mpol::detail
