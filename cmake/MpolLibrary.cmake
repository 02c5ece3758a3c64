# How the libraries are put together: folders, warnings, and kernels compiled for several instruction sets.

# Adds those of the given folders of mpol_cpp/ that exist; each adds its own sources to its target.
function(mpol_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS "${PROJECT_SOURCE_DIR}/mpol_cpp/${folder}/CMakeLists.txt")
      add_subdirectory("mpol_cpp/${folder}")
    endif()
  endforeach()
endfunction()

# In a unity build the files of a folder are compiled together, and those of different folders never: call it once all
# folders were added.
function(mpol_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "/mpol_cpp/([a-z]+)/[^/]+\\.cpp$")
      set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
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
            $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps in "text" + std::string that are not there (its bug 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
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

# mpol_add_isa_sources(file.cpp ... [OPTIONS flag ...])
#
# Compiles each file into mpol once per instruction set, with the macro MPOL_ISA set to portable, avx2 or avx512, which
# the file uses to name its functions. Only functions in an unnamed namespace or with MPOL_ISA in their name may be
# defined in such a file: of an inline function of the same name the linker keeps one copy, perhaps the AVX-512 one.
function(mpol_add_isa_sources)
  cmake_parse_arguments(PARSE_ARGV 0 ISA "" "" "OPTIONS")
  set(flags_portable "")
  set(flags_avx2 -mavx2 -mfma -mbmi2)
  set(flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mbmi2 -mprefer-vector-width=512)
  set(isas portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND isas avx2 avx512)
  endif()
  foreach(source IN LISTS ISA_UNPARSED_ARGUMENTS)
    cmake_path(GET source STEM stem)
    foreach(isa IN LISTS isas)
      set(object mpol_${stem}_${isa})
      add_library(${object} OBJECT "${source}")
      target_link_libraries(${object} PRIVATE LibTorch::LibTorch mpol_fmt)
      target_include_directories(${object} PRIVATE "${PROJECT_SOURCE_DIR}")
      mpol_compile_settings(${object})
      target_compile_definitions(${object} PRIVATE MPOL_ISA=${isa})
      target_compile_options(${object} PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast ${ISA_OPTIONS}
                                               ${flags_${isa}})
      if(MPOL_SANITIZE)
        # With both sanitizers GCC takes minutes for such a file.
        target_compile_options(${object} PRIVATE -O1 -fno-sanitize=undefined)
      endif()
      set_target_properties(${object} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_sources(mpol PRIVATE $<TARGET_OBJECTS:${object}>)
    endforeach()
  endforeach()
endfunction()

# Adds kernels in CUDA C++ to mpol; nothing where CUDA is off.
function(mpol_add_cuda_sources)
  if(MPOL_WITH_CUDA)
    target_sources(mpol PRIVATE ${ARGN})
  endif()
endfunction()
