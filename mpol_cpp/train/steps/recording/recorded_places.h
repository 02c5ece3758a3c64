#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace mpol::detail {

/// Where the tensors lie that a recording reads and writes: it goes on using that memory, whatever becomes of them.
class RecordedPlaces {
 public:
  /// All parameters and buffers of a module.
  void add(const std::string& prefix, const torch::nn::Module& module);
  /// @throws ValueError when one of them was moved or cast since
  void check() const;

 private:
  struct Place {
    std::string name;
    torch::Tensor tensor;
    const void* data;
    torch::Dtype dtype;
  };
  std::vector<Place> places_;
};

}  // namespace mpol::detail
