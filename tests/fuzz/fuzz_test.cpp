#include "catch.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "allocations.h"
#include "input_file.h"
#include "mutator.h"
#include "readers.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

using namespace mpol::testing;

namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

/// Inputs for each reader: 1000, or as many as MPOL_FUZZ_INPUTS says; from MPOL_FUZZ_SEED.
std::uint64_t inputs() { return setting("MPOL_FUZZ_INPUTS", 1000); }
std::uint64_t seed() { return setting("MPOL_FUZZ_SEED", 1); }

const std::uint8_t* data_of(const std::string& bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

/// What was read when a sanitizer ends the program: the input itself is left in the folder of inputs.
struct {
  std::string reader;
  std::uint64_t number = 0;
} present;

[[maybe_unused]] void tell_input() {
  std::fprintf(stderr, "fuzzing: reader %s, seed %llu, input %llu; its file is in %s\n", present.reader.c_str(),
               static_cast<unsigned long long>(seed()), static_cast<unsigned long long>(present.number), input_folder().c_str());
}

/// Bytes that nobody can reach any more; none where leaks are not looked for.
bool leaks() {
#ifdef __SANITIZE_ADDRESS__
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

/// Keeps an input that was judged wrongly, and says where.
std::string kept(const std::string& bytes) {
  const auto path = std::filesystem::temp_directory_path() / ("fuzz-" + present.reader + "-" + std::to_string(present.number));
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace

TEST_CASE("files that the fuzzing begins with are read", "[fuzz][quick]") {
  for (const auto& reader : fuzzed_readers()) {
    int number = 0;
    for (const auto& file : reader.corpus()) {
      INFO(reader.name << " " << number++);
      CHECK(reader.read(data_of(file), file.size()) == 0);
    }
  }
}

TEST_CASE("the same seed damages files alike, another differently", "[fuzz][quick]") {
  const auto corpus = csv_corpus();
  Mutator first(corpus, 1), again(corpus, 1), other(corpus, 2);
  int differences = 0;
  for (int i = 0; i < 100; ++i) {
    const auto file = first.next();
    CHECK(file == again.next());
    differences += file != other.next() ? 1 : 0;
  }
  CHECK(differences > 50);
}

TEST_CASE("memory is counted where the address sanitizer is", "[fuzz][quick]") {
  const AllocationWatch watch;
  {
    const std::vector<char> held(1 << 20);
    CHECK(held.back() == 0);
  }
  const std::vector<char> more(1 << 10);
  CHECK(more.back() == 0);
  CHECK((watch.most() >= 1 << 20) == AllocationWatch::available());
  CHECK(watch.most() < (1 << 20) + (1 << 16));
}

TEST_CASE("no file crashes a reader, leaks, or takes more memory than ten times its size", "[fuzz][quick]") {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(tell_input);
#endif
  std::printf("fuzzing: %llu inputs for each reader, seed %llu\n", static_cast<unsigned long long>(inputs()),
              static_cast<unsigned long long>(seed()));
  for (const auto& reader : fuzzed_readers()) {
    const auto corpus = reader.corpus();
    for (const auto& file : corpus) reader.read(data_of(file), file.size());  // what is made once is not counted
    Mutator mutator(corpus, seed());
    std::uint64_t refusals = 0;
    std::int64_t most = 0;
    for (std::uint64_t number = 0; number < inputs(); ++number) {
      present = {reader.name, number};
      auto file = mutator.next();
      if (reader.repair != nullptr && number % 4 != 0) file = reader.repair(std::move(file));
      const AllocationWatch watch;
      try {
        refusals += static_cast<std::uint64_t>(reader.read(data_of(file), file.size()));
      } catch (const std::exception& error) {
        FAIL_CHECK("no error of ours from " << kept(file) << ": " << error.what());
      }
      most = std::max(most, watch.most() - 10 * std::ssize(file));
      if (watch.most() > allocation_limit(std::ssize(file))) {
        FAIL_CHECK(kept(file) << " of " << file.size() << " bytes took " << watch.most());
      }
    }
    INFO(reader.name << ": " << refusals << " of " << inputs() << " refused");
    CHECK(refusals > 0);
    CHECK(refusals < inputs());
    CHECK_FALSE(leaks());
    std::printf("fuzzing: %s: %llu refused; at most %.2f MiB beyond ten times the file\n", reader.name.c_str(),
                static_cast<unsigned long long>(refusals), static_cast<double>(most) / 0x1p20);
  }
}
