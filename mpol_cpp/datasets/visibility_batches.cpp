#include <mpol_cpp/datasets/visibility_batches.h>

#include <utility>

namespace mpol {

VisibilityBatches::VisibilityBatches(Visibilities visibilities, const VisibilitySampler& sampler, std::int64_t epoch)
    : visibilities_(std::move(visibilities)), samples_(sampler.epoch(epoch)) {}

Visibilities VisibilityBatches::batch(std::size_t number) const { return visibilities_.select(samples_.at(number)); }

}  // namespace mpol
