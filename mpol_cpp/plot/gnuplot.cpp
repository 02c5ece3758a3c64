#include <mpol_cpp/plot/gnuplot.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

extern char** environ;

namespace mpol::plot {
namespace {

void close_end(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

/// What a new process does with its standard streams and its signals before it starts.
class SpawnSetup {
 public:
  SpawnSetup(int input, int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    // A group of its own: an interrupt typed for this program does not tear the figure.
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// The next whole line of a text, which loses it.
std::optional<std::string> take_line(std::string& text) {
  const auto end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

std::chrono::steady_clock::time_point moment_after(double seconds) {
  const std::chrono::duration<double> span(seconds);
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(span);
}

bool says_something(const std::string& line) { return line.find_first_not_of(" \t\r^") != std::string::npos; }

std::string ending_of(int status, const std::string& last_line) {
  if (WIFSIGNALED(status)) return fmt::format("gnuplot was ended by signal {}", WTERMSIG(status));
  if (last_line.empty()) return fmt::format("gnuplot ended with {}", WEXITSTATUS(status));
  return fmt::format("gnuplot ended with {}: {}", WEXITSTATUS(status), last_line);
}

}  // namespace

std::optional<std::filesystem::path> find_gnuplot() {
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "");
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (folder.empty()) continue;
    const auto candidate = std::filesystem::path(folder) / "gnuplot";
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0)
      return std::filesystem::absolute(candidate);
  }
  return std::nullopt;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char character : text) {
    if (character == '\'') result += "''";
    else result += character == '\n' || character == '\r' ? ' ' : character;
  }
  return result + "'";
}

Gnuplot::Gnuplot(const std::filesystem::path& program) {
  // Commands go through a socket, whose writer gets an error instead of a signal when nobody reads any more.
  std::array<int, 2> commands{-1, -1}, output{-1, -1};
  const bool open =
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands.data()) == 0 && ::pipe2(output.data(), O_CLOEXEC) == 0;
  int error = open ? 0 : errno;
  if (open) {
    std::string name = program.string(), defaults = "-d";
    std::array<char*, 3> arguments{name.data(), defaults.data(), nullptr};
    const SpawnSetup setup(commands[1], output[1]);
    error = ::posix_spawn(&process_, program.c_str(), setup.actions(), setup.attributes(), arguments.data(), environ);
  }
  close_end(commands[1]);
  close_end(output[1]);
  if (error != 0) {
    close_end(commands[0]);
    close_end(output[0]);
    process_ = -1;
    throw Error(fmt::format("gnuplot cannot be started: {}", std::strerror(error)));
  }
  commands_ = commands[0];
  output_ = output[0];
}

Gnuplot::~Gnuplot() { end(); }

int Gnuplot::end() {
  close_end(commands_);
  close_end(output_);
  int status = 0;
  if (process_ < 0) return status;
  ::kill(process_, SIGKILL);  // it has no time to lose on what nobody waits for; of one that ended, nothing
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

void Gnuplot::send(const std::string& commands) {
  for (std::size_t sent = 0; sent < commands.size();) {
    const auto count = ::send(commands_, commands.data() + sent, commands.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // it ended: wait_for() says how
    sent += static_cast<std::size_t>(count);
  }
}

Gnuplot::Reading Gnuplot::read_until(Moment deadline) {
  std::array<char, 4096> buffer{};
  while (true) {
    const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    pollfd waiting{output_, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count() * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Reading::late;
    const auto count = ::read(output_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Reading::closed;
    printed_.append(buffer.data(), static_cast<std::size_t>(count));
    return Reading::more;
  }
}

std::string Gnuplot::version(double seconds) {
  const std::string before = "version ";  // tells the line from warnings
  send(fmt::format("print sprintf({}, GPVAL_VERSION, GPVAL_PATCHLEVEL)\n", quoted(before + "%.1f.%s")));
  const auto deadline = moment_after(seconds);
  do {
    while (const auto printed = take_line(printed_)) {
      if (printed->starts_with(before)) return printed->substr(before.size());
    }
  } while (read_until(deadline) == Reading::more);
  return {};
}

std::optional<std::string> Gnuplot::wait_for(const std::string& line, double seconds) {
  if (process_ < 0) return "gnuplot has ended";
  const auto deadline = moment_after(seconds);
  std::string last;
  while (true) {
    while (auto printed = take_line(printed_)) {
      if (*printed == line) return std::nullopt;
      if (says_something(*printed)) last = std::move(*printed);
    }
    const auto reading = read_until(deadline);
    if (reading == Reading::late) {
      end();
      return fmt::format("gnuplot took more than {:.0f} s", seconds);
    }
    if (reading == Reading::closed) break;
  }
  if (says_something(printed_)) last = printed_;
  // It has closed its output: it ends by itself, or does nothing that would be of use.
  int status = 0;
  for (int i = 0; i < 100 && process_ > 0; ++i) {
    if (::waitpid(process_, &status, WNOHANG) == process_) process_ = -1;
    else ::usleep(1000);
  }
  if (process_ > 0) status = end();
  else end();
  return ending_of(status, last);
}

}  // namespace mpol::plot
