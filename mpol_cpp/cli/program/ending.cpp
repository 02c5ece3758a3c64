#include <mpol_cpp/cli/program/ending.h>

#include <cstdio>
#include <filesystem>
#include <new>
#include <utility>

#include <c10/util/Exception.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/distributed/communicator.h>

namespace mpol::cli {
namespace {

Ending failed(const std::string& verb, const std::string& message, int code) {
  std::string line = fmt::format("mpol{}{}: {}", verb.empty() ? "" : " ", verb, message);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return {code, std::move(line), false};
}

/// The words for a verb that did not say itself what it needed.
std::string out_of_memory() {
  const auto available = available_memory();
  return error_text("out of memory", "more was needed than there was",
                    available ? fmt::format("{} are free without this run", memory_words(*available)) : "the system gave no more",
                    "smaller --npix, fewer --channels or --dtype float32 need less");
}

}  // namespace

std::string error_text(const std::string& what, const std::string& value, const std::string& limit, const std::string& remedy) {
  std::string text = what + ": " + value + "; " + limit;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

int run_to_exit_code(const std::string& verb, const std::function<int()>& action) {
  const auto ending = ending_of(verb, action);
  if (ending.line.empty()) return ending.code;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", ending.line.c_str());
  return ending.code;
}

Ending ending_of(const std::string& verb, const std::function<int()>& action) {
  try {
    return {action(), {}, false};
  } catch (const Interrupted& end) {
    return {128 + end.signal(), {}, false};
  } catch (const RankError& error) {
    auto ending = failed(verb, error.what(), exit_failed);
    ending.is_consequence = true;
    return ending;
  } catch (const UsageError& error) {
    return failed(verb, error.what(), exit_usage);
  } catch (const ValueError& error) {
    return failed(verb, error.what(), exit_usage);
  } catch (const DivergedError& error) {
    return failed(verb, error.what(), exit_diverged);
  } catch (const Error& error) {
    return failed(verb, error.what(), exit_failed);
  } catch (const std::bad_alloc&) {
    return failed(verb, out_of_memory(), exit_failed);
  } catch (const c10::OutOfMemoryError&) {
    return failed(verb, out_of_memory(), exit_failed);
  } catch (const std::filesystem::filesystem_error& error) {
    return failed(verb, error.path1().string() + ": " + error.code().message(), exit_failed);
  } catch (const c10::Error& error) {
    return failed(verb, error.what_without_backtrace(), exit_failed);
  } catch (const std::exception& error) {
    return failed(verb, error.what(), exit_failed);
  }
}

}  // namespace mpol::cli
