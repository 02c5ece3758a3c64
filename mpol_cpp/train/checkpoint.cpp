#include <mpol_cpp/train/checkpoint.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/train/history_files.h>

namespace mpol {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view format_name = "mpol_cpp checkpoint";
constexpr std::string_view format_version = "1";
constexpr std::string_view state_prefix = "state.";
constexpr std::string_view setting_prefix = "setting.";
constexpr std::string_view note_prefix = "note.";

/// The rows that have no files.
Tensor history_table(const Checkpoint& checkpoint) {
  const auto& history = checkpoint.history;
  const auto first = checkpoint.history_files.size() * LossHistory::block_rows, columns = 1 + checkpoint.columns.size();
  auto table =
      at::empty({static_cast<std::int64_t>(history.size() - first), static_cast<std::int64_t>(columns)}, torch::kFloat64);
  auto* row = table.mutable_data_ptr<double>();
  for (auto epoch = first; epoch < history.size(); ++epoch, row += columns) std::copy_n(history.row(epoch), columns, row);
  return table;
}

void append_table(const Tensor& table, std::size_t columns, LossHistory& history) {
  if (table.dim() != 2 || table.size(1) != static_cast<std::int64_t>(1 + columns) || table.scalar_type() != torch::kFloat64) {
    throw FileError("its history does not match its columns");
  }
  history.append_rows(table.const_data_ptr<double>(), static_cast<std::size_t>(table.size(0)), 1 + columns);
}

const std::string& entry(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) throw FileError(fmt::format("it has no {} in its metadata", key));
  return found->second;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= text.size();) {
    const auto comma = std::min(text.find(separator, from), text.size());
    names.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return names;
}

/// The entries whose names start with the prefix, without it.
Metadata part(const Metadata& metadata, std::string_view prefix) {
  Metadata found;
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(prefix)) found[key.substr(prefix.size())] = text;
  }
  return found;
}

void check_format(const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != format_name) {
    throw FileError("it is a safetensors file, but not a checkpoint of a training run");
  }
  if (entry(metadata, "format_version") != format_version) {
    throw FileError(fmt::format("it has format version {}, this version of mpol_cpp reads {}", entry(metadata, "format_version"),
                                format_version));
  }
}

Checkpoint parse(const fs::path& path, SafetensorsFile file, torch::Device device) {
  check_format(file.metadata);
  Checkpoint checkpoint;
  checkpoint.step = entry(file.metadata, "step");
  checkpoint.columns = split(entry(file.metadata, "columns"), ',');
  const auto history = file.tensors.find("history");
  if (history == file.tensors.end()) throw FileError("it has no history");
  if (const auto files = file.metadata.find("history_files"); files != file.metadata.end()) {
    checkpoint.history_files = split(files->second, '/');
  }
  for (const auto& name : checkpoint.history_files) {
    detail::read_history_block(path, name, checkpoint.columns.size(), checkpoint.history);
  }
  append_table(history->second, checkpoint.columns.size(), checkpoint.history);

  const auto& epochs = entry(file.metadata, "epochs");
  const auto parsed = std::from_chars(epochs.data(), epochs.data() + epochs.size(), checkpoint.epochs);
  if (parsed.ec != std::errc() || parsed.ptr != epochs.data() + epochs.size() ||
      checkpoint.epochs != static_cast<std::int64_t>(checkpoint.history.size())) {
    throw FileError(fmt::format("it claims {} epochs but its history has {}", epochs, checkpoint.history.size()));
  }
  checkpoint.settings = part(file.metadata, setting_prefix);
  checkpoint.notes = part(file.metadata, note_prefix);
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(state_prefix)) checkpoint.state[name.substr(state_prefix.size())] = tensor.to(device);
  }
  return checkpoint;
}

Checkpoint read_one(const fs::path& path, torch::Device device) {
  auto file = read_safetensors(path);
  try {
    auto checkpoint = parse(path, std::move(file), device);
    checkpoint.read_from = path;
    return checkpoint;
  } catch (const FileError& error) {
    throw FileError(fmt::format("cannot read {}: {}", path.string(), error.what()));
  }
}

/// A second name of the checkpoint, on its way to be the previous one's.
fs::path link_beside(const fs::path& path) {
  auto link = previous_checkpoint(path);
  link += ".link";
  return link;
}

/// Gives the checkpoint the previous one's name too, so that no moment is without a checkpoint under its own name.
void keep_as_previous(const fs::path& path) {
  std::error_code error, ignored;
  if (!fs::is_regular_file(path, error)) return;
  const auto previous = previous_checkpoint(path), link = link_beside(path);
  fs::remove(link, error);
  fs::create_hard_link(path, link, error);
  if (!error) {
    fs::rename(link, previous, error);
    fs::remove(link, ignored);  // between two names of one file, as a kill leaves them, rename() does nothing
  } else {
    fs::rename(path, previous, error);  // a file system without hard links
  }
  if (error) throw FileError(fmt::format("cannot keep {} as {}: {}", path.string(), previous.string(), error.message()));
}

}  // namespace

fs::path previous_checkpoint(const fs::path& path) {
  auto name = path.stem();
  name += ".previous";
  name += path.extension();
  return path.parent_path() / name;
}

void remove_checkpoint_leftovers(const fs::path& path) {
  std::error_code ignored;
  fs::remove(link_beside(path), ignored);
  const auto own = path.filename().string();
  remove_stale_temporaries(path.parent_path(), [&own](const std::string& name) { return name == own; });
}

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint, Existing existing) {
  Metadata metadata = {{"format", std::string(format_name)},
                       {"format_version", std::string(format_version)},
                       {"written_by", "mpol_cpp " + version()},
                       {"epochs", std::to_string(checkpoint.epochs)},
                       {"columns", fmt::format("{}", fmt::join(checkpoint.columns, ","))},
                       {"step", checkpoint.step}};
  for (const auto& [key, text] : checkpoint.settings) metadata[std::string(setting_prefix) + key] = text;
  for (const auto& [key, text] : checkpoint.notes) metadata[std::string(note_prefix) + key] = text;
  if (!checkpoint.history_files.empty()) metadata["history_files"] = fmt::format("{}", fmt::join(checkpoint.history_files, "/"));
  NamedTensors tensors = {{"history", history_table(checkpoint)}};
  for (const auto& [name, tensor] : checkpoint.state) tensors[std::string(state_prefix) + name] = tensor;

  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  if (existing == Existing::keep_as_previous) keep_as_previous(path);
  file.commit();
}

std::optional<Checkpoint> read_checkpoint(const fs::path& path, torch::Device device) {
  const auto previous = previous_checkpoint(path);
  const bool has_previous = fs::exists(previous);
  if (!fs::exists(path) && !has_previous) return std::nullopt;
  try {
    return read_one(path, device);
  } catch (const FileError& error) {
    if (!has_previous) throw;
    const std::string first = error.what();
    try {
      auto checkpoint = read_one(previous, device);
      log_warning(fmt::format("{}; going on from {} after {} epochs", first, previous.string(), checkpoint.epochs));
      return checkpoint;
    } catch (const FileError& second) {
      throw FileError(fmt::format("{}; nor the one before: {}; remove both to start anew", first, second.what()));
    }
  }
}

std::optional<CheckpointHeader> read_checkpoint_header(const fs::path& path) {
  for (const auto& candidate : {path, previous_checkpoint(path)}) {
    std::error_code ignored;
    if (!fs::exists(candidate, ignored)) continue;
    try {
      const auto metadata = read_safetensors_metadata(candidate);
      check_format(metadata);
      const auto epochs = number_of<std::int64_t>(entry(metadata, "epochs"));
      return CheckpointHeader{part(metadata, setting_prefix), part(metadata, note_prefix), epochs.value_or(0)};
    } catch (const FileError&) {  // whoever goes on from it will say so
    }
  }
  return std::nullopt;
}

void check_same_run(const fs::path& path, const Metadata& saved, const Metadata& present) {
  const auto value = [](const Metadata& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string("not set") : found->second;
  };
  auto keys = present;
  keys.insert(saved.begin(), saved.end());
  std::vector<std::string> differences;
  for (const auto& [key, text] : keys) {
    const auto there = value(saved, key), here = value(present, key);
    if (there != here) differences.push_back(fmt::format("{} is {} there and {} here", key, there, here));
  }
  if (differences.empty()) return;
  throw FileError(fmt::format("{} is of another run: {}; use the same settings, or start anew without resuming", path.string(),
                              fmt::join(differences, ", ")));
}

}  // namespace mpol
