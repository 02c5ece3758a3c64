#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <mpol_cpp/cli/options/fit_choices.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/readers/averaging_reader.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>

namespace mpol::cli {

/// How a measurement set or a UVFITS file is read: every verb that reads visibilities.
struct SetOptions {
  std::string select;  ///< TaQL
  std::string column;  ///< the data; empty: chosen
  io::Polarization polarization = io::Polarization::stokes_i;
  io::HandsNeeded hands = io::HandsNeeded::both;
  std::string spw;                       ///< "0,2-3"
  std::string frequency_range;           ///< "LOW:HIGH", Hz
  std::string velocity_range;            ///< "LOW:HIGH", km/s
  std::optional<double> rest_frequency;  ///< Hz
  std::optional<ImageMode> mode;         ///< cube; else all samples are one channel
  std::optional<double> average_time;    ///< s
  std::int64_t average_channels = 1;     ///< also of arrays
  /// What averaging costs, once data were read.
  std::shared_ptr<io::AveragingCost> cost = std::make_shared<io::AveragingCost>();

  bool averages() const { return average_time || average_channels > 1; }
};

/// Says what averaging costs, and keeps it in `set.cost`. @returns the same for summary.json
std::string report_averaging(const SetOptions& set, const io::AveragingCost& cost);

/// True for measurement sets and UVFITS files, which are read by rows.
bool is_set_or_uvfits(const std::filesystem::path& path);

/// @param applies        whether the verb reads such data, once all is parsed
/// @param column_option  names the column that is read: "--column", but of a verb that writes one
void declare(OptionSet& options, SetOptions& set, const std::function<bool()>& applies,
             const std::string& column_option = "--column");
/// `--mode` of verbs to which it means nothing else.
void declare_mode(OptionSet& options, SetOptions& set, const std::function<bool()>& applies);

/// Checks what can be checked without the set. @throws UsageError
void check(const SetOptions& set);

/// The same for the library. @param channels  as --channels says  @throws UsageError
io::MeasurementSetOptions library_options(const SetOptions& set, const std::string& channels, io::SetPhases phases);

/// Reads a set or a UVFITS file, says what was left out and how the rest was understood, and keeps that for summary.json
/// (`reading`).
/// @param memory  what of memory the samples may take
/// @throws mpol::Error
io::CollectedVisibilities read_set(const std::filesystem::path& path, const SetOptions& set,
                                   const io::MeasurementSetOptions& options, io::SampleOrigins origins = io::SampleOrigins::leave,
                                   const SampleMemory& memory = {});

}  // namespace mpol::cli
