#include "program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <mpol_cpp/cli/program.h>

namespace mpol::testing {
namespace {

std::filesystem::path new_folder(const std::string& stem) {
  std::string name = (std::filesystem::temp_directory_path() / (stem + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a scratch folder");
  return name;
}

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment, const RunOptions& options,
                         const std::string& out, const std::string& err) {
  const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(out_file, 1);
  ::dup2(err_file, 2);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(125);
  if (options.largest_file_bytes) {
    const rlimit limit = {*options.largest_file_bytes, *options.largest_file_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  for (const int signal : options.ignored_signals) std::signal(signal, SIG_IGN);
  ::execve(arguments.front(), arguments.data(), environment.data());
  ::_exit(126);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

std::vector<std::string> Outcome::error_lines() const {
  std::vector<std::string> lines;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);) {
    if (line.find("warning: the field of ") == std::string::npos) lines.push_back(line);
  }
  return lines;
}

Program::Program(const std::vector<std::string>& arguments, const RunOptions& options)
    : folder_(new_folder("mpol-output-")), deadline_(std::chrono::steady_clock::now() + options.timeout) {
  std::vector<std::string> words = options.launcher;
  words.emplace_back(MPOL_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = options.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const auto argument_list = pointers(words), environment = pointers(variables);
  const std::string out = folder_ / "out", err = folder_ / "err";
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become(argument_list, environment, options, out, err);
}

Program::~Program() {
  if (!outcome_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove_all(folder_);
}

void Program::send(int signal) const { ::kill(pid_, signal); }

bool Program::running() {
  if (outcome_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return true;
  collect(status);
  return false;
}

Outcome Program::wait() {
  while (running()) {
    if (std::chrono::steady_clock::now() > deadline_) send(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return *outcome_;
}

void Program::collect(int status) {
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = read_text(folder_ / "out");
  outcome.err = read_text(folder_ / "err");
  outcome_ = std::move(outcome);
}

Outcome run_mpol(const std::vector<std::string>& arguments, const RunOptions& options) {
  return Program(arguments, options).wait();
}

namespace {

/// Sends what is written to a stream's descriptor into a file while it lives.
class Redirected {
 public:
  Redirected(std::FILE* stream, const std::filesystem::path& file) : stream_(stream), before_(::dup(::fileno(stream))) {
    std::fflush(stream_);
    const int target = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (before_ < 0 || target < 0) throw std::runtime_error("cannot redirect output to " + file.string());
    ::dup2(target, ::fileno(stream_));
    ::close(target);
  }
  ~Redirected() {
    std::fflush(stream_);
    ::dup2(before_, ::fileno(stream_));
    ::close(before_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  std::FILE* stream_;
  int before_;
};

}  // namespace

Outcome run_mpol_here(const std::vector<std::string>& arguments) {
  const Scratch folder;
  Outcome outcome;
  {
    const Redirected out(stdout, folder / "out"), err(stderr, folder / "err");
    outcome.exit_code = cli::run_program(arguments);
  }
  outcome.out = read_text(folder / "out");
  outcome.err = read_text(folder / "err");
  return outcome;
}

Scratch::Scratch() : path_(new_folder("mpol tëst ")) {}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace mpol::testing
