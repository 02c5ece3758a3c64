#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp export_help = {
    "export", "Write the visibilities of a measurement set or a UVFITS file as an .npz file",
    "Example:\n  mpol export obs.ms -o vis.npz --select \"FIELD_ID == 1\"   # uu vv weight data frequency uv_unit block …"};

struct ExportOptions {
  OutputOptions output;
  DataOptions data;
};

void declare(OptionSet& options, ExportOptions& exported) {
  auto& data = exported.data;
  options.app().add_option("SET", data.positional_data, "A measurement set")->type_name("FOLDER");
  options.path("--data", data.data, "The same as SET", Record::result);
  options.text("--channels", data.channels, "LIST", "Channels of each window to use, from 0, as in 0,3-7; default: all",
               Record::result);
  declare_threads(options, data.threads);
  declare(options, data.set, [] { return true; });
  declare_mode(options, data.set, [] { return true; });
  declare_conjugate(options, data);
  declare(options, exported.output);
  options.describe("--out", "File for the visibilities: .npz");
  options.describe("--json", "Print JSON on stdout instead of words");
}

void settle(ExportOptions& exported) {
  settle(exported.data);
  const auto& out = exported.output.out;
  if (out.empty()) throw UsageError(error_text("--out", "missing", "the visibilities need a file", "add -o OUT.npz"));
  if (!std::filesystem::exists(exported.data.data)) {
    throw FileError(error_text("SET", exported.data.data.string(), "is not there", "check the path"));
  }
  if (!is_set_or_uvfits(exported.data.data)) {
    throw DataError(error_text("SET", exported.data.data.string(), "is no measurement set: it has no table.dat; nor UVFITS",
                               "name the set's own folder, or a file of random groups; .npz files need no export"));
  }
  if (!exported.output.overwrite && std::filesystem::exists(out)) {
    throw FileError(error_text("--out", out.string(), "is there already", "choose another name or add --overwrite"));
  }
  check_can_write(out);
}

int export_set(ExportOptions& exported, const OptionSet& settings) {
  settle(exported);
  begin_verb(settings, exported.output);
  use_threads(exported.data.threads);
  const auto& data = exported.data;
  const auto phases = data.conjugate ? io::SetPhases::as_written : io::SetPhases::conjugated;
  auto set = library_options(data.set, data.channels, phases);
  set.tracks = io::RowTracks::read;
  const auto read = read_set(data.data, data.set, set, io::SampleOrigins::with_times);
  stop_if_requested();
  std::map<std::string, torch::Tensor> more = {{"block", read.windows}, {"observation", read.observations}};
  if (read.times.defined()) more["time"] = read.times;
  io::write_npz(exported.output.out, read.visibilities, io::Compression::stored, more);
  const nlohmann::ordered_json json = {{"file", exported.output.out.string()},
                                       {"n_channels", read.visibilities.nchan()},
                                       {"n_visibilities", read.visibilities.nvis()}};
  return end_verb(exported.output, summary_text(json), fmt::format("file        {}\n", exported.output.out.string()));
}

}  // namespace

Verb add_export(CLI::App& program) { return add_verb<ExportOptions>(program, export_help, export_set); }

}  // namespace mpol::cli
