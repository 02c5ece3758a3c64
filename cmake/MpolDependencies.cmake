# Everything that mpol_cpp needs from elsewhere.

set(MPOL_LIBTORCH_VERSION 2.11.0)

# ---- LibTorch
set(LibTorch_FALLBACKS "${PROJECT_SOURCE_DIR}/build/libtorch/torch" "${CMAKE_BINARY_DIR}/libtorch/torch")
set(LibTorch_REMEDY
    "Get the one that mpol_cpp is tested with by\n    scripts/get_libtorch\n  or name your own with -DTorch_DIR=FOLDER (the folder that holds include/ and lib/).")
find_package(LibTorch ${MPOL_LIBTORCH_VERSION} REQUIRED)
message(STATUS "LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT}")

# ---- fmt, header-only everywhere: LibTorch carries one of its own, which comes first among the include folders
add_library(mpol_fmt INTERFACE)
target_compile_definitions(mpol_fmt INTERFACE FMT_HEADER_ONLY=1)
if(NOT EXISTS "${LibTorch_ROOT}/include/fmt/format.h")
  find_package(fmt REQUIRED)
  target_link_libraries(mpol_fmt INTERFACE fmt::fmt-header-only)
endif()

# ---- the rest, header-only but for cfitsio, libzip and libpng
find_package(nlohmann_json 3.9 REQUIRED)
if(MPOL_BUILD_IO)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(cfitsio REQUIRED IMPORTED_TARGET cfitsio)
  pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
  pkg_check_modules(libpng REQUIRED IMPORTED_TARGET libpng)
endif()
if(MPOL_BUILD_CLI)
  find_package(CLI11 REQUIRED)
  find_path(MPOL_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
endif()
if(MPOL_BUILD_TESTS)
  find_package(Catch2 REQUIRED)
endif()
