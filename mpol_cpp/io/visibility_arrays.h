#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

/// The arrays of visibilities in a .npz file or a folder of .npy files, as `read_npz` describes them: found, and consistent with
/// the shape of the data. Nothing of the samples has been read.
class VisibilityArrays {
 public:
  /// @throws as read_npz
  VisibilityArrays(const std::filesystem::path& path, ReadOptions options);

  const NpzReader& reader() const { return reader_; }
  const ReadOptions& options() const { return options_; }
  std::int64_t nvis() const { return end_ - begin_; }                      ///< samples of a channel that are wanted
  std::int64_t first_sample() const { return begin_; }                     ///< of these, among those of the file
  std::int64_t nvis_of_file() const { return nvis_; }                      ///< all of a channel
  std::int64_t nchan() const { return nchan_; }                            ///< of the file
  const std::vector<std::int64_t>& channels() const { return channels_; }  ///< the selected ones
  bool has_complex_data() const { return interleaved_; }                   ///< `data`, else `data_re` and `data_im`

  UvUnit uv_unit() const;
  /// (selected channels) Hz, or undefined. Warns of such as look like GHz. @throws DataError where u and v in metres need them
  Tensor frequencies() const;
  Observation observation() const;
  /// Bytes that `read_npz` will hold.
  double bytes() const;

  /// float32 where the array is, else float64.
  torch::Dtype real_dtype(const std::string& key) const;
  /// The dtype in which the samples will be held.
  torch::Dtype data_dtype() const;
  /// Whether an array is (nchan, nvis).
  bool by_channel(const std::string& key) const;

 private:
  using Shape = std::vector<std::int64_t>;
  Shape samples_shape(const std::string& key) const;
  void check_same_shape(const std::string& key, const Shape& data) const;
  void check_goes_with_data(const std::string& key, const Shape& data) const;
  void select_channels();
  void select_samples();
  Tensor selected_frequencies() const;
  void check_frequencies(std::int64_t count) const;
  const char* frequency_key() const;
  std::optional<double> number(const std::string& key) const;
  std::string text(const std::string& key) const;
  Stokes stokes() const;

  NpzReader reader_;
  ReadOptions options_;
  bool interleaved_ = true;
  std::int64_t nchan_ = 0, nvis_ = 0, begin_ = 0, end_ = 0;
  std::vector<std::int64_t> channels_;
};

/// Reads their samples. @throws as read_npz
Visibilities read_arrays(const VisibilityArrays& arrays, const ArrayRoom& room = {});

}  // namespace mpol::io
