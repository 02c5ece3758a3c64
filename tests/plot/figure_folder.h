#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace mpol::testing {

/// A folder for figures, with a blank and a quote in its name, removed at the end of a test.
class FigureFolder {
 public:
  FigureFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mpol figure's XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~FigureFolder() { std::filesystem::remove_all(path_); }
  FigureFolder(const FigureFolder&) = delete;
  FigureFolder& operator=(const FigureFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// PATH with one folder alone, until the end of a test.
class OnlyPath {
 public:
  explicit OnlyPath(const std::filesystem::path& folder) {
    const char* before = std::getenv("PATH");
    before_ = before != nullptr ? before : "";
    ::setenv("PATH", folder.c_str(), 1);
  }
  ~OnlyPath() { ::setenv("PATH", before_.c_str(), 1); }
  OnlyPath(const OnlyPath&) = delete;
  OnlyPath& operator=(const OnlyPath&) = delete;

 private:
  std::string before_;
};

/// Puts a program named gnuplot that runs these shell commands into a folder.
inline void write_gnuplot(const std::filesystem::path& folder, const std::string& commands) {
  std::ofstream(folder / "gnuplot") << "#!/bin/sh\n" << commands << "\n";
  std::filesystem::permissions(folder / "gnuplot", std::filesystem::perms::owner_all);
}

}  // namespace mpol::testing
