#include <mpol_cpp/io/unknown_center.h>

#include <algorithm>
#include <string_view>

namespace mpol::io {
namespace {

constexpr std::string_view both_unknown = "The phase centre is unknown: CRVAL1 and CRVAL2 are 0.",
                           ascension_unknown = "The right ascension of the phase centre is unknown: CRVAL1 is 0.",
                           declination_unknown = "The declination of the phase centre is unknown: CRVAL2 is 0.";

}  // namespace

std::string unknown_center_line(const Observation& observation) {
  if (observation.right_ascension && observation.declination) return {};
  if (observation.declination) return std::string(ascension_unknown);
  if (observation.right_ascension) return std::string(declination_unknown);
  return std::string(both_unknown);
}

void forget_unknown_center(Observation& observation, const std::vector<std::string>& history) {
  const auto says = [&history](std::string_view line) {
    return std::any_of(history.begin(), history.end(), [line](const std::string& own) { return own.starts_with(line); });
  };
  const bool both = says(both_unknown) || (observation.right_ascension == 0.0 && observation.declination == 0.0);
  if (both || says(ascension_unknown)) observation.right_ascension.reset();
  if (both || says(declination_unknown)) observation.declination.reset();
}

}  // namespace mpol::io
