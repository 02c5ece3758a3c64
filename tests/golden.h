#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/io/npz_archive.h>

/// Reference data computed with MPoL (tests/data/golden/README.md): `const Golden g("dirty"); g("out_natural_C")`.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : name_(name), arrays_(mpol::io::read_npz_arrays(std::filesystem::path(MPOL_TEST_DATA_DIR) / "golden" / (name + ".npz"))) {}

  bool has(const std::string& key) const { return arrays_.contains(key); }

  /// The array of that name, in the dtype and shape of the file. Do not change it in place: the Golden shares it.
  const torch::Tensor& operator()(const std::string& key) const {
    const auto found = arrays_.find(key);
    if (found == arrays_.end()) throw std::out_of_range("golden data " + name_ + " has no " + key);
    return found->second;
  }

  /// An array of one element as a number: `g.number<std::int64_t>("in_npix")`.
  template <typename T = double>
  T number(const std::string& key) const {
    return (*this)(key).item<T>();
  }

 private:
  std::string name_;
  std::map<std::string, torch::Tensor> arrays_;
};

/// The coordinates that most of the reference data share.
inline mpol::GridCoords dataset_coords() {
  const Golden dataset("dataset");
  return {dataset.number("in_cell_size"), dataset.number<std::int64_t>("in_npix")};
}
