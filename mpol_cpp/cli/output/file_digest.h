#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/distributed/shares.h>

namespace mpol::cli {

/// Checks that there is a file, or a folder that holds data. @throws FileError when it cannot be read
void check_readable(const std::filesystem::path& path);

/// How large files are cut.
struct DigestCut {
  std::int64_t least = std::int64_t{1} << 30;  ///< bytes of a file that is cut
  std::int64_t piece = std::int64_t{1} << 26;  ///< of its pieces, the last of which may be smaller
};

/// The digest of data, which threads and ranks may find together: each digests some pieces.
///
/// Of a file it is the SHA-256 of its bytes, 64 hexadecimal digits; of one that is cut "64MiB:" and the SHA-256 of its pieces'
/// digits, one after the other. Of a folder of arrays or a measurement set it is the SHA-256 of a line "NAME:DIGEST" for each of
/// its files but locks, in the order of their names; of several of these their digests with "+" between them.
class FileDigest {
 public:
  /// Looks which files there are, and how large. @throws FileError for one that cannot be read
  explicit FileDigest(const std::vector<std::filesystem::path>& data, DigestCut cut = {});

  std::int64_t pieces() const { return static_cast<std::int64_t>(pieces_.size()); }  ///< of all files
  /// The digests of some pieces, (n, 64) uint8. @throws FileError for a file that cannot be read to its end
  torch::Tensor of_pieces(const Share& share, std::int64_t threads) const;
  /// The digest of all. @param pieces  those of all pieces in their order
  std::string whole(const torch::Tensor& pieces) const;

 private:
  struct Piece {
    std::filesystem::path path;
    std::int64_t begin, bytes;
  };
  struct File {
    std::string name;         // in its folder
    std::int64_t first, end;  // of its pieces
    bool is_cut;
  };
  struct Item {
    bool is_folder;
    std::vector<File> files;
  };
  void add(Item& item, const std::filesystem::path& path, std::string name);
  static std::string of_piece(const Piece& piece);

  DigestCut cut_;
  std::vector<Item> data_;
  std::vector<Piece> pieces_;
};

/// The digest of one file or folder, found on one thread. @throws FileError when it cannot be read
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpol::cli
