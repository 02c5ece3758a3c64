#include <mpol_cpp/io/archives/folder_archive.h>

#include <algorithm>
#include <fstream>
#include <ios>
#include <string_view>
#include <system_error>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

bool is_npy(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_regular_file(ignored) && entry.path().extension() == ".npy";
}

class FolderMember final : public ArchiveMember {
 public:
  FolderMember(const std::filesystem::path& path, std::string where, std::int64_t bytes)
      : ArchiveMember(std::move(where)), file_(path, std::ios::binary), bytes_(bytes) {
    if (!file_) fail("it cannot be opened; check its permissions");
  }

  void read(void* destination, std::int64_t bytes) override {
    if (bytes == 0) return;
    if (!file_.read(static_cast<char*>(destination), static_cast<std::streamsize>(bytes))) {
      fail(fmt::format("it ends after {} bytes, {} too early: copy or write the file again", at_ + file_.gcount(),
                       bytes - file_.gcount()));
    }
    at_ += bytes;
  }

  void skip(std::int64_t bytes) override {
    if (bytes > bytes_ - at_) {
      fail(fmt::format("it ends after {} bytes, {} too early: copy or write the file again", bytes_, bytes - (bytes_ - at_)));
    }
    at_ += bytes;
    file_.seekg(at_);
  }

  void finish() override {}

 private:
  [[noreturn]] void fail(std::string_view what) const { throw FileError(fmt::format("{}: {}", where(), what)); }

  std::ifstream file_;
  std::int64_t bytes_, at_ = 0;
};

}  // namespace

bool is_array_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) || std::filesystem::is_regular_file(path / "table.dat", error)) return false;
  const std::filesystem::directory_iterator files(path, error);
  return !error && std::any_of(begin(files), end(files), is_npy);
}

FolderArchive::FolderArchive(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (!is_npy(entry)) continue;
    const auto bytes = static_cast<std::int64_t>(entry.file_size(error));
    if (error) break;
    entries_.push_back({entry.path().filename().string(), 0, bytes});
    file_bytes_ += bytes;
  }
  if (error) throw FileError(fmt::format("{}: the folder cannot be read: {}", path_.string(), error.message()));
  if (entries_.empty()) {
    throw FileError(
        fmt::format("{}: is a folder without .npy files; uu.npy, vv.npy, weight.npy and data.npy, a .npz file or a "
                    "measurement set is needed",
                    path_.string()));
  }
  std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].index = i;
}

std::unique_ptr<ArchiveMember> FolderArchive::open(const ArchiveEntry& entry, std::string where) const {
  return std::make_unique<FolderMember>(path_ / entry.name, std::move(where), entry.bytes);
}

}  // namespace mpol::io
