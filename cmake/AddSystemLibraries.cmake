# Run by cpack between installing and packing an archive: lays the libraries of the system that the program loads beside ours, each
# with its licence, and has all of them look for one another there. Debian's dpkg knows the licences.
foreach(tool ldd patchelf dpkg-query)
  find_program(${tool} ${tool} NO_CACHE REQUIRED)
endforeach()
function(run result)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(prefix "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(folder "${prefix}/lib/mpol_cpp/system")
set(licences "${prefix}/share/doc/mpol_cpp/licences")
file(MAKE_DIRECTORY "${folder}" "${licences}")

# The C library alone must be that of the machine.
set(of_glibc "/(libc|libm|libdl|libpthread|librt|libutil|libresolv|libnss_[a-z]*|ld-linux-x86-64)\\.so")
file(GLOB program "${prefix}/lib/libmpol_cli.so.*.*.*")
run(loaded "${ldd}" "${program}")
string(REGEX MATCHALL "=> /(usr/)?lib[^ ]*" loaded "${loaded}")
foreach(library IN LISTS loaded)
  string(REGEX REPLACE "^=> " "" library "${library}")
  if(library MATCHES "${of_glibc}")
    continue()
  endif()
  get_filename_component(name "${library}" NAME)
  file(REAL_PATH "${library}" file)
  file(COPY_FILE "${file}" "${folder}/${name}")
  file(CHMOD "${folder}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  run(ignored "${patchelf}" --set-rpath "$ORIGIN" "${folder}/${name}")

  execute_process(COMMAND "${dpkg-query}" -S "${file}" OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    run(owner "${dpkg-query}" -S "${library}") # known by the name before /lib became a link
  endif()
  string(REGEX REPLACE ":.*" "" owner "${owner}")
  file(REAL_PATH "/usr/share/doc/${owner}/copyright" copyright)
  file(COPY_FILE "${copyright}" "${licences}/${owner}.txt")
endforeach()

file(GLOB ours "${prefix}/lib/libmpol*.so.*.*.*")
foreach(library IN LISTS ours)
  run(ignored "${patchelf}" --set-rpath "$ORIGIN:$ORIGIN/mpol_cpp/libtorch/torch/lib:$ORIGIN/mpol_cpp/system" "${library}")
endforeach()
