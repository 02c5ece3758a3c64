// Loaded before the C library (LD_PRELOAD), it counts what a program does to the files below one folder, call by call, and ends
// the program at one of these calls, or lets the calls from there on fail.
//
//   MPOL_FAULT_FOLDER  the folder, absolute
//   MPOL_FAULT_AT      the number of the call, from 1; none: calls are only counted
//   MPOL_FAULT_ACTION  kill: SIGKILL in the middle of a write, or before another call; full: no room from this call on;
//                      once: this one call fails
//   MPOL_FAULT_LOCK    set: the file system knows no locks
//   MPOL_FAULT_COUNT   a file for the number of calls, written when the program ends by itself
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int most_descriptors = 4096;

enum class Action { none, kill, full, once };
enum class Call { needs_room, other };

std::atomic<bool> watched[most_descriptors];
std::atomic<long> calls = 0;
char folder[4096] = "";
char count_file[4096] = "";
long fault_at = 0;
Action action = Action::none;

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_below(const char* path) {
  const auto length = strlen(folder);
  return path != nullptr && length > 0 && strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool is_watched(int descriptor) { return descriptor >= 0 && descriptor < most_descriptors && watched[descriptor]; }

bool is_below(int at, const char* path) { return is_below(path) || (path != nullptr && path[0] != '/' && is_watched(at)); }

void watch(int descriptor, bool below) {
  if (descriptor >= 0 && descriptor < most_descriptors) watched[descriptor] = below;
}

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(99);
}

/// Counts a call; true when it is to fail. The program may end here.
bool fails(Call call) {
  const long number = ++calls;
  if (fault_at == 0) return false;
  if (action == Action::kill && number == fault_at) die();
  const bool now = action == Action::once ? number == fault_at : action == Action::full && number >= fault_at;
  if (!now || (call == Call::other && action == Action::full)) return false;
  errno = action == Action::once ? EIO : ENOSPC;
  return true;
}

/// True when the next call that is counted is the one that kills.
bool is_last() { return action == Action::kill && calls + 1 == fault_at; }

void set_up() {
  static const bool done = [] {
    unsetenv("LD_PRELOAD");  // not for programs that this one starts
    const auto copy = [](char* to, const char* name) {
      const char* value = getenv(name);
      if (value != nullptr) strncpy(to, value, sizeof(folder) - 1);
    };
    copy(folder, "MPOL_FAULT_FOLDER");
    copy(count_file, "MPOL_FAULT_COUNT");
    if (const char* at = getenv("MPOL_FAULT_AT")) fault_at = atol(at);
    const char* name = getenv("MPOL_FAULT_ACTION");
    const auto is = [name](const char* other) { return name != nullptr && strcmp(name, other) == 0; };
    action = is("kill") ? Action::kill : is("full") ? Action::full : is("once") ? Action::once : Action::none;
    return true;
  }();
  static_cast<void>(done);
}

__attribute__((constructor)) void begin() { set_up(); }

__attribute__((destructor)) void end() {
  if (count_file[0] == '\0') return;
  folder[0] = '\0';
  if (FILE* file = fopen(count_file, "w")) {
    fprintf(file, "%ld\n", calls.load());
    fclose(file);
  }
}

template <typename Open>
int opened(bool below, int flags, const Open& open) {
  if (below && (flags & O_CREAT) != 0 && fails(Call::needs_room)) return -1;
  const int descriptor = open();
  watch(descriptor, below);
  return descriptor;
}

mode_t mode_in(int flags, va_list arguments) { return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; }

}  // namespace

extern "C" {

#define MPOL_OPEN(name)                                                            \
  int name(const char* path, int flags, ...) {                                     \
    va_list arguments;                                                             \
    va_start(arguments, flags);                                                    \
    const auto mode = mode_in(flags, arguments);                                   \
    va_end(arguments);                                                             \
    static const auto real = next<int (*)(const char*, int, ...)>(#name);          \
    return opened(is_below(path), flags, [&] { return real(path, flags, mode); }); \
  }
MPOL_OPEN(open)
MPOL_OPEN(open64)

#define MPOL_OPENAT(name)                                                                  \
  int name(int at, const char* path, int flags, ...) {                                     \
    va_list arguments;                                                                     \
    va_start(arguments, flags);                                                            \
    const auto mode = mode_in(flags, arguments);                                           \
    va_end(arguments);                                                                     \
    static const auto real = next<int (*)(int, const char*, int, ...)>(#name);             \
    return opened(is_below(at, path), flags, [&] { return real(at, path, flags, mode); }); \
  }
MPOL_OPENAT(openat)
MPOL_OPENAT(openat64)

int close(int descriptor) {
  watch(descriptor, false);
  static const auto real = next<int (*)(int)>("close");
  return real(descriptor);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_watched(descriptor)) {
    if (is_last()) real(descriptor, bytes, count / 2);
    if (fails(Call::needs_room)) return -1;
  }
  return real(descriptor, bytes, count);
}

ssize_t writev(int descriptor, const struct iovec* vectors, int count) {
  static const auto real = next<ssize_t (*)(int, const struct iovec*, int)>("writev");
  if (is_watched(descriptor)) {
    if (is_last()) real(descriptor, vectors, count / 2);
    if (fails(Call::needs_room)) return -1;
  }
  return real(descriptor, vectors, count);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if ((is_below(from) || is_below(to)) && fails(Call::other)) return -1;
  return real(from, to);
}

int link(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("link");
  if (is_below(to) && fails(Call::needs_room)) return -1;
  return real(from, to);
}

int unlink(const char* path) noexcept {
  static const auto real = next<int (*)(const char*)>("unlink");
  if (is_below(path) && fails(Call::other)) return -1;
  return real(path);
}

int remove(const char* path) noexcept {
  static const auto real = next<int (*)(const char*)>("remove");
  if (is_below(path) && fails(Call::other)) return -1;
  return real(path);
}

int rmdir(const char* path) noexcept {
  static const auto real = next<int (*)(const char*)>("rmdir");
  if (is_below(path) && fails(Call::other)) return -1;
  return real(path);
}

int unlinkat(int at, const char* path, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  if (is_below(at, path) && fails(Call::other)) return -1;
  return real(at, path, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  if (is_below(path) && fails(Call::needs_room)) return -1;
  return real(path, mode);
}

int flock(int descriptor, int operation) noexcept {
  static const auto real = next<int (*)(int, int)>("flock");
  if (getenv("MPOL_FAULT_LOCK") == nullptr) return real(descriptor, operation);
  errno = ENOLCK;
  return -1;
}

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (is_watched(descriptor) && fails(Call::needs_room)) return -1;
  return real(descriptor);
}

}  // extern "C"
