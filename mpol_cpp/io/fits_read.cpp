#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/any_fits.h>
#include <mpol_cpp/io/axes/fits_axes.h>
#include <mpol_cpp/io/axes/stokes_axis.h>
#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/io/cfitsio/header_check.h>
#include <mpol_cpp/io/cfitsio/next_unit.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>
#include <mpol_cpp/io/unknown_center.h>

namespace mpol::io {
namespace {

/// Whether the current unit holds an image of two axes or more.
bool is_image(FitsHandle& file) {
  int type = 0, dimensions = 0;
  fits_get_hdu_type(file.get(), &type, file.status());
  if (type == IMAGE_HDU) fits_get_img_dim(file.get(), &dimensions, file.status());
  file.check("reading its units");
  return dimensions >= 2;
}

/// Looks at all units and moves to the first that holds an image of two axes or more.
void find_image(FitsHandle& file, const std::filesystem::path& path) {
  HeaderCheck headers(path);
  int found = 0;
  for (int unit = 1; unit == 1 || next_unit(file, headers); ++unit) {
    if (found == 0 && is_image(file)) found = unit;
  }
  if (found > 0) {
    fits_movabs_hdu(file.get(), found, nullptr, file.status());
    file.check("reading its units");
    return;
  }
  throw FileError(fmt::format("{}: it holds no image of two axes or more; name a FITS image", path.string()));
}

double hertz_per(const std::string& unit) {
  if (unit == "kHz") return 1e3;
  if (unit == "MHz") return 1e6;
  if (unit == "GHz") return 1e9;
  return 1;
}

/// How many times its size a file is believed to hold without a look.
constexpr double believed_expansion = 10;

/// The tiles of a compressed image: pixels of one, and whether the table has a row for each.
struct Tiles {
  double pixels = 1;
  bool complete = true;
  std::vector<double> extents, widths;  // along each axis, of the image and of a tile

  Tiles(FitsHandle& file, const std::vector<FitsAxis>& axes) {
    HeaderReader header(file);
    double count = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto extent = static_cast<double>(axes[i].size);
      const double tile = header.number(fmt::format("ZTILE{}", i + 1)).value_or(i == 0 ? extent : 1);
      if (!(tile >= 1)) complete = false;
      extents.push_back(extent);
      widths.push_back(tile);
      pixels *= tile;
      count *= std::ceil(extent / tile);
    }
    complete = complete && header.number("NAXIS2") == count;
  }

  /// Pixels of the tile in a row of the table, counted from 0: tiles at the end of an axis may be narrower.
  double pixels_of(LONGLONG row) const {
    double product = 1;
    auto rest = static_cast<double>(row);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const double along = std::ceil(extents[i] / widths[i]), place = std::fmod(rest, along);
      product *= std::min(widths[i], extents[i] - place * widths[i]);
      rest = std::floor(rest / along);
    }
    return product;
  }
};

/// How many bytes a whole stream of gzip unpacks to; nothing for one that is not whole, which cfitsio unpacks for ever.
std::optional<double> unpacked_bytes(std::vector<unsigned char>& bytes) {
  z_stream stream{};
  constexpr int any_header = MAX_WBITS + 32;
  if (inflateInit2(&stream, any_header) != Z_OK) return std::nullopt;
  stream.next_in = bytes.data();
  stream.avail_in = static_cast<unsigned>(bytes.size());
  std::vector<unsigned char> piece(1 << 16);
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<unsigned>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
  }
  const auto total = static_cast<double>(stream.total_out);
  inflateEnd(&stream);
  return state == Z_STREAM_END ? std::optional(total) : std::nullopt;
}

/// What is wrong with the tiles of the current unit, each in its row of a table with its bytes behind the table; empty: nothing.
std::string fault_of_tiles(FitsHandle& file, const Tiles& tiles, double size) {
  HeaderReader header(file);
  const double bytes_of_pixel = std::abs(header.number("ZBITPIX").value_or(0)) / 8;
  const double heap = std::min(header.number("PCOUNT").value_or(0), believed_expansion * size);
  const bool gzip = header.text("ZCMPTYPE").starts_with("GZIP");
  int columns = 0;
  LONGLONG rows = 0;
  fits_get_num_cols(file.get(), &columns, file.status());
  fits_get_num_rowsll(file.get(), &rows, file.status());
  for (int column = 1; column <= columns; ++column) {
    int type = 0;
    LONGLONG repeat = 0, width = 0;
    fits_get_coltypell(file.get(), column, &type, &repeat, &width, file.status());
    if (type >= 0) continue;  // below zero: rows of any length, in the heap
    const auto name = header.text(fmt::format("TTYPE{}", column));
    const bool holds_pixels = name == "GZIP_COMPRESSED_DATA";
    const bool unpacks = holds_pixels || (gzip && name == "COMPRESSED_DATA");
    if (unpacks && type != -TBYTE) return "tiles of gzip that are no bytes";
    for (LONGLONG row = 1; row <= rows; ++row) {
      LONGLONG elements = 0, offset = 0;
      fits_read_descriptll(file.get(), column, row, &elements, &offset, file.status());
      file.check("reading the table of tiles");
      const double bytes = static_cast<double>(elements) * static_cast<double>(width);
      if (elements < 0 || offset < 0 || static_cast<double>(offset) + bytes > heap)
        return "tiles outside the part that holds them";
      if (!unpacks || elements == 0) continue;
      std::vector<unsigned char> packed(static_cast<std::size_t>(elements));
      int any_blank = 0;
      fits_read_col(file.get(), TBYTE, column, row, 1, elements, nullptr, packed.data(), &any_blank, file.status());
      file.check("reading the tiles");
      const auto unpacked = unpacked_bytes(packed);
      if (!unpacked) return "tiles of gzip that do not unpack";
      // cfitsio looks for converted pixels where none are, if theirs have another width.
      if (holds_pixels && *unpacked != tiles.pixels_of(row - 1) * bytes_of_pixel) return "tiles of gzip of other sizes";
    }
  }
  file.check("reading the table of tiles");
  return {};
}

/// Reads all pixels into a small buffer and forgets them.
void try_to_read(FitsHandle& file, const std::vector<FitsAxis>& axes, std::int64_t pixels) {
  std::vector<double> piece(1 << 16);
  const auto most = static_cast<std::int64_t>(piece.size());
  for (std::int64_t begin = 0; begin < pixels; begin += most) {
    std::array<LONGLONG, most_axes> first;
    first.fill(1);
    auto rest = begin;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      first[i] = 1 + rest % axes[i].size;
      rest /= axes[i].size;
    }
    int any_blank = 0;
    fits_read_pixll(file.get(), TDOUBLE, first.data(), std::min(most, pixels - begin), nullptr, piece.data(), &any_blank,
                    file.status());
    file.check("reading the image");
  }
}

/// Refuses headers that promise more pixels than the file holds, before memory is asked for: what would take more than ten
/// times the file is read once to see whether it is there.
void check_size(FitsHandle& file, const std::vector<FitsAxis>& axes, const std::filesystem::path& path, std::int64_t bits) {
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  const auto refuse = [&](const std::string& what) {
    throw FileError(fmt::format("{}: its header promises {} in a file of {} bytes; the file is damaged: write it again",
                                path.string(), what, size));
  };
  std::int64_t pixels = 1;
  for (const auto& axis : axes) {
    if (axis.size < 1 || __builtin_mul_overflow(pixels, axis.size, &pixels)) refuse("more pixels than it can hold");
  }
  // A whole file of gzip expands 1032 times at most, compressed pixels to far less than a bit each.
  int status = 0;
  const bool packed = fits_is_compressed_image(file.get(), &status) != 0;
  const double packed_bytes = packed ? 0 : static_cast<double>(pixels) * std::abs(static_cast<double>(bits)) / 8;
  if (packed_bytes > 1040 * size || static_cast<double>(pixels) > 1e6 * size) refuse("more pixels than it can hold");
  constexpr double large_tile = 1 << 18;
  if (packed) {
    const Tiles tiles(file, axes);
    if (!tiles.complete) refuse("other tiles than it has");
    if (const auto fault = fault_of_tiles(file, tiles, size); !fault.empty()) refuse(fault);
    if (tiles.pixels > large_tile && 8 * tiles.pixels > believed_expansion * size)
      refuse(fmt::format("tiles of {} pixels", tiles.pixels));
  }
  if (8 * static_cast<double>(pixels) > believed_expansion * size) try_to_read(file, axes, pixels);
}

/// Channels of the cube as they lie in the file, from one on.
Tensor read_planes(FitsHandle& file, const std::vector<FitsAxis>& axes, std::optional<std::size_t> channels,
                   const std::filesystem::path& path, std::int64_t begin, std::int64_t count) {
  Tensor cube;
  try {
    cube = at::empty({count, axes[1].size, axes[0].size}, torch::kFloat64);
  } catch (const std::exception&) {
    throw FileError(fmt::format("{}: an image of {} x {} x {} pixels is more than this machine's memory takes", path.string(),
                                count, axes[1].size, axes[0].size));
  }
  std::array<LONGLONG, most_axes> first;
  first.fill(1);
  if (channels) first[*channels] = begin + 1;
  double blank = std::numeric_limits<double>::quiet_NaN();
  int any_blank = 0;
  fits_read_pixll(file.get(), TDOUBLE, first.data(), cube.numel(), &blank, cube.mutable_data_ptr<double>(), &any_blank,
                  file.status());
  file.check("reading the image");
  return cube;
}

/// Whether an axis must be turned for sky orientation: East left, South first.
bool runs_west(const std::vector<FitsAxis>& axes) { return *axes[0].step > 0; }
bool runs_south(const std::vector<FitsAxis>& axes) { return *axes[1].step < 0; }

/// Turns planes to sky orientation.
Tensor oriented(Tensor planes, const std::vector<FitsAxis>& axes) {
  if (runs_west(axes)) planes = planes.flip({2});
  return runs_south(axes) ? planes.flip({1}) : planes;
}

/// Gives the 0-based pixel of the reference position in planes of sky orientation.
void place_reference(FitsImage& image, const std::vector<FitsAxis>& axes) {
  image.reference_column = axes[0].reference_pixel - 1;
  image.reference_row = axes[1].reference_pixel - 1;
  if (runs_west(axes)) image.reference_column = static_cast<double>(axes[0].size - 1) - image.reference_column;
  if (runs_south(axes)) image.reference_row = static_cast<double>(axes[1].size - 1) - image.reference_row;
}

/// A column of a binary table as float64, or nothing when the table or the column is not there.
std::vector<double> table_column(FitsHandle& file, const char* table, const char* column, std::string* unit = nullptr) {
  int number = 0, any_blank = 0;
  LONGLONG rows = 0;
  char name[FLEN_VALUE];
  std::copy_n(column, std::char_traits<char>::length(column) + 1, name);
  char table_name[FLEN_VALUE];
  std::copy_n(table, std::char_traits<char>::length(table) + 1, table_name);
  fits_movnam_hdu(file.get(), BINARY_TBL, table_name, 0, file.status());
  fits_get_num_rowsll(file.get(), &rows, file.status());
  fits_get_colnum(file.get(), CASEINSEN, name, &number, file.status());
  constexpr LONGLONG most_rows = 1 << 24;
  if (!file.succeeded() || rows < 1 || rows > most_rows) return {};
  std::vector<double> values(static_cast<std::size_t>(rows));
  fits_read_col(file.get(), TDOUBLE, number, 1, 1, rows, nullptr, values.data(), &any_blank, file.status());
  if (!file.succeeded()) return {};
  if (unit != nullptr) *unit = HeaderReader(file).text(fmt::format("TUNIT{}", number));
  return values;
}

Tensor read_frequencies(FitsHandle& file, const std::vector<FitsAxis>& axes, std::optional<std::size_t> channels,
                        std::int64_t nchan) {
  auto frequencies = at::empty({nchan}, torch::kFloat64);
  auto* f = frequencies.mutable_data_ptr<double>();
  if (channels && axes[*channels].type.starts_with("FREQ") && axes[*channels].reference_value != 0) {
    const auto& axis = axes[*channels];
    for (std::int64_t i = 0; i < nchan; ++i) {
      f[i] = (axis.reference_value + (static_cast<double>(i + 1) - axis.reference_pixel) * axis.step.value_or(0)) *
             hertz_per(axis.unit);
    }
    return frequencies;
  }
  const auto listed = table_column(file, "FREQUENCIES", "FREQUENCY");
  if (static_cast<std::int64_t>(listed.size()) != nchan) return {};
  std::copy(listed.begin(), listed.end(), f);
  return frequencies;
}

std::vector<Beam> read_beam_table(FitsHandle& file) {
  std::string major_unit, minor_unit;
  const auto major = table_column(file, "BEAMS", "BMAJ", &major_unit);
  const auto minor = table_column(file, "BEAMS", "BMIN", &minor_unit);
  const auto angle = table_column(file, "BEAMS", "BPA");
  std::vector<Beam> beams;
  if (major.size() != minor.size() || major.size() != angle.size()) return beams;
  const auto arcsec_per = [](const std::string& unit) { return unit == "deg" ? 3600.0 : 1.0; };
  for (std::size_t i = 0; i < major.size(); ++i) {
    beams.push_back({major[i] * arcsec_per(major_unit), minor[i] * arcsec_per(minor_unit), angle[i] * units::degree});
  }
  return beams;
}

void read_observation(HeaderReader header, const std::vector<FitsAxis>& axes, const std::filesystem::path& path,
                      FitsImage& image) {
  auto& observation = image.observation;
  if (axes[0].type.starts_with("RA"))
    observation.right_ascension = axes[0].reference_value * degrees_per(axes[0].unit, path) * units::degree;
  if (axes[1].type.starts_with("DEC"))
    observation.declination = axes[1].reference_value * degrees_per(axes[1].unit, path) * units::degree;
  observation.object = header.text("OBJECT");
  observation.telescope = header.text("TELESCOP");
  observation.date = header.text("DATE-OBS");
  observation.spectral_reference = header.text("SPECSYS");
  observation.stokes = read_stokes_axis(axes, path);
  observation.rest_frequency = header.number("RESTFRQ");
  if (!observation.rest_frequency) observation.rest_frequency = header.number("RESTFREQ");
  image.unit = header.text("BUNIT");
  image.history = header.history();
  image.sample_errors = {header.number("ERRFACT"), header.number("ERRGROW"), header.number("ERRWIDTH")};
  forget_unknown_center(observation, image.history);
  const auto major = header.number("BMAJ"), minor = header.number("BMIN");
  if (major && minor) image.beams = {{*major * 3600, *minor * 3600, header.number("BPA").value_or(0) * units::degree}};
}

/// Other programs change pixels without their DATASUM, so a difference is no error.
void check_data_sum(FitsHandle& file, const std::filesystem::path& path) {
  int data_state = 0, unit_state = 0;
  fits_verify_chksum(file.get(), &data_state, &unit_state, file.status());
  file.check("reading the image");
  constexpr int wrong = -1;
  if (data_state == wrong)
    log_warning(
        fmt::format("{}: its pixels do not match their checksum (DATASUM); the file was changed or is damaged", path.string()));
}

}  // namespace

struct FitsCube::File {
  explicit File(const std::filesystem::path& named) : path(named), handle(FitsHandle::open(named)) {}

  std::filesystem::path path;
  FitsHandle handle;
  std::vector<FitsAxis> axes;
  std::optional<std::size_t> channels;  // the axis of channels, or of samples
  std::int64_t nchan = 1;
  FitsImage header;
  std::optional<PixelLattice> lattice;
};

FitsCube::FitsCube(const std::filesystem::path& path, FitsPixels pixels) : file_(std::make_unique<File>(path)) {
  auto& [name, file, axes, channels, nchan, image, lattice] = *file_;
  find_image(file, path);
  axes = read_axes(file, path);
  if (pixels == FitsPixels::any) {
    const auto all = lattice_of(file, axes, path);
    if (!is_square_and_upright(all)) lattice = all;
  }
  image.cell_size = lattice ? std::sqrt(lattice->area()) : cell_size_of(file, axes, path);
  channels = plane_axis(axes, path);
  if (channels) nchan = axes[*channels].size;
  if (channels && is_sample_axis(axes[*channels])) image.planes = FitsPlanes::samples;
  int bits = 0;
  fits_get_img_type(file.get(), &bits, file.status());
  file.check("reading the header");
  check_size(file, axes, path, bits);
  check_data_sum(file, path);
  if (lattice) {
    image.reference_row = lattice->reference_row;
    image.reference_column = lattice->reference_column;
  } else {
    place_reference(image, axes);
  }
  read_observation(HeaderReader(file), axes, path, image);
  const int unit = file_->handle.unit();
  image.frequencies = read_frequencies(file, axes, channels, nchan);
  if (image.beams.empty()) image.beams = read_beam_table(file);
  file_->handle.move_to(unit);
}

FitsCube::~FitsCube() = default;
FitsCube::FitsCube(FitsCube&&) noexcept = default;
FitsCube& FitsCube::operator=(FitsCube&&) noexcept = default;

const FitsImage& FitsCube::header() const { return file_->header; }
const std::optional<PixelLattice>& FitsCube::lattice() const { return file_->lattice; }
std::int64_t FitsCube::nchan() const { return file_->nchan; }
std::int64_t FitsCube::rows() const { return file_->axes[1].size; }
std::int64_t FitsCube::columns() const { return file_->axes[0].size; }

Tensor FitsCube::read(std::int64_t begin, std::int64_t end) {
  if (begin < 0 || begin >= end || end > nchan()) {
    throw ValueError(fmt::format("channels [{}, {}) of an image of {}: they are not there", begin, end, nchan()));
  }
  auto planes = read_planes(file_->handle, file_->axes, file_->channels, file_->path, begin, end - begin);
  return file_->lattice ? planes : oriented(std::move(planes), file_->axes);
}

FitsImage read_fits(const std::filesystem::path& path) {
  FitsCube file(path);
  auto image = file.header();
  image.cube = file.read(0, file.nchan());
  return image;
}

AnyFitsImage read_any_fits(const std::filesystem::path& path) {
  FitsCube file(path, FitsPixels::any);
  AnyFitsImage read{file.header(), file.lattice()};
  read.image.cube = file.read(0, file.nchan());
  return read;
}

}  // namespace mpol::io
