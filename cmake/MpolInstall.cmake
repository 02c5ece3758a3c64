# cmake --install: libraries, headers, the program, and what find_package(mpol_cpp) reads; nothing of it names a folder of
# this machine, but that the installed libraries look for LibTorch where it was found, unless it is installed beside them.
# The component `runtime` is what users of the program need, `development` the rest; without --component both are installed.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/mpol_cpp")
set(bundle "${CMAKE_INSTALL_LIBDIR}/mpol_cpp/libtorch")

set_target_properties(mpol_fmt PROPERTIES EXPORT_NAME fmt)
set(targets mpol mpol_fmt)
set(programs "")
if(TARGET mpol_io)
  list(APPEND targets mpol_io)
endif()
if(TARGET mpol_cli)
  set(programs mpol_cli mpol_program)
endif()

set(rpath_libraries "$ORIGIN")
if(MPOL_BUNDLE_LIBTORCH)
  list(APPEND rpath_libraries "$ORIGIN/mpol_cpp/libtorch/torch/lib")
else()
  list(APPEND rpath_libraries "${LibTorch_LIBRARY_DIR}")
endif()
foreach(target IN LISTS targets programs)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${rpath_libraries}")
  endif()
endforeach()

# The public headers, and no others.
mpol_public_headers(headers mpol_cpp/mpol.h)
target_sources(mpol PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
if(TARGET mpol_io)
  mpol_public_headers(headers_of_io mpol_cpp/io.h)
  list(REMOVE_ITEM headers_of_io ${headers})
  target_sources(mpol_io PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers_of_io})
endif()

install(TARGETS ${targets} EXPORT mpol_cpp
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
if(TARGET mpol_mpi)
  # A component of its own: packages of the runtime need no MPI.
  set_target_properties(mpol_mpi PROPERTIES INSTALL_RPATH "${rpath_libraries}")
  install(TARGETS mpol_mpi LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT mpi)
endif()
if(programs)
  install(TARGETS ${programs}
          RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development)
endif()
if(TARGET mpol_program)
  set(pages "${PROJECT_BINARY_DIR}/pages")
  install(CODE "execute_process(
    COMMAND \"${CMAKE_COMMAND}\" \"-Dprogram=$<TARGET_FILE:mpol_program>\" \"-Dfolder=${pages}\" -P \"${PROJECT_SOURCE_DIR}/cmake/WritePages.cmake\"
    RESULT_VARIABLE pages_code)
  if(pages_code)
    message(FATAL_ERROR \"manual pages and completions could not be written\")
  endif()" COMPONENT runtime)
  install(DIRECTORY "${pages}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT runtime)
  install(DIRECTORY "${pages}/completions/bash/" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions"
          COMPONENT runtime)
  install(DIRECTORY "${pages}/completions/zsh/" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions" COMPONENT runtime)
  install(DIRECTORY "${pages}/completions/fish/" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d"
          COMPONENT runtime)
endif()
install(EXPORT mpol_cpp FILE mpol_cppTargets.cmake NAMESPACE mpol:: DESTINATION "${package}" COMPONENT development)

install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)

configure_package_config_file(cmake/mpol_cppConfig.cmake.in "${PROJECT_BINARY_DIR}/mpol_cppConfig.cmake"
                              INSTALL_DESTINATION "${package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mpol_cppConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/mpol_cppConfig.cmake" "${PROJECT_BINARY_DIR}/mpol_cppConfigVersion.cmake"
              cmake/FindLibTorch.cmake DESTINATION "${package}" COMPONENT development)

if(MPOL_BUNDLE_LIBTORCH)
  install(DIRECTORY "${LibTorch_ROOT}/include" DESTINATION "${bundle}/torch" COMPONENT development)
  # The layout of the wheels is kept: the libraries find one another by it.
  if(MPOL_WITH_CUDA)
    install(DIRECTORY "${LibTorch_ROOT}/lib" DESTINATION "${bundle}/torch" USE_SOURCE_PERMISSIONS COMPONENT runtime
            FILES_MATCHING PATTERN "lib*.so*" PATTERN "libtorch_python.so" EXCLUDE)
  else()
    install(DIRECTORY "${LibTorch_ROOT}/lib" DESTINATION "${bundle}/torch" USE_SOURCE_PERMISSIONS COMPONENT runtime
            FILES_MATCHING PATTERN "libc10.so" PATTERN "libtorch_cpu.so" PATTERN "libgomp*.so*" PATTERN "libshm*" EXCLUDE)
    # The wheel's libraries carry the names of all their functions, a fifth of their size; CMake strips targets alone.
    install(CODE "if(CMAKE_INSTALL_DO_STRIP)
      file(GLOB libraries \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${bundle}/torch/lib/lib*.so*\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \${libraries} COMMAND_ERROR_IS_FATAL ANY)
    endif()" COMPONENT runtime)
  endif()
  if(IS_DIRECTORY "${LibTorch_ROOT}/../nvidia")
    if(MPOL_WITH_CUDA)
      install(DIRECTORY "${LibTorch_ROOT}/../nvidia" DESTINATION "${bundle}" COMPONENT runtime
              FILES_MATCHING PATTERN "*.so*")
    else()
      install(DIRECTORY "${LibTorch_ROOT}/../nvidia" DESTINATION "${bundle}" COMPONENT runtime
              FILES_MATCHING REGEX "/lib(cudart|cupti)\\.so[^/]*$" PATTERN "include" EXCLUDE)
    endif()
  endif()
  file(GLOB licences "${LibTorch_ROOT}/../torch-*.dist-info/licenses")
  if(licences)
    install(DIRECTORY ${licences} DESTINATION "${bundle}" COMPONENT runtime)
  endif()
  file(GLOB licences "${LibTorch_ROOT}/../nvidia_*.dist-info/licenses")
  foreach(folder IN LISTS licences)
    string(REGEX REPLACE ".*/(nvidia_[a-z_]+)-[^/]*/licenses" "\\1" name "${folder}")
    install(DIRECTORY "${folder}/" DESTINATION "${bundle}/licenses/${name}" COMPONENT runtime)
  endforeach()
endif()

include(MpolPackage)
