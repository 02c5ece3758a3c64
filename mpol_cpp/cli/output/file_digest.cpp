#include <mpol_cpp/cli/output/file_digest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <future>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/serialize/sha256.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t digits = 64, block_bytes = 1 << 20;

/// The files of a folder but that of a lock, by their names in it.
std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "table.lock")
      names.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* why, const char* remedy) {
  throw FileError(error_text("file", path.string(), why, remedy));
}

}  // namespace

void check_readable(const std::filesystem::path& path) {
  if (io::is_measurement_set(path) || io::is_array_folder(path)) return;
  if (std::ifstream(path, std::ios::binary) && !std::filesystem::is_directory(path)) return;
  const auto* why = !std::filesystem::exists(path)        ? "is not there"
                    : std::filesystem::is_directory(path) ? "is a folder, not a file"
                                                          : "cannot be read";
  throw FileError(error_text("file", path.string(), why, "check the path"));
}

FileDigest::FileDigest(const std::vector<std::filesystem::path>& data, DigestCut cut) : cut_(cut) {
  for (const auto& path : data) {
    check_readable(path);
    auto& item = data_.emplace_back();
    item.is_folder = std::filesystem::is_directory(path);
    if (!item.is_folder) add(item, path, {});
    else
      for (const auto& name : names_in(path)) add(item, path / name, name);
  }
}

void FileDigest::add(Item& item, const std::filesystem::path& path, std::string name) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) fail(path, "cannot be read", "check the path");
  const bool is_cut = size >= cut_.least;
  const auto step = is_cut ? cut_.piece : std::max<std::int64_t>(size, 1);
  const auto first = pieces();
  for (std::int64_t begin = 0; begin == 0 || begin < size; begin += step)
    pieces_.push_back({path, begin, std::min(step, size - begin)});
  item.files.push_back({std::move(name), first, pieces(), is_cut});
}

std::string FileDigest::of_piece(const Piece& piece) {
  std::ifstream file(piece.path, std::ios::binary);
  if (!file) fail(piece.path, "went away while it was being read", "put it back");
  file.seekg(piece.begin);
  std::vector<char> block(static_cast<std::size_t>(block_bytes));
  Sha256 digest;
  for (std::int64_t done = 0; done < piece.bytes; done += block_bytes) {
    const auto step = std::min(block_bytes, piece.bytes - done);
    if (!file.read(block.data(), step)) fail(piece.path, "cannot be read to its end", "check the disk");
    digest.update(block.data(), static_cast<std::size_t>(step));
  }
  return digest.finish();
}

torch::Tensor FileDigest::of_pieces(const Share& share, std::int64_t threads) const {
  auto rows = at::empty({share.size(), digits}, torch::kUInt8);
  auto* to = rows.data_ptr<std::uint8_t>();
  std::atomic<std::int64_t> next = share.begin;
  const auto work = [&] {
    for (auto i = next++; i < share.end; i = next++)
      std::memcpy(to + (i - share.begin) * digits, of_piece(pieces_[static_cast<std::size_t>(i)]).data(), digits);
  };
  std::vector<std::future<void>> others;
  for (std::int64_t other = 1; other < std::min(threads, share.size()); ++other)
    others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& other : others) other.get();
  return rows;
}

std::string FileDigest::whole(const torch::Tensor& pieces) const {
  const auto* from = reinterpret_cast<const char*>(pieces.const_data_ptr<std::uint8_t>());
  const auto of_file = [&](const File& file) {
    const std::string all(from + file.first * digits, from + file.end * digits);
    return file.is_cut ? fmt::format("{}MiB:{}", cut_.piece >> 20, sha256(all.data(), all.size())) : all;
  };
  std::vector<std::string> digests;
  for (const auto& item : data_) {
    if (!item.is_folder) {
      digests.push_back(of_file(item.files.front()));
      continue;
    }
    std::string lines;
    for (const auto& file : item.files) lines += file.name + ":" + of_file(file) + "\n";
    digests.push_back(sha256(lines.data(), lines.size()));
  }
  return fmt::format("{}", fmt::join(digests, "+"));
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const FileDigest digest({path});
  return digest.whole(digest.of_pieces({0, digest.pieces()}, 1));
}

}  // namespace mpol::cli
