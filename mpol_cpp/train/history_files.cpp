#include <mpol_cpp/train/history_files.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/serialize/sha256.h>

namespace mpol::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t number_digits = 6, digest_digits = 16;

std::string block_prefix(const fs::path& checkpoint) { return checkpoint.stem().string() + ".history-"; }

/// What distinguishes the name of a block: its number and the beginning of its digest.
std::string block_mark(std::size_t block, const Tensor& rows) {
  const auto digest = sha256(rows.const_data_ptr<double>(), rows.nbytes()).substr(0, digest_digits);
  return fmt::format("{:0{}}-{}", block, number_digits, digest);
}

bool all_of(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

}  // namespace

std::string write_history_block(const fs::path& checkpoint, const LossHistory& history, std::size_t block) {
  const auto rows = at::empty(
      {static_cast<std::int64_t>(LossHistory::block_rows), static_cast<std::int64_t>(history.row_values())}, torch::kFloat64);
  std::copy_n(history.row(block * LossHistory::block_rows), rows.numel(), rows.mutable_data_ptr<double>());
  const auto name = block_prefix(checkpoint) + block_mark(block, rows) + checkpoint.extension().string();
  write_safetensors(checkpoint.parent_path() / name, {{"history", rows}});
  return name;
}

void read_history_block(const fs::path& checkpoint, const std::string& name, std::size_t columns, LossHistory& history) {
  const auto path = checkpoint.parent_path() / name;
  auto file = read_safetensors(path);
  const auto rows = file.tensors["history"];
  const auto block = history.size() / LossHistory::block_rows;
  const bool fits = rows.defined() && rows.dim() == 2 && rows.scalar_type() == torch::kFloat64 &&
                    rows.size(0) == static_cast<std::int64_t>(LossHistory::block_rows) &&
                    rows.size(1) == static_cast<std::int64_t>(1 + columns);
  if (!fits || name.find(".history-" + block_mark(block, rows)) == std::string::npos) {
    throw FileError(fmt::format("{} does not hold the epochs that its name says", path.string()));
  }
  history.append_rows(rows.const_data_ptr<double>(), LossHistory::block_rows, 1 + columns);
}

bool is_history_block(const fs::path& checkpoint, const std::string& name) {
  const auto prefix = block_prefix(checkpoint), extension = checkpoint.extension().string();
  if (name.size() != prefix.size() + number_digits + 1 + digest_digits + extension.size()) return false;
  if (!name.starts_with(prefix) || !name.ends_with(extension)) return false;
  const auto middle = std::string_view(name).substr(prefix.size());
  return all_of(middle.substr(0, number_digits), "0123456789") && middle[number_digits] == '-' &&
         all_of(middle.substr(number_digits + 1, digest_digits), "0123456789abcdef");
}

void remove_other_history_blocks(const fs::path& checkpoint, const std::vector<std::string>& kept) {
  const auto folder = checkpoint.has_parent_path() ? checkpoint.parent_path() : fs::path(".");
  std::vector<fs::path> others;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (is_history_block(checkpoint, name) && std::find(kept.begin(), kept.end(), name) == kept.end())
      others.push_back(entry.path());
  }
  for (const auto& path : others) fs::remove(path, ignored);
}

}  // namespace mpol::detail
