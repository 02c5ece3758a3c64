#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/io/archives/checksums.h>
#include <mpol_cpp/io/npy.h>

namespace mpol::io {

using torch::Tensor;

/// Whether arrays are packed in the archive.
enum class Compression {
  stored,   ///< as they are: quick
  deflated  ///< packed by zlib: smaller
};

/// The values of one array in the order of its file, from the first one on, some at a time.
class ArrayStream {
 public:
  ~ArrayStream();
  ArrayStream(ArrayStream&&) noexcept;
  ArrayStream& operator=(ArrayStream&&) noexcept;

  const NpyHeader& header() const;  ///< shape and dtype
  /// The next values, (count), in the array's dtype. @throws FileError when the file is damaged or ends before
  Tensor next(std::int64_t count);
  /// Passes over the next values. @throws as next()
  void skip(std::int64_t count);
  /// Reads what is left and verifies the checksum, where there is one. @throws FileError when it does not match
  void finish();

 private:
  friend class NpzReader;
  struct Impl;
  explicit ArrayStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Arrays of a .npz file, or of a folder of .npy files, read one at a time, in blocks, without memory beyond the arrays
/// themselves.
///
/// bool, int, float32/64 and complex64/128 arrays of either byte order, C or Fortran order, .npy versions 1 to 3, in
/// stored or deflated entries, zip64 too. Unsigned 16, 32 and 64 bit integers widen to int32, int64 and int64.
/// Each read verifies the checksum of the archive; files in a folder have none. Everything is on the CPU.
/// @throws FileError  missing, empty, truncated, damaged or foreign file; missing key; header that promises more values
///                    than the entry holds (before anything is allocated)
/// @throws DataError  arrays of objects, structures, or text
class NpzReader {
 public:
  /// Opens the archive and reads its table of contents; arrays are not touched.
  /// @param checksums  ignored: of stored arrays no byte is read that is not wanted
  explicit NpzReader(const std::filesystem::path& path, Checksums checksums = Checksums::compared);
  ~NpzReader();
  NpzReader(NpzReader&&) noexcept;
  NpzReader& operator=(NpzReader&&) noexcept;

  const std::filesystem::path& path() const;     ///< of the archive
  const std::vector<std::string>& keys() const;  ///< names of the arrays, without ".npy"
  bool contains(const std::string& key) const;   ///< whether there is an array of that name

  NpyHeader header(const std::string& key) const;  ///< what the array is like, without reading it
  /// The whole array, in its own dtype, contiguous.
  Tensor read(const std::string& key) const;
  /// Reads into an existing view of the array's shape, of any strides; values convert to its dtype.
  void read_into(const std::string& key, Tensor destination) const;
  /// Reads the given rows (first index, in that order) of an array into a view of shape (rows, …).
  void read_rows_into(const std::string& key, const std::vector<std::int64_t>& rows, Tensor destination) const;
  /// The array's values one after the other; streams of several arrays may be open together, as long as the reader is there.
  ArrayStream stream(const std::string& key) const;
  /// Text of a scalar or one-element array of unicode or bytes. @throws DataError for other arrays
  std::string read_text(const std::string& key) const;

  /// "file: array 'key'", for messages.
  std::string where(const std::string& key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes arrays to a .npz file through a temporary that is renamed at the end, readable by numpy.load. The same
/// arrays give the same bytes. Arrays must stay unchanged until write().
class NpzWriter {
 public:
  /// An array on any device; complex, float32/64, bool, uint8 and signed integers.
  void add(const std::string& key, const Tensor& array);
  /// A scalar unicode array.
  void add_text(const std::string& key, const std::string& text);
  /// @throws FileError when the file cannot be written; an older file of that name is then left as it was
  void write(const std::filesystem::path& path, Compression compression = Compression::deflated) const;

 private:
  struct Entry {
    std::string name, header;
    Tensor values;
  };
  std::vector<Entry> entries_;
};

/// All arrays of a .npz file. @throws as NpzReader
std::map<std::string, Tensor> read_npz_arrays(const std::filesystem::path& path);
/// One array of a .npz file. @throws as NpzReader
Tensor read_npz_array(const std::filesystem::path& path, const std::string& key);
/// Writes arrays to a .npz file, atomically. @throws FileError, DataError (dtype that numpy lacks)
void write_npz_arrays(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays,
                      Compression compression = Compression::deflated);

}  // namespace mpol::io
