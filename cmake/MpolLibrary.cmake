# How the libraries are put together: folders, warnings, and kernels compiled for several instruction sets.

# mpol_add_folders(target folder ...)
#
# Adds the sources of folders of mpol_cpp/ to a target; their names say how they are compiled:
#   *_isa.cpp               once per instruction set
#   *.cu, *_on_cuda.cpp     where CUDA is on
#   *_without_cuda.cpp      where it is off
#   *_with_casacore.cpp     where casacore is there
#   *_without_casacore.cpp  where it is not
# A folder may use only those before it and itself, which scripts/check_layers reads here. In a unity build the files of a
# top folder are compiled together, and those of different ones never.
function(mpol_add_folders target)
  foreach(folder IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/mpol_cpp/${folder}/*.cpp")
    file(GLOB kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/mpol_cpp/${folder}/*.cu")
    if(NOT sources)
      file(GLOB headers "${PROJECT_SOURCE_DIR}/mpol_cpp/${folder}/*.h")
      if(NOT headers)
        message(FATAL_ERROR "mpol_add_folders: there is nothing in mpol_cpp/${folder}; correct the list in CMakeLists.txt")
      endif()
    endif()
    set(isa_sources ${sources})
    list(FILTER isa_sources INCLUDE REGEX "_isa\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_isa\\.cpp$")
    if(MPOL_WITH_CUDA)
      list(FILTER sources EXCLUDE REGEX "_without_cuda\\.cpp$")
      list(APPEND sources ${kernels})
    else()
      list(FILTER sources EXCLUDE REGEX "_on_cuda\\.cpp$")
    endif()
    if(MPOL_CASACORE)
      list(FILTER sources EXCLUDE REGEX "_without_casacore\\.cpp$")
    else()
      list(FILTER sources EXCLUDE REGEX "_with_casacore\\.cpp$")
    endif()
    target_sources(${target} PRIVATE ${sources})
    # casacore's headers (3.5) need what C++20 took out of the standard library.
    set(casacore_sources ${sources})
    list(FILTER casacore_sources INCLUDE REGEX "_with_casacore\\.cpp$")
    set_source_files_properties(
      ${casacore_sources} TARGET_DIRECTORY ${target}
      PROPERTIES COMPILE_OPTIONS -std=c++17 SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    mpol_add_isa_sources(${isa_sources})
    string(REGEX REPLACE "/.*" "" group "${folder}")
    foreach(source IN LISTS sources)
      if(source MATCHES "\\.cpp$")
        set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
      endif()
    endforeach()
  endforeach()
endfunction()

# What all our own code is compiled with.
function(mpol_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # With Torch's headers even an empty file takes seconds (their pending templates are instantiated in each).
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MPOL_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 8)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>
            $<$<AND:$<BOOL:${MPOL_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror> # not for kernels of the CUDA compiler
            $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr> # kernels call constexpr functions, for what is known when they are compiled
            $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps in "text" + std::string that are not there (its bug 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>) # tells of GCC 10.1, nothing of ours
  endif()
  if(MPOL_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>) # false with sanitizers
  endif()
endfunction()

# For code that takes longer to optimise than it will ever run: most of a build's time is spent so.
function(mpol_optimise_lightly target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
endfunction()

# Precompiles Torch's headers, which cost more time than most of our files: once, in mpol, for everything. A file must
# still include what it uses: clang-tidy sees it without.
function(mpol_precompile target)
  if(NOT MPOL_PRECOMPILE_HEADERS)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>) # ccache asks for it
  endif()
  # What is precompiled fits only where it is used with the same options: macros and kind of position-independent code.
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")
  if(target STREQUAL "mpol")
    target_precompile_headers(mpol PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.h>")
  else()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "SHARED_LIBRARY")
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    target_precompile_headers(${target} REUSE_FROM mpol)
  endif()
endfunction()

# mpol_add_isa_sources(file.cpp ...)
#
# Compiles each file into mpol once per instruction set of MPOL_ISAS, with the macro MPOL_ISA set to portable, avx2 or avx512, which
# the file uses to name its functions. Only functions in an unnamed namespace or with MPOL_ISA in their name may be
# defined in such a file: of an inline function of the same name the linker keeps one copy, perhaps the AVX-512 one.
function(mpol_add_isa_sources)
  set(flags_portable "")
  set(flags_avx2 -mavx2 -mfma -mbmi2)
  set(flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mbmi2 -mprefer-vector-width=512)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM stem)
    foreach(isa IN LISTS MPOL_BUILT_ISAS)
      set(object mpol_${stem}_${isa})
      add_library(${object} OBJECT "${source}")
      target_link_libraries(${object} PRIVATE LibTorch::LibTorch mpol_fmt)
      target_include_directories(${object} PRIVATE "${PROJECT_SOURCE_DIR}")
      mpol_compile_settings(${object})
      target_compile_definitions(${object} PRIVATE MPOL_ISA=${isa})
      # -O3: with -O2 the nonuniform transforms take up to twice as long.
      target_compile_options(${object} PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast ${flags_${isa}})
      # Vectors may be wider than what the plain instruction set passes in registers (no function passes any), and GCC 12 sees
      # values without initialisation in its own headers.
      target_compile_options(${object} PRIVATE -Wno-psabi -Wno-maybe-uninitialized)
      if(MPOL_SANITIZE)
        # With both sanitizers GCC takes minutes for such a file.
        target_compile_options(${object} PRIVATE -O1 -fno-sanitize=undefined)
      endif()
      set_target_properties(${object} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_sources(mpol PRIVATE $<TARGET_OBJECTS:${object}>)
    endforeach()
  endforeach()
endfunction()
