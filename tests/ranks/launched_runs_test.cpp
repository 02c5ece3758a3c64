#include "catch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/train/checkpoint.h>

#include "cli/observation.h"
#include "cli/program.h"
#include "free_port.h"
#include "npy_files.h"
#include "random.h"
#include "ranks/run_checks.h"
#include "set_of_visibilities.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto soon = std::chrono::seconds(30);

/// Ranks as torchrun starts them, but that nobody looks after them.
class TorchRanks {
 public:
  void start(int size, const Words& arguments, const Words& arguments_of_second = {}) {
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      RunOptions options;
      options.environment = {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", size), fmt::format("LOCAL_RANK={}", rank),
                             "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port)};
      programs_.emplace_back(rank == 1 && !arguments_of_second.empty() ? arguments_of_second : arguments, options);
    }
  }
  Program& rank(std::size_t i) { return programs_[i]; }
  std::vector<Outcome> wait() {
    std::vector<Outcome> outcomes;
    for (auto& program : programs_) outcomes.push_back(program.wait());
    return outcomes;
  }

 private:
  std::deque<Program> programs_;
};

/// On so many ranks, with no word from any but the first. @return what the first said
Outcome run_on(int size, const Words& arguments) {
  TorchRanks ranks;
  ranks.start(size, arguments);
  const auto outcomes = ranks.wait();
  for (std::size_t rank = 1; rank < outcomes.size(); ++rank) {
    CHECK(outcomes[rank].exit_code == outcomes[0].exit_code);
    CHECK(outcomes[rank].out.empty());
    CHECK(outcomes[rank].err.empty());
  }
  return outcomes[0];
}

/// A run that several ranks share, and what its numbers may differ by.
struct SharedRun {
  const char* name;
  int ranks;
  Words options;
  double tolerance = rounding_of_doubles;
};

/// Checks that several ranks make the image of one. @param shard  what they share; @param more  options of several ranks alone
/// @return  what several ranks said
std::string check_ranks(const Scratch& scratch, const std::string& data, const SharedRun& shared, const std::string& shard,
                        const Words& more = {}) {
  INFO(shared.name);
  const auto one = scratch / fmt::format("one {}", shared.name), many = scratch / fmt::format("many {}", shared.name);
  REQUIRE(run_mpol(small_run("image", data, one, shared.options)).exit_code == 0);
  const auto run = run_on(shared.ranks, small_run("image", data, many, with(shared.options, more)));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring(fmt::format("{} ranks share {}", shared.ranks, shard)));
  CHECK(summary_of(many)["ranks"] == json{{"count", shared.ranks}, {"shard", shard}});
  check_same(many, one, shared.tolerance);
  return run.out;
}

#ifdef MPOL_MPIEXEC
/// Open MPI wants to be told that root may, and that there may be more ranks than cores; others do not look.
RunOptions mpi_options(int size) {
  RunOptions options;
  options.launcher = {MPOL_MPIEXEC, "-n", fmt::format("{}", size)};
  options.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1"};
  return options;
}

/// A program that a launcher started, by its rank.
pid_t process_of_rank(pid_t launcher, int rank) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", launcher));
  for (pid_t child = 0; file >> child;) {
    std::ifstream environment(fmt::format("/proc/{}/environ", child));
    const std::string text{std::istreambuf_iterator<char>(environment), {}};
    for (const auto* name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="}) {
      if (text.find(fmt::format("{}{}", name, rank)) != std::string::npos) return child;
    }
    if (const auto found = process_of_rank(child, rank); found > 0) return found;
  }
  return 0;
}
#endif

}  // namespace

TEST_CASE("ranks that share channels make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const std::vector<SharedRun> runs = {
      {"exact, uneven", 2, {"--dtype", "float64"}},
      {"exact, one rank with nothing", 4, {"--dtype", "float64", "--tsv", "1e-4", "--epochs", "300"}},
      {"fista", 3, {"--dtype", "float64", "--optimizer", "fista"}},
      {"gridded", 2, {"--dtype", "float64", "--likelihood", "gridded", "--optimizer", "adam", "--epochs", "40"}},
      {"loose", 3, {"--dtype", "float64", "--likelihood", "loose", "--optimizer", "sgd", "--epochs", "20"}},
      {"converging adam", 2, {"--dtype", "float64", "--entropy", "1e-5", "--epochs", "300"}},
      {"stopping", 2, {"--dtype", "float64", "--stop-relative", "1e-2", "--normalize", "visibilities"}},
      {"float32", 2, {"--dtype", "float32", "--optimizer", "adam", "--epochs", "40"}, rounding_of_floats},
      {"mask and start of the cube", 2, with({"--dtype", "float64", "--epochs", "100"}, mask_and_start(scratch.path(), 3))},
      {"mask and start of the cube, softplus", 3,
       with({"--dtype", "float64", "--optimizer", "adam", "--epochs", "30"}, mask_and_start(scratch.path(), 3))},
      {"joined by differences", 3, {"--dtype", "float64", "--tv-channel", "0.3U", "--epochs", "60"}},
      {"joined by spectra, one rank with nothing",
       4,
       {"--dtype", "float64", "--group-sparsity", "0.3U", "--spectral-smoothness", "1U", "--epochs", "60"}},
      {"joined with wavelets", 2, {"--dtype", "float64", "--tv-channel", "0.3U", "--wavelets", "0.1U", "--epochs", "40"}},
      {"joined, by adam",
       2,
       {"--dtype", "float64", "--tv-channel", "1e-4", "--optimizer", "adam", "--epochs", "20", "--shard", "channels"}},
      {"a mask for all channels", 2, with({"--dtype", "float64", "--epochs", "100"}, mask_and_start(scratch.path(), 1))},
  };
  for (const auto& run : runs) check_ranks(scratch, data, run, "channels");
}

TEST_CASE("ranks that share channels find the same noise, and set the same weights anew", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(3);
  arrays["weight"] = arrays["weight"] * 4;
  const auto data = write_observation(scratch / "vis.npz", arrays);
  const Words how = {"--dtype", "float64", "--mode", "cube"};
  check_ranks(scratch, data, {"doubted", 2, how}, "channels");
  const auto one = summary_of(scratch / "one doubted"), many = summary_of(scratch / "many doubted");
  REQUIRE(one["noise"].is_object());
  CHECK(one["noise"]["factor"].get<double>() == Approx(2).epsilon(0.1));  // of which the fit has followed a part
  CHECK(many["noise"]["factor"].get<double>() == Approx(one["noise"]["factor"].get<double>()).epsilon(1e-9));
  CHECK(many["lambda"] == one["lambda"]);
}

TEST_CASE("ranks that share channels give each the same weights of its own", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(3);
  arrays["weight"] = arrays["weight"] * 1e-3;  // noise that is as the weights say, and a source in one channel
  const at::Tensor noise = mpol::testing::normal(arrays["data"].sizes(), torch::kComplexDouble, 5);
  const auto line = at::tensor({0.0, 1.0, 0.1}, torch::kFloat64).view({3, 1});
  arrays["data"] = arrays["data"] * line + noise * (2 / arrays["weight"]).sqrt();
  const auto data = write_observation(scratch / "line.npz", arrays);
  const Words how = {"--dtype", "float64", "--mode", "cube"};
  check_ranks(scratch, data, {"line", 2, how}, "channels");
  const auto one = summary_of(scratch / "one line"), many = summary_of(scratch / "many line");
  CHECK(many["lambda"] == one["lambda"]);
  const auto units = one["lambda"]["tv"]["channels"]["unit_value"].get<std::vector<double>>();
  REQUIRE(units.size() == 3);
  CHECK(units[1] < units[0]);
  CHECK(one["lambda"]["tv"]["unit_value"].get<double>() >= units[1]);
}

TEST_CASE("ranks share the channels of one group after another", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(5));
  // Groups of 2, 2 and 1 channels: of three ranks one has nothing to do in each, of the last two.
  const Words groups = {"--dtype", "float64", "--channels-at-once", "2"};
  const std::vector<SharedRun> runs = {{"converging", 2, groups},
                                       {"idle ranks", 3, with(groups, {"--optimizer", "adam", "--epochs", "40"})},
                                       {"files", 2, with(with(groups, {"--epochs", "60"}), mask_and_start(scratch.path(), 5))}};
  for (const auto& run : runs) {
    const auto said = check_ranks(scratch, data, run, "channels");
    CHECK_THAT(said, ContainsSubstring("3 groups of at most 2 channels"));
    CHECK(summary_of(scratch / fmt::format("many {}", run.name))["channels_at_once"] == 2);
  }
  const auto refused = run_on(2, small_run("image", data, scratch / "out", with(groups, {"--shard", "visibilities"})));
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_names("--shard visibilities is for all channels together"));
}

TEST_CASE("ranks that read their own channels and samples alone make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(5);
  arrays.emplace("frequency", torch::linspace(2.30e11, 2.31e11, 5, torch::kFloat64));
  for (const auto* key : {"uu", "vv"}) arrays.at(key) = arrays.at(key) * (mpol::units::speed_of_light / 2.305e11);
  const auto data = write_observation(scratch / "cube.npz", arrays);
  const Words base = {"--uv-unit", "m", "--dtype", "float64", "--optimizer", "adam", "--epochs", "30"};
  const std::vector<std::pair<SharedRun, std::string>> runs = {
      {{"some channels", 3, with(base, {"--channels", "4,0,2,1"})}, "channels"},
      {{"given frequencies", 2, with(base, {"--channels", "4,1,2", "--frequency", "2.3e11,2.4e11,2.5e11"})}, "channels"},
      {{"averaged", 2, with(base, {"--average-channels", "2"})}, "channels"},
      {{"averaged, in groups", 2, with(base, {"--average-channels", "2", "--channels-at-once", "2"})}, "channels"},
      {{"samples of averages", 3, with(base, {"--average-channels", "2", "--tv-channel", "1e-4"})}, "visibilities"},
      {{"guessed", 2, with(base, {"--guess-lambda", "tsv", "--sparsity", "1e-4"})}, "channels"},
      {{"converging, idle ranks", 4, {"--uv-unit", "m", "--dtype", "float64", "--channels", "0,1,3"}}, "channels"},
      {{"elsewhere", 2, {"--uv-unit", "m", "--dtype", "float64", "--center", "0.1,-0.2"}}, "channels"},
  };
  for (const auto& [run, shard] : runs) check_ranks(scratch, data, run, shard);
  // Files of one array each, whose digest the ranks find together.
  write_npy_folder(scratch / "cube", arrays);
  check_ranks(scratch, (scratch / "cube").string(), {"folder", 3, {"--uv-unit", "m", "--dtype", "float64"}}, "channels");
  const auto digest_of = [&](const std::string& name) {
    const auto text = read_text(scratch / name / "run.toml");
    return text.substr(text.find("data_sha256"), 80);
  };
  CHECK(digest_of("many folder") == digest_of("one folder"));
}

TEST_CASE("a rank may have short baselines alone, and one beyond the grid is the error of one rank", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(3);
  for (const auto* key : {"uu", "vv"}) arrays.at(key) = arrays.at(key).repeat({3, 1});
  const auto scaled = [&](const char* name, double factor) {  // the last channel's baselines
    auto own = arrays;
    for (const auto* key : {"uu", "vv"}) {
      own.at(key) = own.at(key).clone();
      own.at(key)[2].mul_(factor);
    }
    return write_observation(scratch / name, own);
  };
  const Words base = {"--dtype", "float64", "--optimizer", "adam", "--epochs", "10"};
  check_ranks(scratch, scaled("short.npz", 0.1), {"short", 3, base}, "channels");
  auto samples = small_observation(1);
  for (const auto* key : {"uu", "vv"}) samples.at(key).slice(0, 400, 600).mul_(0.1);
  check_ranks(scratch, write_observation(scratch / "samples.npz", samples), {"short samples", 3, base}, "visibilities",
              {"--shard", "visibilities"});
  const auto data = scaled("long.npz", 5);
  const auto one = run_mpol(small_run("image", data, scratch / "one", base));
  const auto many = run_on(3, small_run("image", data, scratch / "many", base));
  CHECK(one.exit_code == 1);
  CHECK(many.exit_code == one.exit_code);
  CHECK(one.error_names("beyond the edge of the grid"));
  CHECK(many.err == one.err);
}

TEST_CASE("ranks that have channels of their own choose the grid of one rank", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(5);
  const auto phase = (arrays.at("uu") * 12 + arrays.at("vv") * 9) * (2 * M_PI * mpol::units::arcsec);  // far off the phase centre
  const auto turn = torch::polar(torch::ones_like(phase), phase);
  arrays.at("data") = arrays.at("data") * turn;
  const auto data = write_observation(scratch / "cube.npz", arrays);
  const Words base = {"--dtype", "float64", "--optimizer", "adam", "--epochs", "5", "--device", "cpu", "--threads", "1"};
  struct Case {
    const char* name;
    int ranks;
    Words options;
  };
  const std::vector<Case> cases = {{"all", 3, {}},
                                   {"pixels given", 2, {"--npix", "64", "--center", "0.1,-0.2"}},
                                   {"cells given, idle ranks", 7, {"--cell-size", "0.08"}},
                                   {"place given", 2, {"--center", "12,9"}},
                                   {"in groups", 2, {"--cell-size", "0.08", "--channels-at-once", "2"}},
                                   {"of samples", 2, {"--cell-size", "0.08", "--tv-channel", "1e-4", "--shard", "visibilities"}}};
  for (const auto& [name, ranks, options] : cases) {
    INFO(name);
    const auto one = scratch / fmt::format("one {}", name), many = scratch / fmt::format("many {}", name);
    REQUIRE(run_mpol(with(with({"image", data, "-o", one.string()}, base), options)).exit_code == 0);
    const auto run = run_on(ranks, with(with({"image", data, "-o", many.string()}, base), options));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    check_same(many, one, rounding_of_doubles);
    const auto own = summary_of(many), wanted = summary_of(one);
    CHECK(own["center_arcsec"] == wanted["center_arcsec"]);
    for (const auto& choice : wanted["choices"]) {
      const bool is_of_grid = choice["option"] == "cell-size" || choice["option"] == "npix" || choice["option"] == "center";
      if (is_of_grid) CHECK(std::count(own["choices"].begin(), own["choices"].end(), choice) == 1);
    }
  }
}

TEST_CASE("ranks that get their share of several files from the first make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "a.npz", small_observation(2, 200));
  const auto more = write_observation(scratch / "b.npz", small_observation(1, 201));
  const Words base = {"--more-data", more, "--dtype", "float64", "--optimizer", "adam", "--epochs", "30"};
  const std::vector<SharedRun> runs = {{"exact", 3, base}, {"loose", 2, with(base, {"--likelihood", "loose"})}};
  for (const auto& run : runs) check_ranks(scratch, data, run, "visibilities", {"--shard", "visibilities"});
}

#ifdef MPOL_TEST_SETS
TEST_CASE("ranks that get their share of a measurement set from the first make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  auto arrays = small_observation(4);
  const auto frequencies = torch::linspace(2.30e11, 2.31e11, 4, torch::kFloat64);
  const double metres = mpol::units::speed_of_light / 2.305e11;
  mpol::Visibilities visibilities(mpol::Baselines::in_metres(arrays.at("uu") * metres, arrays.at("vv") * metres, frequencies),
                                  arrays.at("data"), arrays.at("weight"));
  visibilities.set_frequencies(frequencies);
  TestSet set;
  add_window(set, visibilities);
  set.rows[7].flags.assign(8, false);
  set.rows[7].flags[2] = true;  // a row that a cube cannot take, which the rank of the other channels does not see
  write_set(scratch / "disc.ms", set);
  const auto data = (scratch / "disc.ms").string();
  const Words base = {"--dtype", "float64", "--optimizer", "adam", "--epochs", "30"};
  const std::vector<std::pair<SharedRun, std::string>> runs = {
      {{"cube", 3, with(base, {"--mode", "cube"})}, "channels"},
      {{"selected, idle ranks", 4, with(base, {"--mode", "cube", "--channels", "0,2-3"})}, "channels"},
      {{"groups", 2, with(base, {"--mode", "cube", "--channels-at-once", "2"})}, "channels"},
      {{"samples of a cube", 2, with(base, {"--mode", "cube", "--tv-channel", "1e-4"})}, "visibilities"},
      {{"continuum", 3, with(base, {"--mode", "continuum", "--channels", "1-2"})}, "visibilities"},
      {{"turned", 2, with(base, {"--mode", "cube", "--center", "0.1,-0.2"})}, "channels"},
  };
  for (const auto& [run, shard] : runs)
    check_ranks(scratch, data, run, shard, shard == "visibilities" ? Words{"--shard", "visibilities"} : Words{});
}
#endif

TEST_CASE("ranks that share visibilities make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation(1, 601));
  const int ranks = GENERATE(2, 3);
  const auto dtype = GENERATE(std::string("float64"), std::string("float32"));
  check_ranks(scratch, data,
              {"adam",
               ranks,
               {"--dtype", dtype, "--optimizer", "adam", "--epochs", "40"},
               dtype == "float64" ? rounding_of_doubles : rounding_of_floats},
              "visibilities");
}

TEST_CASE("ranks that share samples of the loose likelihood make the image of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation(2, 601));
  const std::vector<SharedRun> runs = {
      {"converging", 3, {}},
      {"adam", 2, {"--optimizer", "adam", "--epochs", "20"}},
      {"chunks", 2, {"--mode", "continuum", "--batch-size", "auto", "--optimizer", "sgd", "--epochs", "20"}},
      {"student", 3, {"--mode", "continuum", "--noise", "student", "--optimizer", "adam", "--epochs", "20"}}};
  for (auto run : runs) {
    run.options = with({"--dtype", "float64", "--likelihood", "loose"}, run.options);
    const auto said = check_ranks(scratch, data, run, "visibilities", {"--shard", "visibilities"});
    CHECK_THAT(said, ContainsSubstring("(asked for): "));
  }
}

TEST_CASE("samples of the loose likelihood are shared where that takes less time than exchanges", "[cli][ranks]") {
  const Scratch scratch;
  const auto run_of = [&](std::int64_t samples) {
    const auto data = write_observation(scratch / "data.npz", small_observation(1, samples));
    return run_on(2, small_run(
                         "image", data, scratch / "out",
                         {"--likelihood", "loose", "--dtype", "float64", "--optimizer", "adam", "--epochs", "2", "--overwrite"}))
        .out;
  };
  const auto few = run_of(11);  // whose 0.4 us nothing is sent in
  CHECK_THAT(few,
             ContainsSubstring("the first does all (the image has one channel, and to exchange 1024 pixels in each step takes "));
  CHECK_THAT(few, ContainsSubstring(" a second, longer than the 0.0002"));
  const auto refused =
      run_on(2, small_run("image", (scratch / "data.npz").string(), scratch / "other",
                          {"--likelihood", "loose", "--optimizer", "admm", "--epochs", "5", "--shard", "visibilities"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_names("admm needs the whole likelihood on one rank"));
  CHECK_THAT(run_of(1'000'000),  // 40 ms
             ContainsSubstring("2 ranks share visibilities (the image has one channel): 500000 of 1000000 samples"));
}

TEST_CASE("ranks that share rows of the image make that of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation(2, 601));
  const std::vector<SharedRun> runs = {
      {"uneven", 3, {"--dtype", "float64", "--optimizer", "adam", "--epochs", "40"}},
      {"converging", 2, {"--dtype", "float64"}},
      {"continuum", 2, {"--dtype", "float64", "--mode", "continuum", "--optimizer", "sgd", "--epochs", "20"}},
      {"float32", 3, {"--dtype", "float32", "--optimizer", "adam", "--epochs", "40"}, rounding_of_floats},
  };
  for (const auto& run : runs) {
    const auto said = check_ranks(scratch, data, run, "rows", {"--shard", "rows"});
    CHECK_THAT(said, ContainsSubstring("(asked for): "));
  }
}

TEST_CASE("ranks sample the errors of what they share", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3, 601));
  struct Case {
    const char* name;
    const char* shard;
    int ranks;
    Words options;
  };
  const std::vector<Case> cases = {
      {"uneven", "channels", 2, {}},
      {"one rank with nothing", "channels", 4, {"--likelihood", "gridded", "--scatter-check", "off"}},
      {"groups, idle ranks", "channels", 3, {"--channels-at-once", "2"}},
      {"samples", "channels", 2, {"--samples", "5"}},
      {"sums", "visibilities", 2, {"--samples", "5"}},
      {"loose", "visibilities", 2, {"--likelihood", "loose"}},
      {"rows", "rows", 2, {"--samples", "5"}},
  };
  for (const auto& [name, shard, ranks, more] : cases) {
    INFO(name);
    const bool of_channels = std::string(shard) == "channels";
    const auto options = with(more, {"--dtype", "float64"});
    const auto one = scratch / fmt::format("one {}", name), many = scratch / fmt::format("many {}", name);
    REQUIRE(run_mpol(small_run("image", data, one, options)).exit_code == 0);
    const auto run = run_on(ranks, small_run("image", data, many, with(options, {"--shard", shard})));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    check_errors(many, one, of_channels ? std::nullopt : std::optional(1e-6));  // maps are written in float32
    CHECK(std::filesystem::exists(many / "std.fits") == (more.size() == 2 && more[0] == "--samples"));
  }
  const auto joined = run_on(2, small_run("image", data, scratch / "joined", {"--tv-channel", "0.3U", "--epochs", "30"}));
  REQUIRE(joined.exit_code == 0);
  CHECK(summary_of(scratch / "joined")["why_no_errors"] == "tv-channel joins channels, which were shared");
}

TEST_CASE("rows are shared by no fit that needs the whole likelihood", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation(1, 601));
  const std::vector<std::pair<Words, const char*>> cases = {
      {{"--likelihood", "gridded"}, "has no transforms of the image"},
      {{"--optimizer", "lbfgs", "--epochs", "5"}, "lbfgs needs the whole likelihood on one rank"},
      {{"--optimizer", "admm", "--epochs", "5"}, "admm needs the whole likelihood on one rank"},
      {{"--test-structure", "circle:0,0,0.5"}, "--test-structure needs the whole fit on one rank"}};
  for (const auto& [options, words] : cases) {
    const auto run = run_on(2, small_run("image", data, scratch / "out", with(options, {"--shard", "rows"})));
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
  }
  const auto devices = run_mpol(small_run("image", data, scratch / "out", {"--device", "cpu,cpu", "--shard", "rows"}));
  CHECK(devices.exit_code == 2);
  CHECK(devices.error_names("processes share rows"));
  CHECK(names_in(scratch / "out").empty());
}

TEST_CASE("ranks that share folds find the scan of one rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "data.npz", small_observation());
  const Words options = {"--dtype", "float64", "--tv", "0.3U:3U:2", "--sparsity", "1U", "--folds", "3"};
  REQUIRE(run_mpol(small_run("crossval", data, scratch / "one", options)).exit_code == 0);
  REQUIRE(run_on(2, small_run("crossval", data, scratch / "many", options)).exit_code == 0);
  CHECK(read_text(scratch / "many" / "scan.csv") == read_text(scratch / "one" / "scan.csv"));
  check_same(scratch / "many", scratch / "one", rounding_of_doubles);
}

TEST_CASE("any number of ranks goes on where others ended", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  const Words options = GENERATE(Words{"--optimizer", "adam"}, Words{"--optimizer", "pogm"},
                                 Words{"--tv-channel", "0.3U", "--group-sparsity", "0.1U"});
  const auto run = [&](const char* out, const char* epochs) {
    return small_run("image", data, scratch / out, with(options, {"--dtype", "float64", "--epochs", epochs}));
  };
  REQUIRE(run_mpol(run("straight", "30")).exit_code == 0);
  REQUIRE(run_on(3, run("parts", "10")).exit_code == 0);
  REQUIRE(run_on(2, with(run("parts", "20"), {"--resume"})).exit_code == 0);
  REQUIRE(run_mpol(with(run("parts", "30"), {"--resume"})).exit_code == 0);
  check_same(scratch / "parts", scratch / "straight", rounding_of_doubles);
  const auto finished = run_on(2, with(run("parts", "30"), {"--resume"}));
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, ContainsSubstring("nothing to do"));
}

TEST_CASE("what a run would do is said by the first of several ranks, and no rank waits for another", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto* verb = GENERATE("image", "crossval");
  const auto begin = Clock::now();
  const auto run = run_on(2, {verb, data, "--cell-size", "0.1", "--npix", "32", "--device", "cpu", "--dry-run"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("optimizer"));
  CHECK(Clock::now() - begin < soon);
}

TEST_CASE("ranks end together, with one line", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto begin = Clock::now();
  const auto missing = run_on(3, small_run("image", (scratch / "missing.npz").string(), scratch / "out", {}));
  CHECK(missing.exit_code == 1);
  CHECK(missing.error_lines().size() == 1);
  CHECK(missing.error_names("missing.npz"));
  const auto usage = run_on(2, small_run("image", data, scratch / "out", {"--npix", "3"}));
  CHECK(usage.exit_code == 2);
  CHECK(usage.error_lines().size() == 1);
  const auto refused =
      run_on(2, small_run("image", data, scratch / "out", {"--shard", "channels", "--optimizer", "lbfgs", "--epochs", "5"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_names("lbfgs takes all channels together"));
  CHECK(run_on(2, small_run("image", data, scratch / "out", {"--shard", "visibilities", "--likelihood", "gridded"})).exit_code ==
        2);
  CHECK(names_in(scratch / "out").empty());
  CHECK(Clock::now() - begin < soon);
}

TEST_CASE("an error of one rank ends all with its message and exit code", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto begin = Clock::now();
  TorchRanks ranks;
  ranks.start(3, small_run("image", data, scratch / "out", {}),
              small_run("image", (scratch / "missing.npz").string(), scratch / "out", {}));
  const auto outcomes = ranks.wait();
  for (const auto& outcome : outcomes) CHECK(outcome.exit_code == 1);
  CHECK(outcomes[1].error_names("missing.npz"));
  CHECK(outcomes[1].error_names("(rank 1)"));
  CHECK(Clock::now() - begin < soon);
}

TEST_CASE("a rank that dies or stands still ends the others after their time-out", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  // The first rank runs the store here, which torchrun's agent does otherwise: where it stands still, nothing answers.
  const auto [which, signal] =
      GENERATE(std::pair(std::size_t{0}, SIGKILL), std::pair(std::size_t{1}, SIGKILL), std::pair(std::size_t{1}, SIGSTOP));
  TorchRanks ranks;
  ranks.start(2,
              small_run("image", data, scratch / "out",
                        {"--optimizer", "adam", "--epochs", "100000000", "--checkpoint-interval", "50", "--rank-timeout", "2"}));
  while (!std::filesystem::exists(scratch / "out" / "checkpoint.safetensors")) {
    REQUIRE(ranks.rank(0).running());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ranks.rank(which).send(signal);
  const auto begin = Clock::now();
  CHECK(ranks.rank(1 - which).wait().exit_code == 1);
  CHECK(Clock::now() - begin < soon);
  ranks.rank(which).send(SIGKILL);
}

TEST_CASE("what has nothing to share is done by the first rank", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto inspected = run_on(2, {"inspect", data});
  CHECK(inspected.exit_code == 0);
  CHECK_THAT(inspected.out, ContainsSubstring("2 channels"));
  CHECK(run_on(2, {"image", "--help"}).exit_code == 0);
  CHECK(run_on(2, {"devices"}).exit_code == 0);
  const auto alone = run_on(2, small_run("image", data, scratch / "out", {"--shard", "none", "--epochs", "5"}));
  CHECK(alone.exit_code == 0);
  CHECK_THAT(alone.out, ContainsSubstring("2 ranks: the first does all"));
}

TEST_CASE("several devices are not for several ranks", "[cli][ranks]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const auto refused = run_on(2, small_run("image", data, scratch / "out", {"--device", "cpu,cpu"}));
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_lines().size() == 1);
  CHECK(refused.error_names("each of 2 ranks takes one device"));
}

#ifdef MPOL_MPIEXEC

TEST_CASE("mpirun starts ranks that share channels and visibilities", "[cli][ranks][mpi]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(3));
  REQUIRE(run_mpol(small_run("image", data, scratch / "one", {"--dtype", "float64"})).exit_code == 0);
  for (const auto* shard : {"channels", "visibilities", "rows"}) {
    for (const int size : {2, 3, 4}) {
      const auto out = scratch / fmt::format("{} {}", shard, size);
      const auto run = run_mpol(small_run("image", data, out, {"--dtype", "float64", "--shard", shard}), mpi_options(size));
      INFO(run.err);
      REQUIRE(run.exit_code == 0);
      CHECK_THAT(run.out, ContainsSubstring(fmt::format("{} ranks share {}", size, shard)));
      check_same(out, scratch / "one", rounding_of_doubles);
    }
  }
}

TEST_CASE("errors under mpirun keep their exit code", "[cli][ranks][mpi]") {
  const Scratch scratch;
  const auto missing = run_mpol(small_run("image", (scratch / "missing.npz").string(), scratch / "out", {}), mpi_options(3));
  CHECK(missing.exit_code == 1);
  CHECK(missing.error_names("missing.npz"));
  CHECK(missing.err.find("missing.npz") == missing.err.rfind("missing.npz"));
}

TEST_CASE("mpirun ends the others of a rank that was killed", "[cli][ranks][mpi]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "cube.npz", small_observation(2));
  const int which = GENERATE(0, 1);
  const Words run =
      small_run("image", data, scratch / "out", {"--dtype", "float64", "--optimizer", "adam", "--checkpoint-interval", "50"});
  Program program(with(run, {"--epochs", "100000000"}), mpi_options(2));
  while (!std::filesystem::exists(scratch / "out" / "checkpoint.safetensors")) {
    REQUIRE(program.running());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto victim = process_of_rank(program.id(), which);
  REQUIRE(victim > 0);
  ::kill(victim, SIGKILL);
  const auto begin = Clock::now();
  CHECK(program.wait().exit_code != 0);
  CHECK(Clock::now() - begin < soon);
  // What it had done is not lost.
  const auto kept = mpol::read_checkpoint(scratch / "out" / "checkpoint.safetensors")->epochs;
  CHECK(kept >= 50);
  CHECK(run_on(2, with(run, {"--resume", "--epochs", fmt::format("{}", kept + 20)})).exit_code == 0);
}

#endif
