#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>

#include "column_range_with_casacore.h"

namespace {

template <typename Action>
double seconds_of(const Action& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

/// measurement_set_benchmark SET [ROUNDS]: seconds of reading a set block by block and to visibilities that are kept, each beside
/// casacore's own getColumnRange of the columns that this needs (by blocks, and whole), in turn, and the peak of memory so far. A
/// SET that is not there is made, with 10^7 visibilities.
int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: measurement_set_benchmark SET [ROUNDS]\n");
    return 2;
  }
  try {
    const std::string set = words[1];
    const int rounds = count > 2 ? std::atoi(words[2]) : 5;
    if (!std::filesystem::exists(set)) benchmarks::make_set(set, 156250);
    fmt::print(
        "round,threads,casacore_s,reader_s,casacore_whole_s,collected_s,ratio_reader,ratio_collected,kept,kept_mib,peak_mib\n");
    for (int round = 0; round < rounds; ++round) {
      const double of_casacore = seconds_of([&] { benchmarks::read_columns(set, benchmarks::Rows::block); });
      const double of_reader = seconds_of([&] {
        const auto reader = mpol::io::open_measurement_set(set);
        while (reader->next()) continue;
      });
      const double of_casacore_whole = seconds_of([&] { benchmarks::read_columns(set, benchmarks::Rows::all); });
      std::int64_t kept = 0, bytes = 0;
      const double collected = seconds_of([&] {
        const auto reader = mpol::io::open_measurement_set(set);
        const auto read = mpol::io::collect_samples(*reader);
        kept = read.visibilities.nvis();
        bytes = read.visibilities.memory_bytes();
      });
      fmt::print("{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.2f},{:.2f},{},{:.0f},{:.0f}\n", round, at::get_num_threads(), of_casacore,
                 of_reader, of_casacore_whole, collected, of_reader / of_casacore, collected / of_casacore_whole, kept,
                 static_cast<double>(bytes) / 0x1p20, peak_mib());
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "measurement_set_benchmark: {}\n", error.what());
    return 1;
  }
  return 0;
}
