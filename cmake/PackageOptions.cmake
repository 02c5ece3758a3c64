# Read by cpack once for each kind of package, before it installs the build for it.
if(NOT CPACK_MPOL_BUNDLE_LIBTORCH)
  message(FATAL_ERROR "This build has no LibTorch to pack: configure it with `cmake --preset package`, or -DMPOL_BUNDLE_LIBTORCH=ON.")
endif()
if(NOT CPACK_GENERATOR STREQUAL "DEB") # an archive of some compression
  set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/AddSystemLibraries.cmake")
endif()
