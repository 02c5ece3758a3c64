#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <torch/types.h>

#include <mpol_cpp/io/npy.h>

namespace mpol::testing {

/// Writes arrays as a folder of .npy files, one each, as numpy.save does.
inline void write_npy_folder(const std::filesystem::path& folder, const std::map<std::string, torch::Tensor>& arrays) {
  std::filesystem::create_directories(folder);
  for (const auto& [key, array] : arrays) {
    const auto values = array.contiguous();
    std::ofstream file(folder / (key + ".npy"), std::ios::binary);
    file << io::npy_header(io::npy_descr(values.scalar_type()), values.sizes().vec());
    file.write(static_cast<const char*>(values.const_data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  }
}

}  // namespace mpol::testing
