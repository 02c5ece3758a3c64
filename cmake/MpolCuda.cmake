# CUDA C++, where it is wanted: sets CMAKE_CUDA_ARCHITECTURES from TORCH_CUDA_ARCH_LIST (a variable, or else of the
# environment), written as PyTorch's users know it: "8.0;9.0+PTX".
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  if(NOT TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "$ENV{TORCH_CUDA_ARCH_LIST}")
  endif()
  if(NOT TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "8.0;9.0+PTX")
  endif()
  set(architectures "")
  string(REGEX REPLACE "[ ,]+" ";" list "${TORCH_CUDA_ARCH_LIST}")
  foreach(entry IN LISTS list)
    if(NOT entry MATCHES "^([0-9]+)\\.([0-9]+)(\\+PTX)?$")
      message(FATAL_ERROR "TORCH_CUDA_ARCH_LIST names ${entry}; entries look like 9.0 or 9.0+PTX")
    endif()
    list(APPEND architectures ${CMAKE_MATCH_1}${CMAKE_MATCH_2}-real)
    if(CMAKE_MATCH_3)
      list(APPEND architectures ${CMAKE_MATCH_1}${CMAKE_MATCH_2}-virtual)
    endif()
  endforeach()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "Compute capabilities to build for")
endif()

set(CMAKE_CUDA_COMPILER "${MPOL_NVCC}" CACHE FILEPATH "")
set(CMAKE_CUDA_STANDARD 17) # CMake 3.25 knows no C++20 flag for nvcc 13
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY None) # LibTorch's own, below
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
