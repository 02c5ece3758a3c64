#include <mpol_cpp/plot/gnuplot.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include <mpol_cpp/core/format.h>

extern char** environ;

namespace mpol::plot {
namespace {

/// Both ends of a pipe, closed at the end.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return ends_[0] >= 0; }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() { close_end(1); }

 private:
  void close_end(std::size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// What a new process does with its folder, its standard streams and its signals before it starts.
class SpawnSetup {
 public:
  SpawnSetup(const std::filesystem::path& folder, int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
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

/// Reads what a process writes until it closes the pipe; false when the time was up before.
bool read_until_closed(int descriptor, double timeout, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  std::array<char, 4096> buffer{};
  while (true) {
    const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    pollfd waiting{descriptor, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count() * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const auto count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (text.size() < 65536) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string last_line(const std::string& text) {
  std::istringstream stream(text);
  std::string line, last;
  while (std::getline(stream, line))
    if (line.find_first_not_of(" \t\r^") != std::string::npos) last = line;
  return last;
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

GnuplotResult run_gnuplot(const std::filesystem::path& gnuplot, const std::filesystem::path& folder, const std::string& script,
                          const std::string& definition, double timeout) {
  Pipe pipe;
  if (!pipe.open()) return {false, fmt::format("no pipe to gnuplot: {}", std::strerror(errno))};
  std::vector<std::string> words = {gnuplot.string(), "-d", "-e", definition, script};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  pid_t process = 0;
  const SpawnSetup setup(folder, pipe.writing());
  const int error = ::posix_spawn(&process, gnuplot.c_str(), setup.actions(), setup.attributes(), arguments.data(), environ);
  if (error != 0) return {false, fmt::format("gnuplot cannot be started: {}", std::strerror(error))};
  pipe.close_writing();

  std::string text;
  const bool in_time = read_until_closed(pipe.reading(), timeout, text);
  if (!in_time) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return {false, fmt::format("gnuplot took more than {:.0f} s", timeout)};
  if (WIFSIGNALED(status)) return {false, fmt::format("gnuplot was ended by signal {}", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) return {false, fmt::format("gnuplot ended with {}: {}", WEXITSTATUS(status), last_line(text))};
  return {true, {}};
}

}  // namespace mpol::plot
