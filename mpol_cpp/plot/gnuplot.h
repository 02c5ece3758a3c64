#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace mpol::plot {

/// The gnuplot on PATH, if there is one that can be executed.
std::optional<std::filesystem::path> find_gnuplot();

/// A gnuplot text that means exactly these characters.
std::string quoted(const std::string& text);

/// A running gnuplot that takes commands while the caller goes on. It is started without a shell and without the user's own
/// settings, and ends with its object.
class Gnuplot {
 public:
  /// @throws Error when the program cannot be started
  explicit Gnuplot(const std::filesystem::path& program);
  ~Gnuplot();
  Gnuplot(const Gnuplot&) = delete;
  Gnuplot& operator=(const Gnuplot&) = delete;

  /// Hands over commands; what becomes of them shows in what it prints.
  void send(const std::string& commands);

  /// Its version, "5.4.4"; empty when it does not say it within so many seconds.
  std::string version(double seconds);

  /// Waits until it has printed a line.
  /// @param seconds  to wait at most
  /// @return nothing, or why the line will not come: exit code, signal or time, with the last line that it printed
  std::optional<std::string> wait_for(const std::string& line, double seconds);

 private:
  using Moment = std::chrono::steady_clock::time_point;
  /// What waiting for more of what it prints came to.
  enum class Reading { more, closed, late };

  /// Waits until it has printed something, which then is in `printed_`, or has closed its output.
  Reading read_until(Moment deadline);
  /// Ends the process. @return its status, as waitpid has it
  int end();

  pid_t process_ = -1;
  int commands_ = -1, output_ = -1;  // ends of the pipes
  std::string printed_;              // and not looked at
};

}  // namespace mpol::plot
