# Shared by quickstart, run_tests and .ci/run: sourced, not run. Sets root, and works from any folder.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# What is printed between steps; a step's own output follows its name.
say() { printf '\n== %s\n' "$*"; }
fail() {
  printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# stage NAME COMMAND…: runs it, prints how long it took; ends the program when it fails.
stage() {
  local name=$1 started=$SECONDS
  shift
  say "$name"
  # Not "if stage": that would switch off set -e inside the functions that stages are.
  "$@"
  printf '== %s: %d s\n' "$name" "$((SECONDS - started))"
}

# As many compilers as there are cores, and memory of 2 GiB for each.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
  if ((memory < cores)); then cores=$((memory > 0 ? memory : 1)); fi
  echo "$cores"
}

# Each test uses every core, but not all the time.
tests_at_once() {
  local most
  most=$(jobs)
  echo $((most < 4 ? most : 4))
}

# Packages and LibTorch; --cuda asks for the CUDA libraries too. In CMake's own order: what Torch_DIR names in the environment is
# used as it is, then what CMAKE_PREFIX_PATH or the active Python has, where it fits; else the pinned wheel is fetched.
set_up() {
  scripts/install_packages
  local found=${Torch_DIR:-}
  if [[ -z $found ]]; then found=$(scripts/find_libtorch "$@"); fi
  if [[ -z $found ]]; then
    scripts/get_libtorch "$@"
    found=$root/build/libtorch/torch
  fi
  torch=(-DTorch_DIR="$found")
}

# configure PRESET [OPTION…]: quick when nothing changed; quiet unless it fails or warns (that FINUFFT is missing, say).
configure() {
  local preset=$1 log=build/$1.configure.log
  shift
  mkdir -p build # which is not there yet where LibTorch was found elsewhere
  cmake --preset "$preset" "${torch[@]}" "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "CMake could not configure build/$preset (its message is above). If the folder is from an older state, remove it and start again."
  }
  grep -E '^-- (LibTorch|CUDA)' "$log" || true
  sed -n '/^CMake Warning/,/^$/p' "$log"
}

build() {
  local folder=$1
  shift
  cmake --build "build/$folder" -j "$(jobs)" "$@" ||
    fail "the build in build/$folder failed; the compiler's message is above. If a compiler was killed, memory ran out: free some and start again, it goes on where it stopped."
}

# cuda_build TARGET…: the library for CUDA and what else is named, with the options of CMake in cuda_options, compiled and linked where
# nvcc is, and what they link is there. No GPU is needed for this.
cuda_options=(-DMPOL_BUILD_IO=OFF)
cuda_build() {
  if ! command -v nvcc >/dev/null; then
    echo "There is no nvcc here: not checked."
    return
  fi
  scripts/get_libtorch --cuda build/libtorch-cuda
  local torch=(-DTorch_DIR="$root/build/libtorch-cuda/torch")
  configure cuda "${cuda_options[@]}" -DMPOL_BUILD_TESTS=ON -DMPOL_BUILD_EXAMPLES=OFF -DMPOL_BUILD_BENCHMARKS=ON
  build cuda --target mpol "$@"
  scripts/kernel_table
  if ldd build/cuda/lib/libmpol.so | grep -F "not found"; then fail "the CUDA build links libraries that are not there"; fi
}
