#include <mpol_cpp/cli/image/resumed_run.h>

#include <string_view>

#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/train/checkpoint.h>

namespace mpol::cli {
namespace {

constexpr const char* settings_key = "settings";
constexpr const char* device_key = "device";
constexpr const char* instruction_set_key = "instruction_set";
constexpr const char* channels_at_once_key = "channels_at_once";
constexpr const char* traits_key = "noise";  // of the samples, how much more is shared, share of the field, and fits
constexpr const char* looks_key = "looks";
constexpr const char* slow_key = "slow";
constexpr const char* reduced_key = "reduced";
constexpr const char* filled_key = "filled";  // shares of the field of each channel, where there are several

std::string value_of(const Metadata& entries, const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? std::string() : found->second;
}

/// True for an option of the verb that was given.
bool is_given(const CLI::App& verb, const std::string& name) {
  const auto* option = verb.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace

Notes notes_of_run(const ImageOptions& options, const RunRecord& record) {
  Notes notes{{device_key, options.data.device}, {instruction_set_key, std::string(to_string(selected_isa()))}};
  const auto settings = record.settings_toml();
  if (is_utf8(settings)) notes[settings_key] = settings;  // checkpoints hold nothing else; paths may be anything
  return notes;
}

void note_channels_at_once(Notes& notes, std::int64_t channels) { notes[channels_at_once_key] = fmt::format("{}", channels); }

void note_traits(Notes& notes, const FitTraits& traits) {
  notes[traits_key] =
      fmt::format("{:.17g} {:.17g} {:.17g} {}", traits.noise.of_samples, traits.noise.shared, traits.filled.front(), traits.fits);
  const auto flag = [&](const char* key, bool is_set) {
    if (is_set) notes[key] = "1";
    else notes.erase(key);
  };
  flag(looks_key, traits.looks);
  flag(slow_key, traits.slow);
  notes[reduced_key] = fmt::format("{:.17g}", traits.reduced);
  if (traits.filled.size() > 1) notes[filled_key] = fmt::format("{:.17g}", fmt::join(traits.filled, " "));
}

std::optional<FitTraits> traits_of_run(const std::filesystem::path& state) {
  const auto header = read_checkpoint_header(state / checkpoint_name);
  if (!header) return std::nullopt;
  const auto noted = value_of(header->notes, traits_key);
  std::string_view text = noted;
  const auto of_samples = take_number<double>(text), shared = take_number<double>(text), filled = take_number<double>(text);
  if (!of_samples || !shared) return std::nullopt;
  FitTraits traits{.noise = {*of_samples, *shared}, .filled = {filled.value_or(usual_filled)}};
  traits.fits = take_number<int>(text).value_or(most_usual_fits);
  traits.looks = !value_of(header->notes, looks_key).empty();
  traits.slow = !value_of(header->notes, slow_key).empty();
  traits.reduced = number_of<double>(value_of(header->notes, reduced_key)).value_or(0);
  const auto of_channels = value_of(header->notes, filled_key);
  text = of_channels;
  if (!text.empty()) traits.filled.clear();
  while (const auto share = take_number<double>(text)) traits.filled.push_back(*share);
  return traits;
}

bool ResumedRun::had_events() const { return settings.empty() || settings.find("\ntensorboard = true") != std::string::npos; }

bool ResumedRun::had_diagnostics() const {
  return settings.empty() || settings.find("\ndiagnostics-interval = ") != std::string::npos;
}

std::optional<ResumedRun> run_to_resume(const std::filesystem::path& out) {
  const auto header = read_checkpoint_header(state_folder(out) / checkpoint_name);
  if (!header) return std::nullopt;
  return ResumedRun{.threads = number_of<std::int64_t>(value_of(header->settings, "threads")),
                    .settings = value_of(header->notes, settings_key),
                    .device = value_of(header->notes, device_key),
                    .instruction_set = value_of(header->notes, instruction_set_key),
                    .channels_at_once = number_of<std::int64_t>(value_of(header->notes, channels_at_once_key))};
}

std::vector<std::string> changes_since(const ResumedRun& before, const ImageOptions& options) {
  std::vector<std::string> changes;
  const auto compare = [&](const std::string& what, const std::string& then, std::string_view now) {
    if (then.empty() || then == now) return;
    changes.push_back(fmt::format("the run began on {0}{1} and goes on on {0}{2}: its result is no longer the same bit for bit",
                                  what, then, now));
  };
  compare("", before.device, options.data.device);
  compare("the instruction set ", before.instruction_set, to_string(selected_isa()));
  return changes;
}

std::vector<std::string> resumed_arguments(const CLI::App& verb) {
  const bool wanted = verb.parsed() && is_given(verb, "--resume") && is_given(verb, "--out") && !is_given(verb, "--config") &&
                      !is_given(verb, "DATA") && !is_given(verb, "--data");
  if (!wanted) return {};
  const std::filesystem::path out = verb.get_option("--out")->as<std::string>();
  const auto before = run_to_resume(out);
  std::vector<std::string> arguments;
  if (before && !before->settings.empty()) {
    arguments = arguments_of(config_settings_of(before->settings, state_folder(out) / checkpoint_name, verb));
  } else if (std::filesystem::exists(out / "run.toml")) {
    arguments = arguments_of(config_settings(out / "run.toml", verb));
  }
  // Their number was found out, not asked for: run_to_resume() tells it where there is something to go on from.
  std::erase_if(arguments, [](const std::string& argument) { return argument.starts_with("--threads="); });
  return arguments;
}

}  // namespace mpol::cli
