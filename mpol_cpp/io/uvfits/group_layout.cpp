#include <mpol_cpp/io/uvfits/group_layout.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <system_error>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/cfitsio/header_check.h>
#include <mpol_cpp/io/cfitsio/next_unit.h>

namespace mpol::io {
namespace {

constexpr std::int64_t most_rows = 100'000, most_cells = 4096;  // of a table

/// Keywords of the current unit.
class GroupHeader {
 public:
  explicit GroupHeader(FitsHandle& file) : file_(&file) {}

  std::optional<double> number(const std::string& key) const {
    double value = 0;
    fits_read_key_dbl(file_->get(), key.c_str(), &value, nullptr, file_->status());
    return file_->succeeded() && std::isfinite(value) ? std::optional(value) : std::nullopt;
  }

  std::string text(const std::string& key) const {
    std::array<char, FLEN_VALUE> value{};
    fits_read_key_str(file_->get(), key.c_str(), value.data(), nullptr, file_->status());
    if (!file_->succeeded()) return {};
    std::string read(value.data());
    read.erase(read.find_last_not_of(' ') + 1);
    return read;
  }

  bool flag(const std::string& key) const {
    int value = 0;
    fits_read_key_log(file_->get(), key.c_str(), &value, nullptr, file_->status());
    return file_->succeeded() && value != 0;
  }

 private:
  FitsHandle* file_;
};

std::int64_t whole(std::optional<double> value, std::int64_t otherwise) {
  constexpr double most = 1e15;
  if (!value || std::abs(*value) > most) return otherwise;
  return std::llround(*value);
}

std::string upper(std::string text) {
  for (auto& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

void read_axes(const GroupHeader& header, const std::filesystem::path& path, GroupLayout& layout) {
  constexpr std::int64_t most_values = std::int64_t{1} << 31;
  const auto count = whole(header.number("NAXIS"), 0);
  std::int64_t stride = 1;
  for (std::int64_t i = 2; i <= std::min<std::int64_t>(count, 99); ++i) {
    const auto key = [i](const char* name) { return fmt::format("{}{}", name, i); };
    GroupAxis axis;
    axis.name = upper(header.text(key("CTYPE")));
    axis.size = whole(header.number(key("NAXIS")), 0);
    axis.stride = stride;
    axis.value = header.number(key("CRVAL")).value_or(0);
    axis.pixel = header.number(key("CRPIX")).value_or(1);
    axis.step = header.number(key("CDELT")).value_or(1);
    if (axis.size < 1 || axis.size > most_values / stride) {
      throw FileError(fmt::format("{}: axis {} of its groups has {} pixels; the header is damaged: write the file again",
                                  path.string(), i, axis.size));
    }
    stride *= axis.size;
    layout.axes.push_back(std::move(axis));
  }
}

void read_parameters(const GroupHeader& header, const std::filesystem::path& path, GroupLayout& layout) {
  constexpr std::int64_t most = 999;
  const auto count = whole(header.number("PCOUNT"), 0);
  layout.groups = whole(header.number("GCOUNT"), 0);
  if (count < 1 || count > most || layout.groups < 1) {
    throw DataError(fmt::format("{}: {} groups with {} parameters hold no visibilities; at least one is needed", path.string(),
                                layout.groups, count));
  }
  for (std::int64_t i = 1; i <= count; ++i) {
    layout.parameters.push_back({upper(header.text(fmt::format("PTYPE{}", i))),
                                 header.number(fmt::format("PSCAL{}", i)).value_or(1),
                                 header.number(fmt::format("PZERO{}", i)).value_or(0)});
  }
}

/// Before memory is asked for: as many bytes must be there as the current unit needs.
void check_size(FitsHandle& file, const std::filesystem::path& path, const std::string& what, double data_bytes) {
  LONGLONG header_begin = 0, begin = 0, end = 0;
  fits_get_hduaddrll(file.get(), &header_begin, &begin, &end, file.status());
  file.check("reading its headers");
  const double needed = static_cast<double>(begin) + data_bytes;
  std::error_code error;
  const auto there = static_cast<double>(std::filesystem::file_size(path, error));
  if (needed <= there) return;
  throw FileError(
      fmt::format("{}: {} need {:.0f} bytes, but the file has {:.0f}; it is truncated or damaged: copy or write it again",
                  path.string(), what, needed, there));
}

void check_groups(FitsHandle& file, const std::filesystem::path& path, const GroupLayout& layout, std::int64_t bits) {
  const auto of_group = static_cast<double>(layout.values()) + static_cast<double>(layout.parameters.size());
  check_size(file, path, fmt::format("{} groups of {} values", layout.groups, layout.values()),
             static_cast<double>(layout.groups) * of_group * static_cast<double>(std::abs(bits)) / 8);
}

bool is_number(int type) {
  return type == TSHORT || type == TINT || type == TLONG || type == TLONGLONG || type == TFLOAT || type == TDOUBLE;
}

/// A column of numbers of the current table, `cells` in each row; empty where there is none.
std::vector<double> column(FitsHandle& file, const char* name, std::int64_t rows, std::int64_t cells) {
  int number = 0, type = 0;
  long repeat = 0, width = 0;
  std::string text(name);
  fits_get_colnum(file.get(), CASEINSEN, text.data(), &number, file.status());
  fits_get_coltype(file.get(), number, &type, &repeat, &width, file.status());
  if (!file.succeeded() || !is_number(type) || repeat < cells) return {};
  std::vector<double> values(static_cast<std::size_t>(rows * cells));
  for (std::int64_t row = 0; row < rows; ++row) {
    fits_read_col_dbl(file.get(), number, row + 1, 1, cells, 0, values.data() + row * cells, nullptr, file.status());
  }
  return file.succeeded() ? values : std::vector<double>();
}

std::string text_cell(FitsHandle& file, const char* name, std::int64_t row) {
  int number = 0, type = 0;
  long repeat = 0, width = 0;
  std::string text(name);
  fits_get_colnum(file.get(), CASEINSEN, text.data(), &number, file.status());
  fits_get_coltype(file.get(), number, &type, &repeat, &width, file.status());
  if (!file.succeeded() || type != TSTRING || repeat > most_cells) return {};
  std::string cell(static_cast<std::size_t>(repeat) + 1, '\0');
  auto* into = cell.data();
  fits_read_col_str(file.get(), number, row + 1, 1, 1, nullptr, &into, nullptr, file.status());
  if (!file.succeeded()) return {};
  cell.resize(cell.find('\0'));
  cell.erase(cell.find_last_not_of(' ') + 1);
  return cell;
}

void read_setups(FitsHandle& file, std::int64_t rows, std::int64_t ifs, GroupLayout& layout) {
  const auto ids = column(file, "FRQSEL", rows, 1), offsets = column(file, "IF FREQ", rows, ifs),
             widths = column(file, "CH WIDTH", rows, ifs), sidebands = column(file, "SIDEBAND", rows, ifs);
  if (offsets.empty()) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    FrequencySetup setup;
    setup.id = ids.empty() ? row + 1 : std::llround(ids[static_cast<std::size_t>(row)]);
    for (std::int64_t i = 0; i < ifs; ++i) {
      const auto at = static_cast<std::size_t>(row * ifs + i);
      const double width = widths.empty() ? 0 : widths[at];
      setup.offsets.push_back(offsets[at]);
      setup.widths.push_back(!sidebands.empty() && sidebands[at] < 0 ? -std::abs(width) : width);
    }
    layout.setups.push_back(std::move(setup));
  }
}

void read_sources(FitsHandle& file, std::int64_t rows, GroupLayout& layout) {
  const auto ids = column(file, "ID. NO.", rows, 1), ascensions = column(file, "RAEPO", rows, 1),
             declinations = column(file, "DECEPO", rows, 1);
  if (ids.empty() || ascensions.empty() || declinations.empty()) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    layout.sources.push_back({std::llround(ids[at]), text_cell(file, "SOURCE", row), ascensions[at] * units::degree,
                              declinations[at] * units::degree});
  }
}

void read_tables(FitsHandle& file, const std::filesystem::path& path, GroupLayout& layout) {
  HeaderCheck headers(path);
  const auto* axis = layout.axis("IF");
  const auto ifs = axis == nullptr ? 1 : axis->size;
  while (next_unit(file, headers)) {
    int type = 0;
    fits_get_hdu_type(file.get(), &type, file.status());
    file.check("reading its tables");
    const auto name = GroupHeader(file).text("EXTNAME");
    if (type != BINARY_TBL || (name != "AIPS FQ" && name != "AIPS SU")) continue;
    LONGLONG rows = 0;
    fits_get_num_rowsll(file.get(), &rows, file.status());
    file.check("reading its tables");
    if (rows > most_rows || ifs > most_cells) continue;
    check_size(file, path, fmt::format("{} rows of the table {}", rows, name),
               static_cast<double>(rows) * GroupHeader(file).number("NAXIS1").value_or(0));
    if (name == "AIPS FQ" && layout.setups.empty()) read_setups(file, rows, ifs, layout);
    if (name == "AIPS SU" && layout.sources.empty()) read_sources(file, rows, layout);
  }
  fits_movabs_hdu(file.get(), 1, nullptr, file.status());
  file.check("reading its groups");
}

void read_observation(const GroupHeader& header, GroupLayout& layout) {
  auto& observation = layout.observation;
  observation.object = header.text("OBJECT");
  observation.telescope = header.text("TELESCOP");
  observation.date = header.text("DATE-OBS");
  observation.spectral_reference = header.text("SPECSYS");
  for (const char* key : {"RESTFREQ", "RESTFRQ"}) {
    if (const auto rest = header.number(key); rest && *rest > 0) observation.rest_frequency = rest;
  }
  const auto *ascension = layout.axis("RA"), *declination = layout.axis("DEC");
  std::optional<double> ra, dec;
  if (ascension != nullptr && declination != nullptr) ra = ascension->value, dec = declination->value;
  if (!ra || (*ra == 0 && *dec == 0)) {  // as files of several sources have them
    if (const auto a = header.number("OBSRA"), d = header.number("OBSDEC"); a && d) ra = a, dec = d;
  }
  if (ra) observation.right_ascension = *ra * units::degree, observation.declination = *dec * units::degree;
  layout.equinox = header.number("EQUINOX").value_or(header.number("EPOCH").value_or(2000));
  layout.unit = header.text("BUNIT");
}

}  // namespace

std::int64_t GroupLayout::values() const {
  std::int64_t count = 1;
  for (const auto& axis : axes) count *= axis.size;
  return count;
}

const GroupAxis* GroupLayout::axis(std::string_view name) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [name](const GroupAxis& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

std::vector<std::size_t> GroupLayout::named(std::string_view name) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& own = parameters[i].name;
    if (own == name || (own.starts_with(name) && own[name.size()] == '-')) found.push_back(i);
  }
  return found;
}

GroupLayout read_group_layout(FitsHandle& file, const std::filesystem::path& path) {
  const GroupHeader header(file);
  if (!header.flag("GROUPS") || whole(header.number("NAXIS1"), -1) != 0) {
    throw FileError(fmt::format("{}: its primary unit holds no random groups, as a UVFITS file does", path.string()));
  }
  GroupLayout layout;
  read_axes(header, path, layout);
  read_parameters(header, path, layout);
  check_groups(file, path, layout, whole(header.number("BITPIX"), 0));
  read_observation(header, layout);
  read_tables(file, path, layout);
  return layout;
}

}  // namespace mpol::io
