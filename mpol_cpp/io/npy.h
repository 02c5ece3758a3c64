#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

namespace mpol::io {

/// What the header of a .npy file (versions 1 to 3) says about the array that follows it.
struct NpyHeader {
  char kind = 'f';                  ///< numpy's: f c b u i are numbers; U S O V M m are not
  std::int64_t item_bytes = 0;      ///< bytes of one element
  bool byte_swapped = false;        ///< stored in the other byte order than this machine's
  bool fortran_order = false;       ///< the first index runs fastest
  std::vector<std::int64_t> shape;  ///< in the order of the indices; empty: a scalar
  std::int64_t header_bytes = 0;    ///< where the values begin

  std::string descr;  ///< as written in the file, for messages: "<f8"

  bool is_text() const { return kind == 'U' || kind == 'S'; }       ///< whether the values are text, of one length
  std::int64_t count() const;                                       ///< number of elements
  std::int64_t data_bytes() const { return count() * item_bytes; }  ///< bytes of the values

  /// The dtype that a tensor of these values gets: the same, except that u2 becomes int32, u4 and u8 int64.
  torch::ScalarType dtype() const;
  /// The dtype of the raw values as they lie in the file (u8 as int64).
  torch::ScalarType stored_dtype() const;
};

/// Bytes needed before the length of the header is known.
inline constexpr std::int64_t npy_preamble_bytes = 12;

/// Whole length of the header, preamble included, from its first npy_preamble_bytes bytes (fewer if `available` says
/// that the file holds fewer). @throws FileError, beginning with `where`, unless it is a .npy of version 1, 2 or 3.
std::int64_t npy_header_bytes(std::string_view preamble, std::int64_t available, std::string_view where);

/// Parses a complete header. Structured, object and other arrays that are no numbers or text are refused here.
/// @throws FileError when it is malformed, DataError for arrays that cannot be read; both begin with `where`
NpyHeader parse_npy_header(std::string_view header, std::string_view where);

/// Header of version 1.0 for an array in C order, padded to a multiple of 64 bytes.
std::string npy_header(std::string_view descr, const std::vector<std::int64_t>& shape);
/// numpy's name of a tensor's dtype in this machine's byte order: "<f8". @throws DataError for dtypes numpy lacks
std::string npy_descr(torch::ScalarType dtype);

/// "(3, 4)", "(3,)" or "()": a shape as numpy writes it.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace mpol::io
