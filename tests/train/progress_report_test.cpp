#include "catch.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include <mpol_cpp/train/progress_report.h>
#include <mpol_cpp/train/trainer.h>

#include "problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A FILE in memory.
class Capture {
 public:
  Capture() : stream_(std::tmpfile()) {}
  ~Capture() { std::fclose(stream_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::FILE* stream() const { return stream_; }
  std::string text() const {
    std::string text(static_cast<std::size_t>(std::ftell(stream_)), '\0');
    std::rewind(stream_);
    const auto read = std::fread(text.data(), 1, text.size(), stream_);
    text.resize(read);
    return text;
  }

 private:
  std::FILE* stream_;
};

std::string report(ProgressReportOptions options, std::int64_t epochs, std::int64_t stop_at = -1) {
  const Capture capture;
  const SmallProblem problem;
  auto model = problem.model();
  const std::vector<std::string> columns = {"total", "nll"};
  ProgressReport progress_report(options.stream(capture.stream()));
  const auto callback = progress_report.callback();
  for (std::int64_t epoch = 0; epoch < epochs && epoch != stop_at; ++epoch) {
    const EpochLoss loss{epoch, 0.3, {2.5, 1.25}};
    CHECK(callback({loss, columns, epochs, static_cast<double>(epoch + 1), *model}) == CallbackAction::proceed);
  }
  progress_report.finish();
  return capture.text();
}

}  // namespace

TEST_CASE("in a log the progress is a line every few seconds, and the last epoch", "[train][quick]") {
  const auto text = report(ProgressReportOptions().line_interval(5.0), 12);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK_THAT(text, ContainsSubstring("epoch 5/12  loss 2.5  nll 1.25  1 steps/s  7 s left") && ContainsSubstring("epoch 12/12"));
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("a fit that ends early still shows its last epoch", "[train][quick]") {
  const auto text = report(ProgressReportOptions().line_interval(100.0), 1000, 7);
  CHECK_THAT(text, StartsWith("epoch 7/1000"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("on a terminal the progress is one bar that is rewritten and ended", "[train][quick]") {
  const auto text = report(ProgressReportOptions().style(ReportStyle::bar), 4000, 3000);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.back() == '\n');
  CHECK_THAT(text, ContainsSubstring("\r") && ContainsSubstring("#") && ContainsSubstring("epoch 3000/4000") &&
                       ContainsSubstring("16:40 left"));
}

TEST_CASE("of a fit whose end nobody knows yet, the time that it has taken is said", "[train][quick]") {
  for (const auto style : {ReportStyle::lines, ReportStyle::bar}) {
    const auto text = report(ProgressReportOptions().style(style).open_end(true), 4000, 3000);
    CHECK_THAT(text, ContainsSubstring("epoch 3000 of at most 4000  loss 2.5") && !ContainsSubstring("#"));
    if (style == ReportStyle::lines) CHECK_THAT(text, ContainsSubstring("steps/s  50:00 so far") && !ContainsSubstring("left"));
  }
}

TEST_CASE("a fit that converges says about how long that takes, and its limit", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const std::vector<std::string> columns = {"total", "nll"};
  const auto shown = [&](ReportStyle style, std::int64_t expected) {
    const Capture capture;
    ProgressReport progress_report(ProgressReportOptions().style(style).open_end(true).stream(capture.stream()));
    const EpochLoss loss{99, 0.3, {2.5, 1.25}};
    progress_report.callback()({loss, columns, 4000, 3.0, *model, expected});
    progress_report.finish();
    return capture.text();
  };
  CHECK_THAT(shown(ReportStyle::lines, 160), ContainsSubstring("epoch 100 of about 160, at most 4000  loss 2.5"));
  CHECK_THAT(shown(ReportStyle::lines, 160), ContainsSubstring("about 3:00 left"));
  CHECK_THAT(shown(ReportStyle::lines, 90), ContainsSubstring("about 0 s left"));
  CHECK_THAT(shown(ReportStyle::lines, 4000), ContainsSubstring("epoch 100 of at most 4000") && ContainsSubstring("so far"));
}

TEST_CASE("silence is silent", "[train][quick]") {
  CHECK(report(ProgressReportOptions().style(ReportStyle::silent), 10).empty());
}

TEST_CASE("a trainer feeds the report", "[train][quick]") {
  const Capture capture;
  const SmallProblem problem;
  ProgressReport progress_report(ProgressReportOptions().stream(capture.stream()));
  Trainer(problem.model(), problem.objective(), TrainOptions().epochs(3).callbacks({progress_report.callback()})).fit();
  CHECK_THAT(capture.text(), ContainsSubstring("epoch 3/3"));
}
