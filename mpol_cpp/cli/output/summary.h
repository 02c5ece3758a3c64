#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace mpol::cli {

/// The text of a summary.json: the verb's own content, and after it what every verb says of its run: `threads`,
/// `instruction_set`, `seed` where one was used, `versions{…}`, `reading` [of each measurement set] and `warnings` [strings].
std::string summary_text(nlohmann::ordered_json content, std::optional<std::int64_t> seed = std::nullopt);

}  // namespace mpol::cli
