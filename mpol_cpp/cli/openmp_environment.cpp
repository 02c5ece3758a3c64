// Threads of LibTorch's OpenMP runtime spin while they wait, which starves other programs on a shared machine. The
// runtime reads OMP_WAIT_POLICY when the loader initialises it, long before main: the one place of the program that
// runs earlier is its .preinit_array. It starts the program once more with the variable set, unless the user has
// chosen a policy.
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

constexpr std::size_t most_variables = 8192;

bool begins_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

__attribute__((no_sanitize("address", "undefined"))) void wait_passively(int, char** arguments, char** environment) {
  static char policy[] = "OMP_WAIT_POLICY=PASSIVE";
  static char* extended[most_variables + 2];
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == most_variables) return;
    if (begins_with(environment[count], "OMP_WAIT_POLICY=") || begins_with(environment[count], "GOMP_SPINCOUNT=")) return;
    extended[count] = environment[count];
  }
  extended[count] = policy;
  extended[count + 1] = nullptr;
  execve("/proc/self/exe", arguments, extended);  // returns only when it fails: then threads spin, nothing worse
}

}  // namespace

extern "C" {
__attribute__((section(".preinit_array"), used)) void (*const mpol_wait_passively)(int, char**, char**) = &wait_passively;
}
