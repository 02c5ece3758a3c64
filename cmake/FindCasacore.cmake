# casacore, which reads measurement sets: target Casacore::tables, and Casacore::ms where the library that makes sets is there
# too (tests). Debian's casacore-dev brings neither a pkg-config file nor one for CMake.
find_path(Casacore_INCLUDE_DIR casacore/tables/Tables/Table.h)
find_library(Casacore_CASA_LIBRARY casa_casa)
find_library(Casacore_TABLES_LIBRARY casa_tables)
find_library(Casacore_MEASURES_LIBRARY casa_measures)
find_library(Casacore_MS_LIBRARY casa_ms)
mark_as_advanced(Casacore_INCLUDE_DIR Casacore_CASA_LIBRARY Casacore_TABLES_LIBRARY Casacore_MEASURES_LIBRARY
                 Casacore_MS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Casacore REQUIRED_VARS Casacore_TABLES_LIBRARY Casacore_CASA_LIBRARY Casacore_INCLUDE_DIR)
if(Casacore_FOUND AND NOT TARGET Casacore::tables)
  add_library(Casacore::tables INTERFACE IMPORTED)
  target_include_directories(Casacore::tables SYSTEM INTERFACE "${Casacore_INCLUDE_DIR}")
  target_link_libraries(Casacore::tables INTERFACE "${Casacore_TABLES_LIBRARY}" "${Casacore_CASA_LIBRARY}")
  if(Casacore_MS_LIBRARY AND Casacore_MEASURES_LIBRARY)
    add_library(Casacore::ms INTERFACE IMPORTED)
    target_link_libraries(Casacore::ms INTERFACE "${Casacore_MS_LIBRARY}" "${Casacore_MEASURES_LIBRARY}" Casacore::tables)
  endif()
endif()
