#include <mpol_cpp/ops/fused/fused_settings.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::ops {

void FusedSettings::check_counts() const {
  if (nchan < 1 || problems < 1) {
    throw ValueError(fmt::format("{} problems of {} channels: at least one of each is needed", problems, nchan));
  }
  if (!own.empty() && static_cast<std::int64_t>(own.size()) != problems) {
    throw ValueError(fmt::format("{} problems, but {} have weights of their own: give one for each", problems, own.size()));
  }
}

}  // namespace mpol::ops
