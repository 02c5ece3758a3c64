#include <mpol_cpp/cli/program/stop_request.h>

#include <unistd.h>

#include <atomic>
#include <csignal>

#include <mpol_cpp/cli/program/ending.h>

namespace mpol::cli {
namespace {

std::atomic<int> requested = 0;
std::atomic<int> held = 0;  // HoldStops that live
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  if (!requested.compare_exchange_strong(none, signal) && held == 0) _exit(128 + signal);
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
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
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) handle(signal, note);
  }
  handle(SIGXFSZ, SIG_IGN);
}

HoldStop::HoldStop() { ++held; }
HoldStop::~HoldStop() { --held; }

int stop_requested() { return requested; }

void stop_if_requested() {
  if (requested != 0) throw Interrupted(requested);
}

}  // namespace mpol::cli
