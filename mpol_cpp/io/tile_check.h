#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

struct gzFile_s;

namespace mpol::io {

/// Looks at headers of a FITS file before cfitsio does, which divides by the sizes of compressed tiles without a look at them.
class TileCheck {
 public:
  explicit TileCheck(std::filesystem::path path);

  /// Checks the header that begins at a place in the unpacked file, if there is one.
  /// @param begin  bytes, not smaller than in the call before
  /// @throws FileError for a tile without pixels
  void check_header(std::int64_t begin);

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace mpol::io
