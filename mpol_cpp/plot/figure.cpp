#include <mpol_cpp/plot/figure.h>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/plot/built_in_renderer.h>
#include <mpol_cpp/plot/gnuplot.h>
#include <mpol_cpp/plot/gnuplot_script.h>
#include <mpol_cpp/plot/png.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::plot {
namespace {

namespace fs = std::filesystem;

/// A file that is removed at the end, whatever happens.
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code error;
    fs::remove(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  fs::path path_;
};

fs::path script_folder(const fs::path& figure, const RenderOptions& options) {
  return options.script_folder.empty() ? figure.parent_path() / "figures" : options.script_folder;
}

/// The folder of a figure's script and data; what was written there goes with it where it is not to stay.
class ScriptFolder {
 public:
  ScriptFolder(const fs::path& figure, const RenderOptions& options) : path_(script_folder(figure, options)) {
    if (options.scripts == Scripts::discard) files_.emplace();
    existed_ = fs::exists(path_);
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) throw FileError(cannot_write(path_, error.value()));
  }
  ~ScriptFolder() {
    std::error_code ignored;
    if (!files_) return;
    for (const auto& file : *files_) fs::remove(file, ignored);
    if (!existed_) fs::remove(path_, ignored);
  }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  void write(const FigureFile& file) {
    if (files_) files_->push_back(path_ / file.name);
    write_file_atomically(path_ / file.name, file.contents);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool existed_ = false;
  std::optional<std::vector<fs::path>> files_;  // to be removed
};

/// Draws with gnuplot and gives the bytes of the picture; empty, with a reason, when that failed.
std::string draw_with_gnuplot(const fs::path& path, const Page& page, const RenderOptions& options, std::string& reason) {
  const auto gnuplot = find_gnuplot();
  if (!gnuplot) {
    reason = "gnuplot is not on PATH";
    return {};
  }
  const auto files = gnuplot_files(page, path.stem().string());
  ScriptFolder folder(path, options);
  for (const auto& file : files) folder.write(file);

  static std::atomic<unsigned> drawn{0};
  const auto name = fmt::format(".figure-{}-{}.png", ::getpid(), drawn++);
  const Scratch scratch(folder.path() / name);
  const auto result =
      run_gnuplot(*gnuplot, folder.path(), files.front().name, fmt::format("output = '{}'", name), options.timeout_seconds);
  if (!result.succeeded) {
    reason = result.message;
    return {};
  }
  auto bytes = scratch.contents();
  if (!is_complete_png(bytes)) {
    reason = "gnuplot did not write a complete picture";
    return {};
  }
  return bytes;
}

}  // namespace

Renderer render(const fs::path& path, const Page& page, const RenderOptions& options) {
  std::string reason;
  if (options.renderer != RendererChoice::built_in) {
    const auto bytes = draw_with_gnuplot(path, page, options, reason);
    if (!bytes.empty()) {
      write_file_atomically(path, bytes);
      return Renderer::gnuplot;
    }
    if (options.renderer == RendererChoice::gnuplot) {
      throw Error(fmt::format("figure {}: gnuplot was asked for; {}; install it, or let the built-in writer draw", path.string(),
                              reason));
    }
    log_warning_once(fmt::format("{}: figures are drawn by the built-in writer", reason));
  }
  write_file_atomically(path, encode_png(draw_page(page)));
  return Renderer::built_in;
}

}  // namespace mpol::plot
