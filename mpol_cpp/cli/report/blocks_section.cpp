#include <mpol_cpp/cli/report/blocks_section.h>

#include <vector>

#include <mpol_cpp/cli/report/html.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {

std::string blocks_section(const CalibratedBlocks& blocks) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t b = 0; b < blocks.found.blocks.size(); ++b) {
    const auto& [gain, error, chi_squared, samples, shared, significance] = blocks.found.blocks[b];
    const auto fitted = [](bool is, std::string words) { return is ? std::move(words) : std::string("-"); };
    rows.push_back({blocks.samples.names[b], fmt::format("{:.0f}", samples),
                    fitted(blocks.kinds.shift, fmt::format("{:+.4f} ± {:.2g}", gain.east, error.east)),
                    fitted(blocks.kinds.shift, fmt::format("{:+.4f} ± {:.2g}", gain.north, error.north)),
                    fitted(blocks.kinds.amplitude, fmt::format("{:.4f} ± {:.2g}", gain.amplitude, error.amplitude)),
                    fitted(blocks.kinds.weight_scale, fmt::format("{:.4f} ± {:.2g}", gain.weight_scale, error.weight_scale)),
                    fmt::format("{:.0f} %", 100 * shared)});
  }
  const auto end = blocks.change_at_end
                       ? fmt::format(" With the final image they would change by {:.2g} of their errors.", *blocks.change_at_end)
                       : std::string();
  return html::section(
      "Blocks of data",
      fmt::format(
          "<p>Gains that were fitted with the image in {} rounds, {}, and taken out of the data; all below and above is of the "
          "data without them. The means of shift and ln amplitude over the blocks are zero.{}</p>\n",
          blocks.found.rounds, blocks.found.converged ? "until they stood still" : "at the end of which they still moved", end) +
          html::table({"block", "visibilities", "East (″)", "North (″)", "amplitude", "weights times", "weight shared"}, rows));
}

}  // namespace mpol::cli
