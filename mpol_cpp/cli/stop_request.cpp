#include <mpol_cpp/cli/stop_request.h>

#include <unistd.h>

#include <atomic>
#include <csignal>

#include <mpol_cpp/cli/ending.h>

namespace mpol::cli {
namespace {

std::atomic<int> requested = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  if (!requested.compare_exchange_strong(none, signal)) _exit(128 + signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void watch_signals() {
  handle(SIGINT, note);
  handle(SIGTERM, note);
  handle(SIGXFSZ, SIG_IGN);
}

int stop_requested() { return requested; }

void stop_if_requested() {
  if (requested != 0) throw Interrupted(requested);
}

}  // namespace mpol::cli
