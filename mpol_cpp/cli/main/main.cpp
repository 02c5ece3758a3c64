// The program: sets what LibTorch's OpenMP runtime reads when it is loaded, then loads everything else.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argument_count, char** argument_values) {
  // LibTorch's threads, which its own operations share: while they spin they starve other programs on a shared machine, and are
  // starved by them; where they sleep at once, their wakings take as long as the work. Our kernels have threads of their own.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", 0);
  void* library = dlopen(MPOL_CLI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "mpol_main");
  if (symbol == nullptr) {
    std::fprintf(stderr, "mpol: cannot load its libraries: %s; install it anew\n", dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(symbol)(argument_count, argument_values);
}
