#include <mpol_cpp/cli/output/blocks_table.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>

namespace mpol::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* csv_names =
    "block,n_visibilities,east,east_error,north,north_error,amplitude,amplitude_error,weight_scale,weight_scale_error,shared,"
    "significance";
constexpr std::size_t csv_columns = 12;

Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

/// Numbers of the gain in a line. @throws DataError
BlockGain gain_in(const std::vector<std::string>& fields, const std::string& where) {
  const auto number = [&](std::size_t column) {
    const auto value = number_of<double>(fields[column]);
    if (value && std::isfinite(*value)) return *value;
    throw DataError(fmt::format("{}: '{}' is no finite number", where, fields[column]));
  };
  const BlockGain gain{number(2), number(4), number(6), number(8)};
  if (gain.amplitude > 0 && gain.weight_scale > 0) return gain;
  throw DataError(fmt::format("{}: amplitude {} and weight scale {} must be > 0", where, gain.amplitude, gain.weight_scale));
}

}  // namespace

GainKinds parse_gain_kinds(const std::string& list) {
  GainKinds kinds;
  const auto take = [&](bool& kind) {
    if (kind) throw UsageError(error_text("--fit-blocks", list, "names one twice", "name it once"));
    kind = true;
  };
  for (const auto& word : fields_of(list)) {
    if (word == "shift") take(kinds.shift);
    else if (word == "amplitude") take(kinds.amplitude);
    else if (word == "weight") take(kinds.weight_scale);
    else
      throw UsageError(error_text("--fit-blocks", word, "is none of shift, amplitude and weight",
                                  "give one or several of them, as in shift,weight"));
  }
  if (!kinds.any())
    throw UsageError(
        error_text("--fit-blocks", "(nothing)", "says what is fitted", "give one or several of shift, amplitude and weight"));
  return kinds;
}

std::string blocks_csv(const CalibratedBlocks& blocks) {
  auto text = fmt::format("{}\n", csv_names);
  for (std::size_t b = 0; b < blocks.found.blocks.size(); ++b) {
    const auto& [gain, error, chi_squared, samples, shared, significance] = blocks.found.blocks[b];
    text += fmt::format("{},{:.0f},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n",
                        blocks.samples.names[b], samples, gain.east, error.east, gain.north, error.north, gain.amplitude,
                        error.amplitude, gain.weight_scale, error.weight_scale, shared, significance);
  }
  return text;
}

Json blocks_json(const CalibratedBlocks& blocks) {
  Json fitted = Json::array(), list = Json::array();
  if (blocks.kinds.shift) fitted.push_back("shift");
  if (blocks.kinds.amplitude) fitted.push_back("amplitude");
  if (blocks.kinds.weight_scale) fitted.push_back("weight");
  for (std::size_t b = 0; b < blocks.found.blocks.size(); ++b) {
    const auto& [gain, error, chi_squared, samples, shared, significance] = blocks.found.blocks[b];
    list.push_back({{"block", blocks.samples.names[b]},
                    {"n_visibilities", static_cast<std::int64_t>(samples)},
                    {"shift_arcsec", {gain.east, gain.north}},
                    {"shift_error_arcsec", {finite(error.east), finite(error.north)}},
                    {"amplitude", gain.amplitude},
                    {"amplitude_error", finite(error.amplitude)},
                    {"weight_scale", gain.weight_scale},
                    {"weight_scale_error", error.weight_scale},
                    {"shared", shared},
                    {"significance", significance}});
  }
  Json json = {{"fitted", fitted},
               {"rounds", blocks.found.rounds},
               {"converged", blocks.found.converged},
               {"change", finite(blocks.found.change)},
               {"change_at_end", nullptr},
               {"gains", list}};
  if (blocks.change_at_end) json["change_at_end"] = finite(*blocks.change_at_end);
  return json;
}

std::string gain_words(const CalibratedBlocks& blocks, std::size_t block) {
  const auto& [gain, error, chi_squared, samples, shared, significance] = blocks.found.blocks[block];
  std::string text = blocks.samples.names[block] + ":";
  const auto add = [&text](const std::string& words) { text += (text.back() == ':' ? " " : ", ") + words; };
  if (blocks.kinds.shift)
    add(fmt::format("shift {:+.4f}\" East, {:+.4f}\" North (+- {:.2g}\", {:.2g}\")", gain.east, gain.north, error.east,
                    error.north));
  if (blocks.kinds.amplitude) add(fmt::format("amplitude {:.4f} +- {:.2g}", gain.amplitude, error.amplitude));
  if (blocks.kinds.weight_scale) add(fmt::format("weights times {:.4f} +- {:.2g}", gain.weight_scale, error.weight_scale));
  return text;
}

std::vector<std::string> blocks_warnings(const CalibratedBlocks& blocks) {
  constexpr double little = 0.1, faint = 5, much = 1;
  std::vector<std::string> warnings;
  const auto& found = blocks.found;
  if (!found.converged) {
    warnings.push_back(
        fmt::format("the gains of the blocks have not converged: after {} rounds one still changes by {:.2g} of its "
                    "error; fit fewer kinds, or blocks that share more of the uv plane",
                    found.rounds, found.change));
  }
  const bool of_sky = blocks.kinds.shift || blocks.kinds.amplitude;
  for (std::size_t b = 0; of_sky && b < found.blocks.size(); ++b) {
    const auto& block = found.blocks[b];
    const auto& name = blocks.samples.names[b];
    if (block.shared < little) {
      warnings.push_back(
          fmt::format("{} has {:.0f} % of its weight where other blocks observed, too: its shift and amplitude follow "
                      "from the priors more than from data; leave them out, or join blocks",
                      name, 100 * block.shared));
    } else if (block.significance < faint) {
      warnings.push_back(
          fmt::format("the source is seen by only {:.1f} sigma in {}: its shift and amplitude are mostly noise; take "
                      "larger blocks",
                      block.significance, name));
    }
  }
  if (blocks.change_at_end && *blocks.change_at_end > much) {
    warnings.push_back(
        fmt::format("with the final image a gain would change by {:.2g} of its error: it was fitted with an image of "
                    "other LAMBDA; give the chosen LAMBDA as numbers, and fit again",
                    *blocks.change_at_end));
  }
  return warnings;
}

std::string NamedGains::kinds() const {
  std::istringstream words(names.empty() ? std::string() : names.front());
  std::string list, kind, number;
  while (words >> kind >> number) list += (list.empty() ? "" : ",") + kind;
  return list;
}

std::vector<BlockGain> NamedGains::of(const SampleBlocks& blocks) const {
  std::vector<BlockGain> found;
  for (const auto& name : blocks.names) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw DataError(error_text("--gains", name,
                                 fmt::format("is a block of the data that the file lacks; it has {}", fmt::join(names, ", ")),
                                 "give the gains of these data"));
    }
    found.push_back(gains[static_cast<std::size_t>(at - names.begin())]);
  }
  return found;
}

NamedGains read_blocks_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    throw FileError(fmt::format("{} cannot be read; name the blocks.csv of mpol image --fit-blocks", path.string()));
  if (line != csv_names)
    throw DataError(
        fmt::format("{} is no blocks.csv of mpol image --fit-blocks: its first line is '{}'", path.string(), line.substr(0, 80)));
  NamedGains all;
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    const auto where = fmt::format("{}, line {}", path.string(), number);
    const auto fields = fields_of(line);
    if (fields.size() != csv_columns)
      throw DataError(fmt::format("{} has {} fields; there must be {}", where, fields.size(), csv_columns));
    all.names.push_back(fields.front());
    all.gains.push_back(gain_in(fields, where));
  }
  if (all.names.empty()) throw DataError(fmt::format("{} has no blocks", path.string()));
  return all;
}

}  // namespace mpol::cli
