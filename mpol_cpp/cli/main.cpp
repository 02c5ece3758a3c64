// The program: sets what LibTorch's OpenMP runtime reads when it is loaded, then loads everything else.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argument_count, char** argument_values) {
  // Threads that spin long while they wait starve other programs on a shared machine, and are starved by them; threads that
  // do not spin at all are woken late, which triples the time of a step on a small image.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", 0);
  void* library = dlopen(MPOL_CLI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "mpol_main");
  if (symbol == nullptr) {
    std::fprintf(stderr, "mpol: cannot load its libraries: %s; install it anew\n", dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(symbol)(argument_count, argument_values);
}
