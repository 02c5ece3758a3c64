#include <stdexcept>
#include <string>
#include <vector>

#include <fitsio.h>

#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/io/uvfits/uvfits.h>

#include "input_file.h"
#include "readers.h"

namespace mpol::testing {
namespace {

/// Eight groups of two hands in three channels, with the tables of frequencies and sources.
std::string groups_file() {
  const auto path = input_folder() / "corpus.uvfits";
  int status = 0;
  fitsfile* file = nullptr;
  fits_create_file(&file, ("!" + path.string()).c_str(), &status);
  long sizes[] = {0, 3, 2, 3, 1};
  constexpr long groups = 8, parameters = 6, values = 3 * 2 * 3;
  fits_write_grphdr(file, 1, FLOAT_IMG, 5, sizes, parameters, groups, 1, &status);
  const auto text = [&](const std::string& key, std::string value) {
    fits_update_key(file, TSTRING, key.c_str(), value.data(), nullptr, &status);
  };
  const auto number = [&](const char* key, double value) { fits_update_key(file, TDOUBLE, key, &value, nullptr, &status); };
  text("CTYPE2", "COMPLEX"), text("CTYPE3", "STOKES"), text("CTYPE4", "FREQ"), text("CTYPE5", "IF");
  number("CRVAL3", -1), number("CDELT3", -1), number("CRVAL4", 2.3e11), number("CDELT4", 1e7);
  int n = 0;
  for (const char* name : {"UU---SIN", "VV---SIN", "BASELINE", "DATE", "FREQSEL", "SOURCE"})
    text("PTYPE" + std::to_string(++n), name);
  text("BUNIT", "JY"), text("OBJECT", "DISC");
  for (long group = 1; group <= groups; ++group) {
    std::vector<float> own = {1e-6F * static_cast<float>(group), -2e-6F, 258, 2459000, 1, 1}, data(values, 0.5F);
    fits_write_grppar_flt(file, group, 1, parameters, own.data(), &status);
    fits_write_img_flt(file, group, 1, values, data.data(), &status);
  }
  char frequency_columns[3][9] = {"FRQSEL", "IF FREQ", "CH WIDTH"}, frequency_forms[3][3] = {"1J", "1D", "1E"};
  char source_columns[4][8] = {"ID. NO.", "SOURCE", "RAEPO", "DECEPO"}, source_forms[4][4] = {"1J", "16A", "1D", "1D"};
  char *names[] = {frequency_columns[0], frequency_columns[1], frequency_columns[2]},
       *forms[] = {frequency_forms[0], frequency_forms[1], frequency_forms[2]};
  fits_create_tbl(file, BINARY_TBL, 1, 3, names, forms, nullptr, "AIPS FQ", &status);
  int one = 1;
  double width = 2e7;
  fits_write_col(file, TINT, 1, 1, 1, 1, &one, &status);
  fits_write_col(file, TDOUBLE, 3, 1, 1, 1, &width, &status);
  char *source_names[] = {source_columns[0], source_columns[1], source_columns[2], source_columns[3]},
       *source_types[] = {source_forms[0], source_forms[1], source_forms[2], source_forms[3]};
  fits_create_tbl(file, BINARY_TBL, 1, 4, source_names, source_types, nullptr, "AIPS SU", &status);
  fits_write_col(file, TINT, 1, 1, 1, 1, &one, &status);
  fits_close_file(file, &status);
  if (status != 0) throw std::runtime_error("cfitsio cannot make the corpus: status " + std::to_string(status));
  return bytes_of(path);
}

}  // namespace

int fuzz_uvfits(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.uvfits", bytes, size);
  return refused([&] { io::collect_samples(*io::open_uvfits(path)); });
}

std::vector<std::string> uvfits_corpus() { return {groups_file()}; }

}  // namespace mpol::testing
