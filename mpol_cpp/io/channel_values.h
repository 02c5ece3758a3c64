#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <mpol_cpp/io/npz_archive.h>

namespace mpol::io {

/// The values of one array of visibilities, (nvis) or (nchan, nvis), channel after channel. The file is read once where channels
/// follow one another in it, from the first value that is asked for.
class ChannelValues {
 public:
  ChannelValues(const NpzReader& reader, std::string key, std::int64_t nvis)
      : reader_(&reader), key_(std::move(key)), header_(reader.header(key_)), nvis_(nvis) {}

  /// Samples [begin, begin + count) of a channel, in the array's dtype; behind those of before, or the file is read anew.
  Tensor next(std::int64_t channel, std::int64_t begin, std::int64_t count) {
    const bool by_channel = header_.shape.size() == 2;
    if (by_channel && header_.fortran_order) return next_interleaved(channel, begin, count);
    const auto at = (by_channel ? channel * nvis_ : 0) + begin;
    open_at(at);
    at_ += count;
    return stream_->next(count);
  }

  /// Verifies the checksum of what was read last, to its end.
  void finish() {
    if (stream_) stream_->finish();
    stream_.reset();
  }

 private:
  /// The next samples of an array in which the channels of a sample lie together.
  Tensor next_interleaved(std::int64_t channel, std::int64_t begin, std::int64_t count) {
    const auto nchan = header_.shape[0];
    open_at(begin * nchan);
    at_ += count * nchan;
    return stream_->next(count * nchan).view({count, nchan}).select(1, channel).contiguous();
  }

  void open_at(std::int64_t at) {
    if (!stream_ || at < at_) {
      finish();
      stream_.emplace(reader_->stream(key_));
      at_ = 0;
    }
    if (at > at_) stream_->skip(at - at_);
    at_ = at;
  }

  const NpzReader* reader_;
  std::string key_;
  NpyHeader header_;
  std::int64_t nvis_, at_ = 0;
  std::optional<ArrayStream> stream_;
};

}  // namespace mpol::io
