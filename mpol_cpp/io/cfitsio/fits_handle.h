#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <fitsio.h>

namespace mpol::io {

/// The bytes of a FITS file that cfitsio writes to memory: it takes names, which on the way from one call to the next could
/// come to lead elsewhere.
struct FitsBuffer {
  explicit FitsBuffer(std::size_t expected_bytes);
  ~FitsBuffer();
  FitsBuffer(const FitsBuffer&) = delete;
  FitsBuffer& operator=(const FitsBuffer&) = delete;

  void* data = nullptr;
  std::size_t room = 0;   ///< bytes allocated
  std::size_t bytes = 0;  ///< of the file, once it is closed
};

/// An open FITS file of cfitsio, closed with its scope, whose failures become FileError in words.
class FitsHandle {
 public:
  /// Creates a file in memory, which must live as long. @param named  how messages call the file
  static FitsHandle create(FitsBuffer& memory, std::filesystem::path named);
  /// Opens a file, named literally (none of cfitsio's extended syntax).
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
  /// Flushes and closes; the last unit must be the current one when the file is in memory. @throws FileError
  void close();

 private:
  FitsHandle(fitsfile* file, std::filesystem::path path, FitsBuffer* memory);

  fitsfile* file_;
  std::filesystem::path path_;
  FitsBuffer* memory_;                    // what is written to; null: the file is read
  std::unique_ptr<FitsBuffer> unpacked_;  // of a file of gzip, which is read from memory
  int status_ = 0;
};

}  // namespace mpol::io
