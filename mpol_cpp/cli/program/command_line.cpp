#include <mpol_cpp/cli/program/command_line.h>

namespace mpol::cli {
namespace {

std::string& noted_call() {
  static std::string call = "mpol";
  return call;
}

std::string shell_word(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

void note_command_line(const std::vector<std::string>& arguments) {
  noted_call() = "mpol";
  for (const auto& argument : arguments) noted_call() += " " + shell_word(argument);
}

std::string command_line() { return noted_call(); }

}  // namespace mpol::cli
