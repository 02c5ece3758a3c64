#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/device/select.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

TEST_CASE("devices says of each what --device needs to know", "[cli]") {
  const auto devices = json::parse(run_mpol({"devices", "--json"}).out);
  REQUIRE(devices.size() == 1 + static_cast<std::size_t>(mpol::cuda_device_count()));
  CHECK(devices[0]["total_bytes"].get<std::int64_t>() >= devices[0]["free_bytes"].get<std::int64_t>());
  CHECK(devices[0]["free_bytes"].get<std::int64_t>() > 0);
  const auto words = run_mpol({"devices"});
  CHECK(words.exit_code == 0);
  CHECK_THAT(words.out, ContainsSubstring("free of"));
  if (devices.size() > 1) return;
  CHECK_THAT(words.out, ContainsSubstring("no GPU: " + mpol::no_gpu_reason()));
  CHECK(devices[0]["no_gpu_reason"] == mpol::no_gpu_reason());
}

TEST_CASE("devices times a step of the fit that is asked for", "[cli]") {
  const auto run = run_mpol({"devices", "--benchmark", "--npix", "48", "--dtype", "float64", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  for (const auto& device : json::parse(run.out)) {
    const auto& step = device["step"];
    CHECK(step["npix"] == 48);
    CHECK(step["dtype"] == "float64");
    CHECK(step["seconds"].get<double>() > 0);
    if (device["device"] == "cpu") CHECK(step["kind"] == "fused");
  }
  CHECK_FALSE(json::parse(run_mpol({"devices", "--json"}).out)[0].contains("step"));
  const auto words = run_mpol({"devices", "--benchmark", "--npix", "48"});
  CHECK_THAT(words.out, ContainsSubstring("ms a step of 48 x 48 pixels, float32 (fused)"));
  const auto odd = run_mpol({"devices", "--benchmark", "--npix", "33"});
  CHECK(odd.exit_code == 2);
  CHECK(odd.error_names("33"));
  const auto alone = run_mpol({"devices", "--npix", "32"});
  CHECK(alone.exit_code == 2);
  CHECK(alone.error_names("--benchmark"));
}

TEST_CASE("CUDA_VISIBLE_DEVICES in any form leaves the CPU, and a GPU that is hidden is named", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  for (const auto* form : {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1"}) {
    INFO(form);
    RunOptions options;
    options.environment = {form};
    const auto listed = run_mpol({"devices", "--json"}, options);
    CHECK(json::parse(listed.out).size() == 1);
    const auto refused = run_mpol(short_run(data, scratch / "out", {"--device", "cuda:1"}), options);
    CHECK(refused.exit_code == 1);
    CHECK(refused.error_lines().size() == 1);
    CHECK(refused.error_names("cuda:1"));
    CHECK(refused.error_names("devices here: cpu"));
  }
}
