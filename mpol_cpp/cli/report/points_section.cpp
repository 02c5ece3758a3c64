#include <mpol_cpp/cli/report/points_section.h>

#include <vector>

#include <mpol_cpp/cli/report/html.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {

std::string points_section(const FittedPoints& points) {
  if (points.found.sources.empty())
    return html::section("Point sources", "<p>None was found: no source is too sharp for the image.</p>\n");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < points.found.sources.size(); ++s) {
    const auto& source = points.found.sources[s];
    for (std::size_t c = 0; c < source.flux.size(); ++c) {
      const double error = source.flux_error.empty() ? 0 : source.flux_error[c];
      rows.push_back({fmt::format("{}", s + 1), fmt::format("{}", c), fmt::format("{:+.4f}", source.east + points.center.east),
                      fmt::format("{:+.4f}", source.north + points.center.north), fmt::format("{:.2g}", source.place_error),
                      fmt::format("{:.5g}", source.flux[c]), fmt::format("{:.2g}", error)});
    }
  }
  const auto words = fmt::format(
      "<p>Fitted with the image in {} rounds, {}, and taken out of the data: the image, and all below and above, is of what is "
      "left. Errors "
      "are those of the weights, and of what image and source may have of each other. Places are from the phase centre.</p>\n",
      points.found.rounds, points.found.converged ? "until they stood still" : "at the end of which they still moved");
  return html::section("Point sources",
                       words + html::table({"point", "channel", "East (″)", "North (″)", "± (″)", "flux (Jy)", "± (Jy)"}, rows));
}

}  // namespace mpol::cli
