#include <mpol_cpp/io/cfitsio/next_unit.h>

namespace mpol::io {

bool next_unit(FitsHandle& file, HeaderCheck& headers) {
  LONGLONG header = 0, data = 0, end = 0;
  fits_get_hduaddrll(file.get(), &header, &data, &end, file.status());
  file.check("reading its units");
  headers.check(end);
  fits_movrel_hdu(file.get(), 1, nullptr, file.status());
  const bool at_end = *file.status() == END_OF_FILE;
  if (at_end) static_cast<void>(file.succeeded());  // forgets it
  file.check("reading its units");
  return !at_end;
}

}  // namespace mpol::io
