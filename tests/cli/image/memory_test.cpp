// What `mpol image` takes of memory: within its estimate, and at 10^7 visibilities within what docs/performance.md promises.
#include "catch.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <new>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/units.h>

#include "../random.h"
#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Arguments = std::vector<std::string>;

constexpr double mib = 0x1p20;

/// What estimates set aside for the program, and by how much they may be too large however little a fit takes: an idle program
/// has some of what a fit takes too.
constexpr double program_share = 184, spare = 32;

/// Random visibilities in float32 that suit cells of 0.05" on a grid of so many pixels.
std::string random_file(const std::filesystem::path& path, std::int64_t nvis, std::int64_t npix) {
  const double longest = 0.9 / (2 * 0.05 * units::arcsec) * (1 - 1.0 / static_cast<double>(npix));
  const auto spread = [&](std::uint64_t seed) { return (2 * uniform({nvis}, torch::kFloat32, seed) - 1) * longest; };
  return write_observation(path, {{"uu", spread(1)},
                                  {"vv", spread(2)},
                                  {"data", normal({nvis}, torch::kComplexFloat, 3) * 0.1},
                                  {"weight", uniform({nvis}, torch::kFloat32, 4) + 0.5}});
}

struct Memory {
  double estimated, peak;  // MiB
};

Arguments kind_of(const std::string& name) {
  Arguments arguments = {"--cell-size", "0.05", "--epochs", "2"};
  const auto likelihood =
      name == "student" ? Arguments{"--likelihood", "loose", "--noise", "student"} : Arguments{"--likelihood", name};
  arguments.insert(arguments.end(), likelihood.begin(), likelihood.end());
  return arguments;
}

/// What a run on that file says of its memory.
Memory memory_of(const std::string& data, const std::filesystem::path& out, std::int64_t npix, const Arguments& more) {
  Arguments arguments = {"image",           data,  "-o",          out.string(), "--npix", std::to_string(npix), "--device", "cpu",
                         "--scatter-check", "off", "--overwrite", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  RunOptions options;
  options.timeout = std::chrono::seconds(400);  // 125 fits of 512^2, beside other tests
  const auto outcome = run_mpol(arguments, options);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto memory = nlohmann::json::parse(read_text(out / "summary.json"))["memory_bytes"];
  return {memory["estimated"].get<double>() / mib, memory["peak"].get<double>() / mib};
}

/// The peak of a run so small that it is the program's own.
double idle_program(const std::filesystem::path& folder) {
  return memory_of(random_file(folder / "idle.npz", 100, 16), folder / "idle", 16, kind_of("gridded")).peak;
}

}  // namespace

TEST_CASE("a fit takes no more memory than its estimate says, and little less", "[cli][memory]") {
  const Scratch scratch;
  const double idle = idle_program(scratch.path());
  // What the program holds at rest differs by libraries; threads' stacks, figures and buffers of files come and go.
  const auto data = random_file(scratch / "vis.npz", 200'000, 512);
  for (const auto* likelihood : {"gridded", "exact", "loose", "student"}) {
    for (const auto& [npix, optimizer] : {std::pair(512, "adam"), std::pair(512, "lbfgs"), std::pair(512, "pogm"),
                                          std::pair(512, "admm"), std::pair(1024, "adam")}) {
      const bool is_convex = optimizer == std::string("pogm") || optimizer == std::string("admm");
      if (likelihood == std::string("student") && is_convex) continue;
      auto more = kind_of(likelihood);
      more.insert(more.end(), {"--optimizer", optimizer, "--sparsity", "1e-9", "--tv", "1e-9"});
      if (is_convex) more.insert(more.end(), {"--epochs", "40"});  // with a trail of images
      const auto memory = memory_of(data, scratch / "out", npix, more);
      const double above = memory.peak - idle, estimate = memory.estimated - program_share;
      INFO(likelihood << " " << npix << " " << optimizer << ": estimated " << memory.estimated << " MiB, peak " << memory.peak
                      << " MiB, above the program " << estimate << " and " << above);
      CHECK(memory.peak <= memory.estimated);
      // Noise is fitted before L-BFGS has pairs of many iterations.
      if (optimizer == std::string("adam")) CHECK(estimate <= 1.3 * above + spare);
    }
  }
}

TEST_CASE("a cross-validation takes no more memory than its estimate says, and not much less", "[cli][memory]") {
  const Scratch scratch;
  const double idle = idle_program(scratch.path());
  const auto data = random_file(scratch / "vis.npz", 2'000'000, 512);
  for (const auto* likelihood : {"gridded", "exact", "student"}) {
    auto more = kind_of(likelihood);
    more.insert(more.end(), {"--sparsity", "cv", "--tv", "1U", "--search-points", "1"});
    const auto memory = memory_of(data, scratch / "out", 512, more);
    INFO(likelihood << ": estimated " << memory.estimated << " MiB, peak " << memory.peak << " MiB, program " << idle);
    CHECK(memory.peak <= memory.estimated);
    CHECK(memory.estimated - program_share <= 1.6 * (memory.peak - idle) + spare);
  }
}

TEST_CASE("samples of errors take no more memory than their estimate says, and not much less", "[cli][memory]") {
  const Scratch scratch;
  const double idle = idle_program(scratch.path());
  const auto data = random_file(scratch / "vis.npz", 100'000, 512);
  auto more = kind_of("exact");
  more.insert(more.end(), {"--samples", "100", "--optimizer", "auto"});
  const auto memory = memory_of(data, scratch / "out", 512, more);
  INFO("estimated " << memory.estimated << " MiB, peak " << memory.peak << " MiB, program " << idle);
  CHECK(memory.peak <= memory.estimated);
  CHECK(memory.estimated - program_share <= 1.6 * (memory.peak - idle) + spare);
}

TEST_CASE("L-BFGS takes no more memory than its estimate says, and little less, while its history grows and when it is full",
          "[cli][memory]") {
  const Scratch scratch;
  const double idle = idle_program(scratch.path());
  const auto data = std::filesystem::path(MPOL_DATA_DIR) / "hd142527_band9.npz";
  for (const int epochs : {2, 12}) {
    const auto memory = memory_of(data, scratch / "out", 768,
                                  {"--cell-size", "0.01", "--optimizer", "lbfgs", "--epochs", std::to_string(epochs)});
    INFO(epochs << " epochs: estimated " << memory.estimated << " MiB, peak " << memory.peak << " MiB, program " << idle);
    CHECK(memory.peak <= memory.estimated);
    CHECK(memory.estimated - program_share <= 1.3 * (memory.peak - idle) + spare);
  }
}

TEST_CASE("10^7 visibilities take the memory that is promised", "[cli][memory]") {
  const Scratch scratch;
  const double idle = idle_program(scratch.path());
  constexpr std::int64_t nvis = 10'000'000, npix = 256;
  const auto data = random_file(scratch / "vis.npz", nvis, npix);
  const double held = static_cast<double>(nvis) * 20 / mib, allowance = 64 + 0.1 * held;
  const double images = 384.0 * npix * npix / mib;
  for (const auto* likelihood : {"gridded", "exact", "loose", "student"}) {
    const auto memory = memory_of(data, scratch / "out", npix, kind_of(likelihood));
    const bool sorted = likelihood == std::string("loose") || likelihood == std::string("student");
    const double samples = sorted ? static_cast<double>(nvis) * 30 / mib : 0;
    INFO(likelihood << ": estimated " << memory.estimated << " MiB, peak " << memory.peak << " MiB, program " << idle
                    << " MiB, data " << held << " MiB, above them " << memory.peak - idle - held);
    CHECK(memory.peak - idle - held <= allowance + images + samples);
    CHECK(memory.peak <= memory.estimated);
    CHECK(memory.estimated - program_share <= 1.3 * (memory.peak - idle) + spare);
  }
}

TEST_CASE("a fit that runs out of memory ends in one line with the estimate, what was free and what to change", "[cli]") {
  const Scratch scratch;
  const auto data = random_file(scratch / "vis.npz", 1000, 512);
  const auto out = scratch / "out";
  Program program({"image",
                   data,
                   "-o",
                   out.string(),
                   "--cell-size",
                   "0.05",
                   "--npix",
                   "512",
                   "--epochs",
                   "1500",
                   "--likelihood",
                   "exact",
                   "--dtype",
                   "float64",
                   "--checkpoint-interval",
                   "2",
                   "--scatter-check",
                   "off",
                   "--device",
                   "cpu"});
  while (program.running() && !std::filesystem::exists(out / "checkpoint.safetensors")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  REQUIRE(program.running());
  const rlimit no_more = {1 << 20, 1 << 20};  // what it has stays
  REQUIRE(::prlimit(program.id(), RLIMIT_AS, &no_more, nullptr) == 0);
  const auto outcome = program.wait();
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.error_lines().size() == 1);
  for (const auto* words : {"mpol image: out of memory", "estimated at", "free", "smaller --npix", "--likelihood gridded",
                            "--dtype float32", "--memory-limit"}) {
    CHECK(outcome.error_names(words));
  }
  CHECK_FALSE(std::filesystem::exists(out / "image.fits"));
}

TEST_CASE("what counts as out of memory is its type, not its words", "[cli][quick]") {
  const auto line_of = [](const std::function<int()>& action) {
    const Scratch scratch;
    const auto file = scratch / "err";
    const int before = ::dup(2);
    REQUIRE(std::freopen(file.c_str(), "w", stderr) != nullptr);
    CHECK(cli::run_to_exit_code("dirty", action) == 1);
    std::fflush(stderr);
    ::dup2(before, 2);
    ::close(before);
    return read_text(file);
  };
  CHECK_THAT(line_of([]() -> int { throw std::bad_alloc(); }), StartsWith("mpol dirty: out of memory"));
  CHECK_THAT(line_of([]() -> int { throw c10::OutOfMemoryError("no room", nullptr); }), StartsWith("mpol dirty: out of memory"));
  const auto other = line_of([]() -> int { throw c10::Error("the allocation of telescopes is odd", nullptr); });
  CHECK_THAT(other, StartsWith("mpol dirty: the allocation of telescopes is odd"));
  CHECK_THAT(other, !ContainsSubstring("memory"));
}
