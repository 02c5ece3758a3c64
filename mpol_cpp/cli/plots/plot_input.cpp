#include <mpol_cpp/cli/plots/plot_input.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <mpol_cpp/cli/options/set_options.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/archives/folder_archive.h>

namespace mpol::cli {
namespace {

namespace fs = std::filesystem;

/// Files of the folders that mpol writes, the most telling first.
constexpr std::array told_by = {
    std::pair{"history.csv", PlotKind::training},          std::pair{"profile.csv", PlotKind::profile},
    std::pair{"histogram.csv", PlotKind::residuals},       std::pair{"convolved.fits", PlotKind::image},
    std::pair{"deprojected.fits", PlotKind::image},        std::pair{"dirty.fits", PlotKind::image},
    std::pair{"visibilities.npz", PlotKind::visibilities}, std::pair{"difference.fits", PlotKind::image}};

void check_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw FileError(error_text("INPUT", path.string(), "is not there", "check the path"));
  }
}

std::string first_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(512, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

[[noreturn]] void refuse_input(const fs::path& path, const std::string& limit) {
  throw DataError(
      error_text("INPUT", path.string(), limit,
                 "give an image (.fits), visibilities (.npz or a folder of .npy), a table of mpol (.csv) or the OUT of a run"));
}

PlotKind kind_of_table(const fs::path& path, const std::string& bytes) {
  const auto head = bytes.substr(0, bytes.find('\n'));
  if (head.starts_with("epoch,")) return PlotKind::training;
  if (head.starts_with("channel,radius_arcsec,") || head.starts_with("channel,q_lambda,")) return PlotKind::profile;
  if (head.starts_with("low,high,density,")) return PlotKind::residuals;
  refuse_input(path, "is nothing that can be drawn");
}

PlotKind kind_of_file(const fs::path& path) {
  const auto bytes = first_bytes(path);
  if (bytes.empty()) refuse_input(path, "is empty or cannot be read");
  if (bytes.starts_with("SIMPLE") || path.extension() == ".fits" || path.extension() == ".gz") return PlotKind::image;
  if (bytes.starts_with("PK")) return PlotKind::visibilities;
  return kind_of_table(path, bytes);
}

/// What the folder of a run holds, of the wanted kind if one is.
PlotInput in_folder(const fs::path& folder, std::optional<PlotKind> kind) {
  for (const auto& [name, told] : told_by) {
    if (kind && *kind != told) continue;
    if (fs::exists(folder / name)) return {told, folder / name, {}};
  }
  if (kind == PlotKind::image && fs::exists(folder / "image.fits")) return {PlotKind::image, folder / "image.fits", {}};
  refuse_input(folder,
               !kind ? "holds nothing that can be drawn" : fmt::format("holds nothing for a figure of kind {}", name_of(kind)));
}

}  // namespace

std::string name_of(std::optional<PlotKind> kind) { return choice_name(kind, plot_kind_choices); }

PlotInput plot_input(std::optional<PlotKind> kind, const fs::path& first, const fs::path& second) {
  const bool two = !second.empty();
  if (two != (kind == PlotKind::comparison) && !(two && !kind)) {
    throw UsageError(error_text("--kind", name_of(kind), fmt::format("does not suit {}", two ? "two inputs" : "one input"),
                                "give two images for a comparison, else one input"));
  }
  check_there(first);
  if (two) {
    check_there(second);
    return {PlotKind::comparison, first, second};
  }
  if (is_set_or_uvfits(first) || io::is_array_folder(first)) return {kind.value_or(PlotKind::visibilities), first, {}};
  if (fs::is_directory(first)) return in_folder(first, kind);
  return {kind ? *kind : kind_of_file(first), first, {}};
}

}  // namespace mpol::cli
