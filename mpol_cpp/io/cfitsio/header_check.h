#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct gzFile_s;

namespace mpol::io {

/// Looks at headers of a FITS file before cfitsio does, which trusts some of what they say: it divides by the sizes of
/// compressed tiles, and writes values that should be whole numbers and are long texts beyond the end of its message.
class HeaderCheck {
 public:
  /// @throws FileError when the file cannot be opened
  explicit HeaderCheck(std::filesystem::path path);

  /// Checks the header that begins at a place in the unpacked file, if there is one.
  /// @param begin  bytes, not smaller than in the call before
  /// @throws FileError for a tile without pixels, or a keyword of the format that is not the number it must be
  void check(std::int64_t begin);

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  void check_card(std::string_view card) const;
  /// How an image is packed by Rice: cfitsio divides by the block's size as it stands.
  void check_rice(const std::string& block, const std::string& width) const;

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace mpol::io
