# What cpack makes of a build with LibTorch inside (cmake --preset package), for machines without a compiler: a Debian package of
# the program, and an archive that needs no package at all.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT TARGET mpol_program)
  return()
endif()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/PackageOptions.cmake")
set(CPACK_MPOL_BUNDLE_LIBTORCH "${MPOL_BUNDLE_LIBTORCH}")
set(CPACK_PACKAGE_NAME mpol)
set(CPACK_PACKAGE_VENDOR "The mpol_cpp authors")
set(CPACK_PACKAGE_CONTACT "The mpol_cpp authors <mpol_cpp@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "images from the visibilities of radio interferometers")
set(CPACK_PACKAGE_DESCRIPTION
    "mpol turns visibilities (measurement sets, npz) into calibrated FITS images by regularised maximum likelihood.\n\
 LibTorch (CPU) is inside.")
set(CPACK_PACKAGE_FILE_NAME "mpol-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0) # as many as there are cores
# What users of the program need, as one package.
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};runtime;/")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Where LibTorch's libraries find one another.
file(GLOB nvidia_libraries "${LibTorch_ROOT}/../nvidia/*/lib")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}" "${LibTorch_LIBRARY_DIR}" ${nvidia_libraries})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gnuplot-nox)
include(CPack)
