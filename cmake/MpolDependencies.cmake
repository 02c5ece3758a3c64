# Everything that mpol_cpp needs from elsewhere.

set(MPOL_LIBTORCH_VERSION 2.11.0)

# ---- LibTorch
set(LibTorch_FALLBACKS "${PROJECT_SOURCE_DIR}/build/libtorch/torch" "${CMAKE_BINARY_DIR}/libtorch/torch")
set(LibTorch_REMEDY
    "Get the one that mpol_cpp is tested with by\n    scripts/get_libtorch\n  or name your own with -DTorch_DIR=FOLDER (the folder that holds include/ and lib/).")
find_program(MPOL_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDACXX}" PATHS /usr/local/cuda/bin)
if(MPOL_CUDA STREQUAL "ON")
  if(NOT MPOL_NVCC)
    message(FATAL_ERROR "MPOL_CUDA is ON, but there is no nvcc: put it on PATH, or configure with -DMPOL_CUDA=OFF")
  endif()
  string(REPLACE "get_libtorch" "get_libtorch --cuda" LibTorch_REMEDY "${LibTorch_REMEDY}")
  find_package(LibTorch ${MPOL_LIBTORCH_VERSION} REQUIRED COMPONENTS CUDA)
else()
  find_package(LibTorch ${MPOL_LIBTORCH_VERSION} REQUIRED OPTIONAL_COMPONENTS CUDA)
endif()
message(STATUS "LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT}")

# ---- CUDA
set(MPOL_WITH_CUDA OFF)
if(MPOL_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: off, as asked")
elseif(NOT MPOL_NVCC)
  message(STATUS "CUDA: off, there is no nvcc")
elseif(NOT LibTorch_CUDA_FOUND)
  message(STATUS "CUDA: off, LibTorch's CUDA libraries are not all there (scripts/get_libtorch --cuda brings them)")
else()
  set(MPOL_WITH_CUDA ON)
  include(MpolCuda)
  message(STATUS "CUDA: on, nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()

# ---- fmt, header-only everywhere: LibTorch carries one of its own, which comes first among the include folders
add_library(mpol_fmt INTERFACE)
target_compile_definitions(mpol_fmt INTERFACE FMT_HEADER_ONLY=1)
if(NOT EXISTS "${LibTorch_ROOT}/include/fmt/format.h")
  find_package(fmt REQUIRED)
  target_link_libraries(mpol_fmt INTERFACE fmt::fmt-header-only)
endif()

# ---- the rest, header-only but for cfitsio, libzip and zlib
find_package(nlohmann_json 3.9 REQUIRED)
if(MPOL_BUILD_IO)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(cfitsio REQUIRED IMPORTED_TARGET cfitsio)
  pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
  pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
endif()
if(MPOL_BUILD_CLI)
  find_package(CLI11 REQUIRED)
  find_path(MPOL_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
endif()
if(MPOL_BUILD_TESTS)
  find_package(Catch2 REQUIRED)
  if(MPOL_BUILD_IO)
    pkg_check_modules(libpng REQUIRED IMPORTED_TARGET libpng) # they look at figures
  endif()
endif()
