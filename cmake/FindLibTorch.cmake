# Finds LibTorch, the C++ side of PyTorch, and defines the target LibTorch::LibTorch.
#
# Looked at in this order; the first that fits is taken:
#   1. Torch_DIR and CMAKE_PREFIX_PATH (variables or environment): a LibTorch archive or the torch folder of a wheel
#   2. LibTorch_HINTS: folders that the including project names (a bundled copy)
#   3. the torch package of the active Python
#   4. LibTorch_FALLBACKS: folders that the including project names (what scripts/get_libtorch made)
# A candidate fits when its version is at least the one asked for, and it was built with the C++11 ABI of libstdc++.
#
# PyTorch's own TorchConfig.cmake is not used: it demands a CUDA toolkit even for a program that never touches CUDA, and
# its targets carry absolute paths into whatever links them.
#
# Result:
#   LibTorch_FOUND, LibTorch_VERSION, LibTorch_ROOT, LibTorch_LIBRARY_DIR
#   LibTorch_CUDA_FOUND   the CUDA libraries are there too, with everything they link
#   LibTorch::LibTorch    headers, c10, torch_cpu; with COMPONENTS CUDA also c10_cuda and torch_cuda
#   LibTorch::cudart      the CUDA runtime that torch_cuda loads, where it lies beside it; with COMPONENTS CUDA
#   LibTorch::cufft       its cuFFT, likewise
#   LibTorch::OpenMP      the OpenMP runtime that LibTorch itself loads, so that a process has only one
include_guard(GLOBAL)

# The version in a LibTorch root, or empty.
function(_libtorch_version root result)
  set(${result} "" PARENT_SCOPE)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    set(path "${root}/include/${header}")
    if(EXISTS "${path}")
      file(STRINGS "${path}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" version "${lines}")
      if(version MATCHES "^[0-9]+\\.[0-9]+\\.[0-9]+$")
        set(${result} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# Why a LibTorch root does not fit, or empty.
function(_libtorch_refusal root result)
  set(${result} "" PARENT_SCOPE)
  foreach(file include/ATen/ATen.h lib/libtorch_cpu.so lib/libc10.so)
    if(NOT EXISTS "${root}/${file}")
      set(${result} "${file} is missing" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  _libtorch_version("${root}" version)
  if(NOT version)
    set(${result} "its version cannot be read" PARENT_SCOPE)
    return()
  endif()
  if(LibTorch_FIND_VERSION AND version VERSION_LESS LibTorch_FIND_VERSION)
    set(${result} "it is version ${version}, at least ${LibTorch_FIND_VERSION} is needed" PARENT_SCOPE)
    return()
  endif()
  if(LibTorch_FIND_VERSION_EXACT AND NOT version VERSION_EQUAL LibTorch_FIND_VERSION)
    set(${result} "it is version ${version}, exactly ${LibTorch_FIND_VERSION} is needed" PARENT_SCOPE)
    return()
  endif()
  # Names with std::string tell the ABI, whatever the build files claim.
  file(STRINGS "${root}/lib/libc10.so" cxx11_names LIMIT_COUNT 1 REGEX "_ZN3c10.*NSt7__cxx1112basic_string")
  if(NOT cxx11_names)
    set(${result} "it was built with the ABI of before C++11" PARENT_SCOPE)
    return()
  endif()
  if(LibTorch_FIND_REQUIRED_CUDA)
    _libtorch_cuda_is_complete("${root}" complete)
    if(NOT complete)
      set(${result} "its CUDA libraries, or some that they link, are missing" PARENT_SCOPE)
      return()
    endif()
  endif()
endfunction()

# The LibTorch root that a folder may mean: the root itself, one that holds it, or its CMake folder.
function(_libtorch_root_of folder result)
  set(${result} "" PARENT_SCOPE)
  foreach(root "${folder}" "${folder}/../../.." "${folder}/torch" "${folder}/libtorch")
    if(EXISTS "${root}/lib/libtorch_cpu.so")
      file(REAL_PATH "${root}" root)
      set(${result} "${root}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# The torch package of the Python that is active here, or empty; torch itself is not imported, which would take seconds.
function(_libtorch_of_python result)
  set(${result} "" PARENT_SCOPE)
  find_program(_libtorch_python NAMES python3 python NO_CACHE)
  if(_libtorch_python)
    execute_process(
      COMMAND "${_libtorch_python}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(${result} "${folder}" PARENT_SCOPE)
  endif()
endfunction()

function(_libtorch_choose)
  set(report "")
  set(explicit ${Torch_DIR} $ENV{Torch_DIR})
  _libtorch_of_python(of_python)
  string(REPLACE ":" ";" environment_prefixes "$ENV{CMAKE_PREFIX_PATH}")
  foreach(
    candidate IN LISTS explicit CMAKE_PREFIX_PATH environment_prefixes LibTorch_HINTS of_python LibTorch_FALLBACKS)
    _libtorch_root_of("${candidate}" root)
    if(NOT root)
      if(candidate IN_LIST explicit)
        list(APPEND report "Torch_DIR ${candidate}: no lib/libtorch_cpu.so there")
      endif()
    else()
      _libtorch_refusal("${root}" refusal)
      if(NOT refusal)
        set(LibTorch_ROOT "${root}" PARENT_SCOPE)
        return()
      endif()
      list(APPEND report "${root}: ${refusal}")
    endif()
    if(candidate IN_LIST explicit)
      break() # what was asked for by name is not replaced by something else
    endif()
  endforeach()
  set(LibTorch_ROOT "" PARENT_SCOPE)
  set(_libtorch_report "${report}" PARENT_SCOPE)
endfunction()

# Whether everything that libtorch_cuda.so links can be loaded from where it lies.
function(_libtorch_cuda_is_complete root result)
  set(${result} FALSE PARENT_SCOPE)
  if(EXISTS "${root}/lib/libtorch_cuda.so")
    execute_process(COMMAND ldd "${root}/lib/libtorch_cuda.so" OUTPUT_VARIABLE libraries ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0 AND NOT libraries MATCHES "not found")
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(_libtorch_library name)
  if(NOT TARGET LibTorch::${name})
    add_library(LibTorch::${name} SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::${name} PROPERTIES IMPORTED_LOCATION "${LibTorch_ROOT}/lib/lib${name}.so")
  endif()
endfunction()

_libtorch_choose()
set(LibTorch_VERSION "")
set(LibTorch_CUDA_FOUND FALSE)
if(LibTorch_ROOT)
  _libtorch_version("${LibTorch_ROOT}" LibTorch_VERSION)
  set(LibTorch_LIBRARY_DIR "${LibTorch_ROOT}/lib")
  _libtorch_cuda_is_complete("${LibTorch_ROOT}" LibTorch_CUDA_FOUND)
endif()

include(FindPackageHandleStandardArgs)
string(REPLACE ";" "\n    " _libtorch_report "${_libtorch_report}")
if(_libtorch_report)
  set(_libtorch_report "\n  What was found does not fit:\n    ${_libtorch_report}")
endif()
if(NOT LibTorch_ROOT)
  set(LibTorch_NOT_FOUND_MESSAGE "${_libtorch_report}\n  ${LibTorch_REMEDY}")
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "No LibTorch ${LibTorch_FIND_VERSION} was found.${LibTorch_NOT_FOUND_MESSAGE}")
  endif()
endif()
find_package_handle_standard_args(
  LibTorch
  REQUIRED_VARS LibTorch_ROOT
  VERSION_VAR LibTorch_VERSION
  HANDLE_COMPONENTS)

if(LibTorch_FOUND AND NOT CMAKE_SCRIPT_MODE_FILE AND NOT TARGET LibTorch::LibTorch) # a script has no targets
  _libtorch_library(c10)
  _libtorch_library(torch_cpu)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED GLOBAL)
  set_target_properties(
    LibTorch::LibTorch
    PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_ROOT}/include;${LibTorch_ROOT}/include/torch/csrc/api/include"
      INTERFACE_LINK_LIBRARIES "LibTorch::torch_cpu;LibTorch::c10"
      # The libraries register their kernels when they are loaded, so they stay even if no symbol of theirs is named;
      # and what they link in turn is found by their own RPATH, not by the linker.
      INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed;LINKER:--allow-shlib-undefined"
      INTERFACE_COMPILE_FEATURES cxx_std_20)
  if("CUDA" IN_LIST LibTorch_FIND_COMPONENTS AND LibTorch_CUDA_FOUND)
    _libtorch_library(c10_cuda)
    _libtorch_library(torch_cuda)
    set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_LINK_LIBRARIES LibTorch::torch_cuda LibTorch::c10_cuda)
    foreach(library cudart cufft)
      file(GLOB _libtorch_found "${LibTorch_ROOT}/lib/lib${library}[.-]*so*" "${LibTorch_ROOT}/../nvidia/cu*/lib/lib${library}.so.*")
      if(_libtorch_found)
        list(GET _libtorch_found 0 _libtorch_found)
        file(REAL_PATH "${_libtorch_found}" _libtorch_found)
        add_library(LibTorch::${library} SHARED IMPORTED GLOBAL)
        set_target_properties(LibTorch::${library} PROPERTIES IMPORTED_LOCATION "${_libtorch_found}")
      endif()
    endforeach()
  endif()

  file(GLOB _libtorch_openmp "${LibTorch_ROOT}/lib/libgomp*.so*")
  if(_libtorch_openmp)
    list(GET _libtorch_openmp 0 _libtorch_openmp)
    add_library(LibTorch::OpenMP SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::OpenMP PROPERTIES IMPORTED_LOCATION "${_libtorch_openmp}")
  else()
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    add_library(LibTorch::OpenMP INTERFACE IMPORTED GLOBAL)
    target_link_libraries(LibTorch::OpenMP INTERFACE OpenMP::OpenMP_CXX)
  endif()
endif()
