#include <mpol_cpp/calibration/saved_rounds.h>

#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol {
namespace {

const std::string imager_prefix = "imager.";
constexpr const char* fingerprint_key = "fingerprint";

std::string joined(const std::vector<std::string>& fingerprint) { return fmt::format("{}", fmt::join(fingerprint, "\n")); }

}  // namespace

void write_rounds(const std::filesystem::path& path, const SavedRounds& rounds, const std::vector<std::string>& fingerprint) {
  auto tensors = rounds.tensors;
  for (const auto& [name, tensor] : rounds.of_imager) tensors[imager_prefix + name] = tensor;
  write_safetensors(path, tensors, {{fingerprint_key, joined(fingerprint)}});
}

std::optional<SavedRounds> read_rounds(const std::filesystem::path& path, const std::vector<std::string>& fingerprint) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto file = read_safetensors(path);
  if (file.metadata[fingerprint_key] != joined(fingerprint)) {
    log_warning(fmt::format("{} is of a fit with other settings or data: it begins anew", path.string()));
    return std::nullopt;
  }
  SavedRounds rounds;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(imager_prefix)) rounds.of_imager[name.substr(imager_prefix.size())] = tensor;
    else rounds.tensors[name] = tensor;
  }
  return rounds;
}

}  // namespace mpol
