#include <mpol_cpp/plot/figure_writer.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/plot/gnuplot.h>
#include <mpol_cpp/plot/gnuplot_script.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::plot {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Whether bytes begin like a PNG file and end like a complete one.
bool is_complete_png(std::string_view bytes) {
  constexpr std::string_view signature = "\x89PNG\r\n\x1a\n", last_chunk = "IEND";
  return bytes.size() > 57 && bytes.starts_with(signature) && bytes.substr(bytes.size() - 8, 4) == last_chunk;
}

}  // namespace

FigureWriter::FigureWriter(Scripts scripts, double seconds) : scripts_(scripts), seconds_(seconds) {}

FigureWriter::~FigureWriter() {
  gnuplot_.reset();
  std::error_code ignored;
  for (const auto& figure : figures_) fs::remove(figure.folder / figure.drawn, ignored);
  if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
}

fs::path FigureWriter::folder_of(const fs::path& figure) {
  if (scripts_ == Scripts::discard) {
    if (scratch_.empty()) {
      auto name = (fs::temp_directory_path() / "mpol-figures-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) throw FileError(cannot_write(name, errno));
      scratch_ = name;
    }
    return scratch_;
  }
  const auto folder = fs::absolute(figure).parent_path() / "figures";
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw FileError(cannot_write(folder, error.value()));
  return folder;
}

void FigureWriter::add(const fs::path& path, const Page& page) {
  static std::atomic<unsigned> number{0};
  const auto files = gnuplot_files(page, path.stem().string());
  const auto program = find_gnuplot();
  const bool is_lost = !program && scripts_ == Scripts::discard;
  const auto id = number++;
  figures_.push_back({.path = path,
                      .folder = is_lost ? fs::path() : folder_of(path),
                      .script = files.front().name,
                      .drawn = fmt::format(".figure-{}-{}.png", ::getpid(), id),
                      .end = fmt::format("figure {} is there", id)});
  if (is_lost) return;  // finish() says so
  for (const auto& file : files) write_file_atomically(figures_.back().folder / file.name, file.contents);
  if (!program) return;
  if (!gnuplot_) gnuplot_ = std::make_unique<Gnuplot>(*program);
  send(figures_.back());
}

void FigureWriter::send(const Figure& figure) {
  gnuplot_->send(fmt::format("reset\ncd {}\noutput = {}\nload {}\nset output\nprint {}\n", quoted(figure.folder.string()),
                             quoted(figure.drawn), quoted(figure.script), quoted(figure.end)));
}

std::string FigureWriter::collect(const Figure& figure) {
  if (!gnuplot_) return "gnuplot is not on PATH";
  if (auto reason = gnuplot_->wait_for(figure.end, seconds_)) {
    gnuplot_.reset();
    return *reason;
  }
  const auto bytes = contents_of(figure.folder / figure.drawn);
  std::error_code ignored;
  fs::remove(figure.folder / figure.drawn, ignored);
  if (!is_complete_png(bytes)) return "gnuplot did not write a complete picture";
  write_file_atomically(figure.path, bytes);
  return {};
}

bool FigureWriter::finish() {
  bool all = true;
  while (!figures_.empty()) {
    const auto reason = collect(figures_.front());
    const auto figure = std::move(figures_.front());
    figures_.erase(figures_.begin());
    if (reason.empty()) continue;
    all = false;
    std::error_code ignored;
    fs::remove(figure.folder / figure.drawn, ignored);
    log_warning_once(
        fmt::format("{}: figures are not drawn; their scripts and data are in figures/, for `gnuplot NAME.gp` there", reason));
    if (gnuplot_ || figures_.empty()) continue;
    if (const auto program = find_gnuplot()) {  // those after the one at which it ended
      gnuplot_ = std::make_unique<Gnuplot>(*program);
      for (const auto& next : figures_) send(next);
    }
  }
  return all;
}

bool write_figure(const fs::path& path, const Page& page, Scripts scripts) {
  FigureWriter writer(scripts);
  writer.add(path, page);
  return writer.finish();
}

fs::path script_of(const fs::path& figure) { return figure.parent_path() / "figures" / (figure.stem().string() + ".gp"); }

}  // namespace mpol::plot
