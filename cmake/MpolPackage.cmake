# What cpack makes of an install: a Debian package of the program with LibTorch inside, for machines without a compiler.
# scripts/package calls it, and makes the archive that needs no package at all.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT TARGET mpol_program)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mpol)
set(CPACK_PACKAGE_VENDOR "The mpol_cpp authors")
set(CPACK_PACKAGE_CONTACT "The mpol_cpp authors <mpol_cpp@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "images from the visibilities of radio interferometers")
set(CPACK_PACKAGE_DESCRIPTION
    "mpol turns visibilities (measurement sets, npz) into calibrated FITS images by regularised maximum likelihood.\n\
 LibTorch (CPU) is inside.")
set(CPACK_PACKAGE_FILE_NAME "mpol-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Where LibTorch's libraries find one another.
file(GLOB nvidia_libraries "${LibTorch_ROOT}/../nvidia/*/lib")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}" "${LibTorch_LIBRARY_DIR}" ${nvidia_libraries})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gnuplot-nox)
include(CPack)
