# How tests, examples and benchmarks are declared.

# mpol_add_test(folder [IO] [CLI] [BY_HAND] [BY_FILE] [file.cpp ...])
#
# One program test_<folder> of the *_test.cpp of the present folder and the files named, registered with CTest. IO links mpol::io; CLI links the library of the program mpol, which is
# built first; its path is the macro MPOL_PROGRAM. BY_HAND: CTest does not know it (it needs a GPU). BY_FILE: to CTest each file is a test,
# so that several run side by side, unless MPOL_TEST_ARGUMENTS chooses between tests.
# measurement_set*_test.cpp are there where casacore is, which writes sets for them.
function(mpol_add_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "IO;CLI;BY_HAND;BY_FILE" "" "")
  if((TEST_IO AND NOT MPOL_BUILD_IO) OR (TEST_CLI AND NOT MPOL_BUILD_CLI))
    return()
  endif()
  set(name test_${folder})
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp */*_test.cpp)
  if(NOT TARGET mpol_test_sets)
    list(FILTER tests EXCLUDE REGEX "/measurement_set[a-z_]*_test\\.cpp$")
  endif()
  add_executable(${name} ${tests} ${TEST_UNPARSED_ARGUMENTS})
  mpol_compile_settings(${name})
  mpol_optimise_lightly(${name})
  mpol_precompile(${name})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # More of what GCC 12 sees in std::string that is not there (see mpol_compile_settings).
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  target_link_libraries(${name} PRIVATE mpol_test_main nlohmann_json::nlohmann_json)
  target_compile_definitions(
    ${name} PRIVATE MPOL_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data" MPOL_DATA_DIR="${PROJECT_SOURCE_DIR}/data"
                    MPOL_TEST_PYTHON="${MPOL_TEST_PYTHON}")
  if(TEST_IO)
    target_link_libraries(${name} PRIVATE mpol::io)
    if(TARGET mpol_test_sets)
      target_link_libraries(${name} PRIVATE mpol_test_sets)
    endif()
  endif()
  if(TEST_CLI)
    add_dependencies(${name} mpol_program)
    target_link_libraries(${name} PRIVATE mpol_cli)
    target_compile_definitions(${name} PRIVATE MPOL_PROGRAM="$<TARGET_FILE:mpol_program>")
  endif()
  if(TEST_BY_HAND)
    return()
  endif()
  if(TEST_BY_FILE AND NOT MPOL_TEST_ARGUMENTS)
    if(Catch2_VERSION VERSION_LESS 3)
      set(none_is_an_error --warn NoTests) # from version 3 on it always is
    endif()
    foreach(test IN LISTS tests)
      cmake_path(GET test STEM file)
      string(REGEX REPLACE "_test$" "" part "${file}")
      add_test(NAME ${folder}/${part} COMMAND ${name} --durations yes --filenames-as-tags "[#${file}]" ${none_is_an_error})
      list(APPEND names ${folder}/${part})
    endforeach()
  else()
    add_test(NAME ${folder} COMMAND ${name} --durations yes ${MPOL_TEST_ARGUMENTS})
    set(names ${folder})
  endif()
  if(NOT TEST_CLI) # mpol sets this itself, which the tests of the command line look at
    set_tests_properties(${names} PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive) # a busy neighbour must not stall LibTorch's threads
  endif()
endfunction()

# mpol_add_example(name file.cpp ...): a program bin/<name>, written as a user would.
function(mpol_add_example name)
  add_executable(${name} ${ARGN})
  mpol_compile_settings(${name})
  mpol_precompile(${name})
  target_link_libraries(${name} PRIVATE mpol::mpol)
  if(MPOL_BUILD_IO)
    target_link_libraries(${name} PRIVATE mpol::io)
  endif()
endfunction()

# mpol_add_benchmark(name file.cpp ...)
function(mpol_add_benchmark name)
  mpol_add_example(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE nlohmann_json::nlohmann_json)
endfunction()
