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
  /// Creates a file on disk, in the place of one that is there. @param named  how messages call it
  static FitsHandle create(const std::filesystem::path& path, std::filesystem::path named);
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
  int unit();              ///< number of the current unit, from 1
  void move_to(int unit);  ///< makes a unit the current one. @throws FileError
  /// Flushes and closes; the last unit must be the current one when the file is in memory. @throws FileError
  void close();

 private:
  enum class Use { read, write };
  FitsHandle(fitsfile* file, std::filesystem::path path, FitsBuffer* memory, Use use);

  fitsfile* file_;
  std::filesystem::path path_;
  FitsBuffer* memory_;  // what is written to; null: a file on disk, or the file is read
  Use use_;
  std::unique_ptr<FitsBuffer> unpacked_;  // of a file of gzip, which is read from memory
  int status_ = 0;
};

}  // namespace mpol::io
