#include <mpol_cpp/train/progress_report.h>

#include <algorithm>
#include <cmath>

#include <sys/ioctl.h>
#include <unistd.h>

#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr double bar_interval = 0.1;      // seconds
constexpr std::int64_t usual_width = 80;  // columns
constexpr std::int64_t smallest_bar = 5;  // cells; narrower terminals get none
constexpr std::int64_t widest_bar = 40;

ReportStyle resolve(ReportStyle style, std::FILE* stream) {
  if (style != ReportStyle::automatic) return style;
  return ::isatty(::fileno(stream)) != 0 ? ReportStyle::bar : ReportStyle::lines;
}

std::int64_t terminal_width(std::FILE* stream) {
  winsize size{};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_width;
}

/// "12 s", "3:05", "2:03:05".
std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar(double fraction, std::int64_t cells) {
  const auto filled = std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(cells)), 0, cells);
  return fmt::format("[{:#<{}}{:.<{}}] ", "", filled, "", cells - filled);
}

}  // namespace

ProgressReport::ProgressReport(ProgressReportOptions options)
    : options_(options), style_(resolve(options.style(), options.stream())) {}

ProgressReport::~ProgressReport() {
  try {
    finish();
  } catch (...) {
    return;  // a last line without memory for it is no reason to end the program
  }
}

CallbackAction ProgressReport::show(const Progress& progress) {
  if (style_ == ReportStyle::silent) return CallbackAction::proceed;
  epoch_ = progress.loss.epoch + 1;
  epochs_ = progress.epochs;
  total_ = progress.loss.total();
  nll_ = progress.loss.nll();
  seconds_ = progress.seconds;
  expected_ = options_.open_end() && progress.expected_end && *progress.expected_end < epochs_
                  ? std::optional(std::max(*progress.expected_end, epoch_))
                  : std::nullopt;
  const bool first = first_epoch_ < 0;
  if (first) {
    first_epoch_ = epoch_ - 1;
    first_seconds_ = printed_seconds_ = 0;
  }
  const double interval = style_ == ReportStyle::bar ? bar_interval : options_.line_interval();
  if (seconds_ - printed_seconds_ >= interval || (first && style_ == ReportStyle::bar)) print();
  if (epoch_ == epochs_) finish();  // what is said of the whole fit gets lines of its own
  return CallbackAction::proceed;
}

std::string ProgressReport::text(std::int64_t width) const {
  const double rate = static_cast<double>(epoch_ - first_epoch_) / std::max(seconds_ - first_seconds_, 1e-9);
  const auto end = expected_.value_or(epochs_);
  const bool says_nothing = options_.open_end() && !expected_;  // how far it is, nobody knows
  const auto time = says_nothing
                        ? duration(seconds_ - first_seconds_) + " so far"
                        : fmt::format("{}{} left", expected_ ? "about " : "", duration(static_cast<double>(end - epoch_) / rate));
  const auto count = !options_.open_end() ? fmt::format("{}/{}", epoch_, epochs_)
                     : expected_          ? fmt::format("{} of about {}, at most {}", epoch_, end, epochs_)
                                          : fmt::format("{} of at most {}", epoch_, epochs_);
  const auto words = fmt::format("epoch {}  loss {:.6g}  nll {:.6g}  {:.3g} steps/s  {}", count, total_, nll_, rate, time);
  if (style_ != ReportStyle::bar) return words;
  const auto cells = std::min(widest_bar, width - static_cast<std::int64_t>(words.size()) - 4);
  if (cells < smallest_bar || says_nothing)
    return words.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(width - 1, 0)));
  return bar(static_cast<double>(epoch_) / static_cast<double>(std::max<std::int64_t>(end, 1)), cells) + words;
}

void ProgressReport::print() {
  if (style_ == ReportStyle::bar) fmt::print(options_.stream(), "\r\033[K{}", text(terminal_width(options_.stream())));
  else fmt::print(options_.stream(), "{}\n", text(usual_width));
  std::fflush(options_.stream());
  printed_seconds_ = seconds_;
  printed_epoch_ = epoch_;
}

void ProgressReport::finish() {
  if (style_ == ReportStyle::silent || first_epoch_ < 0) return;
  if (printed_epoch_ != epoch_) print();
  if (style_ == ReportStyle::bar) {
    std::fputc('\n', options_.stream());
    std::fflush(options_.stream());
  }
  first_epoch_ = -1;
}

}  // namespace mpol
