#include <filesystem>
#include <stdexcept>
#include <string>

#include <fitsio.h>

#include <mpol_cpp/io/fits.h>

#include "input_file.h"
#include "random.h"
#include "readers.h"

namespace mpol::testing {
namespace {

const GridCoords fits_grid(0.05, 8);

std::string written(std::int64_t nchan, const io::FitsOptions& options) {
  const auto path = input_folder() / "corpus.fits";
  io::write_fits(path, random_image(fits_grid, nchan, torch::kFloat32, 1), fits_grid, options);
  return bytes_of(path);
}

fitsfile* created(const std::filesystem::path& path, int& status) {
  fitsfile* file = nullptr;
  fits_create_file(&file, ("!" + path.string()).c_str(), &status);  // "!": what is there is replaced
  return file;
}

void check_made(int status) {
  if (status != 0) throw std::runtime_error("cfitsio cannot make the corpus: status " + std::to_string(status));
}

/// One of our files as a whole, packed by gzip.
std::string zipped() {
  const auto from = input_folder() / "corpus.fits", to = input_folder() / "corpus.fits.gz";
  io::write_fits(from, random_image(fits_grid, 2, torch::kFloat32, 1), fits_grid, {});
  int status = 0;
  fitsfile* file = nullptr;
  fits_open_diskfile(&file, from.c_str(), READONLY, &status);
  auto* copy = created(to, status);  // a name that ends in .gz is packed when it is closed
  fits_copy_file(file, copy, 1, 1, 1, &status);
  fits_close_file(copy, &status);
  fits_close_file(file, &status);
  check_made(status);
  return bytes_of(to);
}

/// A cube of compressed tiles, of three axes: cfitsio's own readers know no more.
std::string tiled(int compression) {
  const auto path = input_folder() / "tiles.fits";
  auto pixels = random_image(fits_grid, 2, torch::kFloat32, 1).contiguous();
  int status = 0;
  auto* file = created(path, status);
  fits_set_compression_type(file, compression, &status);
  long sizes[] = {8, 8, 2};
  fits_create_img(file, FLOAT_IMG, 3, sizes, &status);
  const auto text = [&](const char* key, std::string value) {
    fits_update_key(file, TSTRING, key, value.data(), nullptr, &status);
  };
  const auto number = [&](const char* key, double value) { fits_update_key(file, TDOUBLE, key, &value, nullptr, &status); };
  text("CTYPE1", "RA---SIN"), text("CTYPE2", "DEC--SIN"), text("CTYPE3", "CHANNEL");
  number("CDELT1", -1e-5), number("CDELT2", 1e-5), number("CRPIX1", 4), number("CRPIX2", 5);
  fits_write_img(file, TFLOAT, 1, pixels.numel(), pixels.mutable_data_ptr<float>(), &status);
  fits_close_file(file, &status);
  check_made(status);
  return bytes_of(path);
}

}  // namespace

int fuzz_fits(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.fits", bytes, size);
  return refused([&] { io::read_fits(path); });
}

std::vector<std::string> fits_corpus() {
  Observation observation;
  observation.right_ascension = 1.5;
  observation.declination = -0.5;
  observation.object = "disc";
  observation.rest_frequency = 3e11;
  const auto even = io::FitsOptions()
                        .frequencies(at::arange(3, torch::kFloat64) * 1e6 + 3e11)
                        .observation(observation)
                        .beams({{0.3, 0.2, 0.5}})
                        .history({"a line of history"});
  const auto uneven = io::FitsOptions()
                          .frequencies(at::arange(3, torch::kFloat64).square() * 1e6 + 3e11)
                          .beams({{0.3, 0.2, 0.5}, {0.3, 0.2, 0.4}, {0.3, 0.2, 0.3}});
  return {written(1, {}), written(3, even), written(3, uneven), zipped(), tiled(RICE_1), tiled(GZIP_1)};
}

std::string repair_fits(std::string bytes) {
  constexpr std::size_t block = 2880;
  constexpr std::string_view gzip("\x1f\x8b", 2), first = "SIMPLE  =                    T";
  if (bytes.starts_with(gzip)) return bytes;
  if (bytes.size() >= first.size()) bytes.replace(0, first.size(), first);
  bytes.resize((bytes.size() + block - 1) / block * block, '\0');
  return bytes;
}

}  // namespace mpol::testing
