#include "catch.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include <mpol_cpp/io/visibilities_npz.h>

#include "../python.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double allowed_bytes = 64.0 * (1 << 20);
constexpr double allowed_part = 0.10;

/// A value of /proc/self/status in bytes.
double process_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return 1024.0 * std::stod(line.substr(key.size() + 1));
  }
  return 0;
}

/// Runs the hidden test case below in a fresh process; its output is "peak held", bytes above the idle program.
std::pair<double, double> measure(const std::filesystem::path& big, const std::filesystem::path& small,
                                  const std::string& channels) {
  ::setenv("MPOL_TEST_BIG", big.c_str(), 1);
  ::setenv("MPOL_TEST_SMALL", small.c_str(), 1);
  ::setenv("MPOL_TEST_CHANNELS", channels.c_str(), 1);
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto output = run_command("'" + self + "' 'memory of reading one file'");
  const auto at = output.find("measured ");
  REQUIRE(at != std::string::npos);
  std::size_t used = 0;
  const double peak = std::stod(output.substr(at + 9), &used);
  return {peak, std::stod(output.substr(at + 9 + used))};
}

}  // namespace

TEST_CASE("memory of reading one file", "[.io]") {
  const char* big = std::getenv("MPOL_TEST_BIG");
  REQUIRE(big != nullptr);
  io::ReadOptions options;
  if (*std::getenv("MPOL_TEST_CHANNELS") != '\0') options.channels = {std::stoll(std::getenv("MPOL_TEST_CHANNELS"))};
  static_cast<void>(io::read_npz(std::getenv("MPOL_TEST_SMALL")));
  const double idle = process_bytes("VmRSS");
  const auto visibilities = io::read_npz(big, options);
  std::cout << "measured " << process_bytes("VmHWM") - idle << " " << visibilities.memory_bytes() << "\n";
}

TEST_CASE("reading needs little memory beside the arrays", "[io]") {
  const TemporaryFolder folder;
  run_python(R"(
import sys
import numpy as np
def save(name, nchan, nvis, save=np.savez, order='<', layout=np.ascontiguousarray, apart=False):
    u = np.linspace(1, 2, nvis).astype(order + 'f4')
    data = layout(np.full((nchan, nvis), 1 + 2j, order + 'c8'))
    weight = layout(np.ones((nchan, nvis), order + 'f4'))
    parts = dict(data_re=data.real, data_im=data.imag) if apart else dict(data=data)
    save(f'{sys.argv[1]}/{name}.npz', uu=u, vv=u, weight=weight, **parts)
save('small', 1, 100)
save('plain', 1, 10_000_000)
save('fortran', 4, 3_000_000, np.savez_compressed, '>', np.asfortranarray)
save('apart', 2, 5_000_000, order='>', apart=True)
)",
             {folder.path().string()});
  for (const auto& [file, channels] :
       {std::pair<std::string, std::string>{"plain", ""}, {"fortran", ""}, {"fortran", "2"}, {"apart", ""}, {"apart", "1"}}) {
    const auto [peak, held] = measure(folder / (file + ".npz"), folder / "small.npz", channels);
    INFO(file << " channels " << channels << ": arrays of " << held / (1 << 20) << " MiB, peak " << peak / (1 << 20) << " MiB");
    CHECK(held > 50e6);
    CHECK(peak <= held * (1 + allowed_part) + allowed_bytes);
    CHECK(peak >= 0.9 * held);
  }
}
