#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <fitsio.h>

namespace mpol::io {

/// An open FITS file of cfitsio, closed with its scope, whose failures become FileError in words.
class FitsHandle {
 public:
  /// Creates a file, named literally (none of cfitsio's extended syntax); it must not exist.
  /// @param named  how messages call the file
  static FitsHandle create(const std::filesystem::path& path, std::filesystem::path named);
  static FitsHandle open(const std::filesystem::path& path);
  FitsHandle(FitsHandle&& other) noexcept;
  FitsHandle& operator=(FitsHandle&&) = delete;
  ~FitsHandle();

  fitsfile* get() const { return file_; }
  /// Where cfitsio's functions put their status. They do nothing once it is not 0.
  int* status() { return &status_; }
  /// @throws FileError unless the calls since the last check succeeded
  void check(std::string_view doing);
  /// True unless the calls since the last check failed; forgets the failure.
  bool succeeded();
  /// Flushes and closes. @throws FileError
  void close();

 private:
  FitsHandle(fitsfile* file, std::filesystem::path path, bool writing);

  fitsfile* file_;
  std::filesystem::path path_;
  bool writing_;
  int status_ = 0;
};

}  // namespace mpol::io
