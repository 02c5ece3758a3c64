// The entry points of libFuzzer. MPOL_FUZZ_READER names the reader; --corpus FOLDER as the only arguments write its files,
// --names alone prints the names of all.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "allocations.h"
#include "input_file.h"
#include "readers.h"

using namespace mpol::testing;

namespace {

const FuzzedReader& chosen() {
  static const FuzzedReader& reader = []() -> const FuzzedReader& {
    const char* name = std::getenv("MPOL_FUZZ_READER");
    for (const auto& candidate : fuzzed_readers()) {
      if (name != nullptr && candidate.name == name) return candidate;
    }
    std::fprintf(stderr, "MPOL_FUZZ_READER must be one of:");
    for (const auto& candidate : fuzzed_readers()) std::fprintf(stderr, " %s", candidate.name.c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }();
  return reader;
}

void write_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& file : chosen().corpus()) {
    std::ofstream(folder / (chosen().name + std::to_string(number++)), std::ios::binary) << file;
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 2 && std::strcmp((*argv)[1], "--names") == 0) {
    for (const auto& reader : fuzzed_readers()) std::printf("%s\n", reader.name.c_str());
    std::exit(0);
  }
  if (*argc == 3 && std::strcmp((*argv)[1], "--corpus") == 0) {
    write_corpus((*argv)[2]);
    std::exit(0);
  }
  for (const auto& file : chosen().corpus()) {
    chosen().read(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());  // what is made once is not counted
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const AllocationWatch watch;
  chosen().read(bytes, size);
  const auto limit = allocation_limit(static_cast<std::int64_t>(size));
  if (watch.most() > limit) {
    std::fprintf(stderr, "%zu bytes took %lld, more than %lld\n", size, static_cast<long long>(watch.most()),
                 static_cast<long long>(limit));
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t most);

/// libFuzzer's own changes, with lengths and sums made right half of the time.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size, std::size_t most, unsigned seed) {
  const auto changed = LLVMFuzzerMutate(bytes, size, most);
  if (chosen().repair == nullptr || seed % 2 == 0) return changed;
  const auto repaired = chosen().repair(std::string(reinterpret_cast<const char*>(bytes), changed));
  if (repaired.size() > most) return changed;
  std::memcpy(bytes, repaired.data(), repaired.size());
  return repaired.size();
}
