#include <mpol_cpp/plot/figure.h>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

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

/// Draws with gnuplot and gives the bytes of the picture; empty, with a reason, when that failed.
std::string draw_with_gnuplot(const fs::path& path, const Page& page, const RenderOptions& options, std::string& reason) {
  const auto gnuplot = find_gnuplot();
  if (!gnuplot) {
    reason = "gnuplot is not on PATH";
    return {};
  }
  const auto folder = script_folder(path, options);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw FileError(cannot_write(folder, error.value()));
  const auto stem = path.stem().string();
  const auto files = gnuplot_files(page, stem);
  for (const auto& file : files) write_file_atomically(folder / file.name, file.contents);

  static std::atomic<unsigned> drawn{0};
  const auto name = fmt::format(".figure-{}-{}.png", ::getpid(), drawn++);
  const Scratch scratch(folder / name);
  const auto result =
      run_gnuplot(*gnuplot, folder, files.front().name, fmt::format("output = '{}'", name), options.timeout_seconds);
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
    log_warning_once(fmt::format("{}: figures are drawn by the built-in writer", reason));
  }
  write_file_atomically(path, encode_png(draw_page(page)));
  return Renderer::built_in;
}

}  // namespace mpol::plot
