#include <mpol_cpp/cli/run_record.h>

#include <variant>

#include <mpol_cpp/cli/config_file.h>
#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/file_digest.h>
#include <mpol_cpp/cli/start_image.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>

namespace mpol::cli {
namespace {

/// Settings that name files: their contents count, not where they lie.
bool names_a_file(const std::string& setting) { return setting == "data" || setting == "more-data" || setting == "mask"; }

std::string toml_list(const std::vector<std::string>& lines) {
  std::string list = "[\n";
  for (const auto& line : lines) list += fmt::format("  {},\n", toml_string(line));
  return list + "]";
}

}  // namespace

RunRecord::RunRecord(const std::vector<RecordedSetting>& settings, const ImageOptions& image) {
  for (const auto& setting : settings) {
    if (setting.record != Record::none) settings_.push_back(setting);
  }
  data_digest_ = sha256_of_file(image.data.data);
  for (const auto& file : more_files(image.data)) data_digest_ += "+" + sha256_of_file(file);
  if (!image.mask.empty()) mask_digest_ = sha256_of_file(image.mask);
  const auto start = parse_start(image.start);
  if (const auto* file = std::get_if<StartFile>(&start)) start_digest_ = sha256_of_file(file->path);
}

std::vector<std::string> RunRecord::fingerprint() const {
  std::vector<std::string> lines = {"data = sha256:" + data_digest_};
  if (!mask_digest_.empty()) lines.push_back("mask = sha256:" + mask_digest_);
  for (const auto& setting : settings_) {
    if (setting.record != Record::result || names_a_file(setting.name)) continue;
    if (setting.name == "start" && !start_digest_.empty()) lines.push_back("start = sha256:" + start_digest_);
    else lines.push_back(fmt::format("{} = {}", setting.name, setting.toml_value));
  }
  return lines;
}

std::vector<std::string> RunRecord::settings() const {
  std::vector<std::string> lines;
  for (const auto& setting : settings_) lines.push_back(fmt::format("{} = {}", setting.name, setting.toml_value));
  return lines;
}

std::vector<std::string> RunRecord::image_history() const {
  std::vector<std::string> lines;
  for (const auto& setting : settings_) {
    const bool tells = setting.record == Record::result || setting.name == "epochs" || setting.name == "device";
    if (tells) lines.push_back(fmt::format("{} = {}", setting.name, setting.toml_value));
  }
  return lines;
}

std::string RunRecord::toml(std::int64_t epochs_done, const std::string& stop_reason) const {
  std::string text =
      fmt::format("# Settings of a run of mpol {}. To repeat it: mpol image --config run.toml -o OUT\n", version());
  text += "[image]\n";
  text += fmt::format("{}\n", fmt::join(settings(), "\n"));
  text += "\n# What was run; not settings.\n[record]\n";
  text += fmt::format("version = {}\ndata_sha256 = {}\n", toml_string(version()), toml_string(data_digest_));
  text += fmt::format("epochs_done = {}\nstop_reason = {}\n", epochs_done, toml_string(stop_reason));
  return text + fmt::format("fingerprint = {}\n", toml_list(fingerprint()));
}

bool is_finished(const std::filesystem::path& out, const RunRecord& record, std::int64_t epochs) {
  for (const auto* name : {"run.toml", "summary.json", "history.csv"}) {
    if (!std::filesystem::exists(out / name)) return false;
  }
  const auto run = recorded_run(out / "run.toml");
  if (!run || run->fingerprint != record.fingerprint()) return false;
  if (run->stop_reason == "converged") return epochs <= run->epochs_asked;
  return run->stop_reason == "epochs" && epochs <= run->epochs_done;
}

std::optional<std::string> changed_device(const std::filesystem::path& out, const std::string& device) {
  if (!std::filesystem::exists(out / "run.toml")) return std::nullopt;
  const auto run = recorded_run(out / "run.toml");
  if (!run || run->device.empty() || run->device == device) return std::nullopt;
  return fmt::format("the run began on {} and goes on on {}: its result is no longer the same bit for bit", run->device, device);
}

std::optional<std::string> changed_data(const std::filesystem::path& config, const std::string& data_digest) {
  const auto run = recorded_run(config);
  if (!run || run->data_sha256.empty() || run->data_sha256 == data_digest) return std::nullopt;
  return fmt::format("the data are not those that {} was made from (SHA-256 {} then, {} now)", config.string(), run->data_sha256,
                     data_digest);
}

}  // namespace mpol::cli
