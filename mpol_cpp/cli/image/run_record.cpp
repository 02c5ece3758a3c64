#include <mpol_cpp/cli/image/run_record.h>

#include <algorithm>
#include <variant>

#include <ATen/Parallel.h>

#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/output/file_digest.h>
#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/train/trainer.h>

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

RunRecord::RunRecord(const std::vector<RecordedSetting>& settings, const ImageOptions& image) : data_(more_files(image.data)) {
  for (const auto& setting : settings) {
    if (setting.record == Record::none) continue;
    if (!is_utf8(setting.toml_value)) {
      throw UsageError(error_text("--" + setting.name, setting.toml_value, "is not UTF-8, which run.toml could not hold",
                                  "rename the file or the folders it lies in"));
    }
    settings_.push_back(setting);
  }
  data_.insert(data_.begin(), image.data.data);
  for (const auto& path : data_) check_readable(path);
  if (!image.mask.empty()) mask_digest_ = sha256_of_file(image.mask);
  if (const auto* file = std::get_if<StartFile>(&image.start)) start_digest_ = sha256_of_file(file->path);
}

void RunRecord::digest_data() {
  digest_ = std::make_shared<const FileDigest>(data_);
  data_digest_ = std::async(std::launch::async, [digest = digest_, threads = at::get_num_threads()] {
    return digest->whole(digest->of_pieces({0, digest->pieces()}, threads));
  });
}

void RunRecord::digest_share(const Communicator& ranks, std::int64_t threads) {
  digest_ = std::make_shared<const FileDigest>(data_);
  const auto share = share_of(digest_->pieces(), ranks.rank(), ranks.size());
  digest_share_ =
      std::async(std::launch::async, [digest = digest_, share, threads] { return digest->of_pieces(share, threads); });
}

void RunRecord::gather_digest(Communicator& ranks) {
  const auto rows = ranks.gather(digest_share_.get());
  if (ranks.is_first()) set_data_digest(digest_->whole(rows));
}

void RunRecord::set_data_digest(std::string digest) {
  std::promise<std::string> known;
  known.set_value(std::move(digest));
  data_digest_ = known.get_future();
}

std::vector<std::string> RunRecord::fingerprint() const {
  std::vector<std::string> lines = {"data = sha256:" + data_digest()};
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
  for (const auto& setting : settings_) {
    const auto lambda = lambdas_.find(setting.name);
    const auto remark =
        lambda == lambdas_.end() ? std::string() : fmt::format("  # {}: {}", lambda->second.how, lambda->second.words());
    lines.push_back(fmt::format("{} = {}{}", setting.name, setting.toml_value, remark));
  }
  return lines;
}

std::string RunRecord::Lambda::words() const {
  return units ? fmt::format("{:.3g}, {:.3g} U", value, *units) : fmt::format("{:.3g}", value);
}

void RunRecord::note_lambda(const std::string& term, double lambda, std::optional<double> units, const std::string& how) {
  auto name = term;
  std::replace(name.begin(), name.end(), '_', '-');
  lambdas_[name] = {lambda, units, how};
}

std::vector<std::string> RunRecord::image_history() const {
  std::vector<std::string> lines;
  for (const auto& setting : settings_) {
    const bool tells = setting.record == Record::result || setting.name == "epochs" || setting.name == "device";
    if (!tells) continue;
    const auto lambda = lambdas_.find(setting.name);
    if (lambda == lambdas_.end()) lines.push_back(fmt::format("{} = {}", setting.name, setting.toml_value));
    else lines.push_back(fmt::format("{} = {:.3g} ({})", setting.name, lambda->second.value, lambda->second.how));
  }
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  return lines;
}

std::string RunRecord::settings_toml() const { return fmt::format("[image]\n{}\n", fmt::join(settings(), "\n")); }

std::string RunRecord::toml(std::int64_t epochs_done, const std::string& stop_reason,
                            const std::vector<std::string>& files) const {
  std::string text =
      fmt::format("# Settings of a run of mpol {}. To repeat it: mpol image --config run.toml -o OUT\n", version());
  text += settings_toml();
  text += "\n# What was run; not settings.\n[record]\n";
  text += fmt::format("version = {}\ndata_sha256 = {}\n", toml_string(version()), toml_string(data_digest()));
  text += fmt::format("epochs_done = {}\nstop_reason = {}\n", epochs_done, toml_string(stop_reason));
  text += fmt::format("fingerprint = {}\n", toml_list(fingerprint()));
  return text + fmt::format("files = {}\n", toml_list(files));
}

bool is_finished(const std::filesystem::path& out, const RunRecord& record, std::int64_t epochs) {
  if (!std::filesystem::exists(out / "run.toml")) return false;
  const auto run = recorded_run(out / "run.toml");
  if (!run || run->fingerprint != record.fingerprint() || run->files.empty()) return false;
  for (const auto& name : run->files) {
    if (!std::filesystem::exists(out / name)) return false;
  }
  if (run->stop_reason == to_string(StopReason::converged)) return epochs <= run->epochs_asked;
  return run->stop_reason == to_string(StopReason::epochs) && epochs <= run->epochs_done;
}

std::vector<std::string> earlier_files(const std::filesystem::path& out) {
  for (const auto& path : {out / "run.toml", replaced_record(out)}) {
    try {
      if (!std::filesystem::exists(path)) continue;
      if (const auto run = recorded_run(path)) return run->files;
    } catch (const FileError&) {  // somebody's own file of this name: nothing is known
    }
  }
  return {};
}

std::optional<std::string> changed_data(const std::filesystem::path& config, const std::string& data_digest) {
  const auto run = recorded_run(config);
  if (!run || run->data_sha256.empty() || run->data_sha256 == data_digest) return std::nullopt;
  return fmt::format("the data are not those that {} was made from (SHA-256 {} then, {} now)", config.string(), run->data_sha256,
                     data_digest);
}

}  // namespace mpol::cli
