#include "input_file.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <mpol_cpp/core/log.h>

namespace mpol::testing {
namespace {

struct InputFolder {
  InputFolder() {
    set_log_sink([](LogLevel, std::string_view) {});  // thousands of warnings
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "mpol-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder " + name);
    path = name;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  std::filesystem::path path;
};

}  // namespace

const std::filesystem::path& input_folder() {
  static const InputFolder folder;
  return folder.path;
}

std::filesystem::path input_file(const std::string& name, const std::uint8_t* bytes, std::size_t size) {
  auto path = input_folder() / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace mpol::testing
