#include <mpol_cpp/cli/output/summary.h>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/run_environment.h>
#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::cli {

std::string summary_text(nlohmann::ordered_json content, std::optional<std::int64_t> seed) {
  content["threads"] = at::get_num_threads();
  content["instruction_set"] = std::string(to_string(selected_isa()));
  if (seed) content["seed"] = *seed;
  content["versions"] = versions();
  for (const auto& reading : readings_so_far()) content["reading"].push_back(nlohmann::ordered_json::parse(reading));
  content["warnings"] = warnings_so_far();
  // Paths in it may be in any encoding: what is no UTF-8 is replaced rather than refused.
  return content.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace mpol::cli
