#include "catch.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/atomic_file.h>

#include "../temporary_folder.h"

using namespace mpol;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a file appears complete at commit, not before", "[serialize][quick]") {
  const TemporaryFolder folder;
  const std::string binary("a\0b\n\xff", 5);
  std::string expected;
  {
    AtomicFile file(folder / "out.bin");
    for (int i = 0; i < 100000; ++i) {
      file.write(binary);
      expected += binary;
    }
    const std::string large(3'000'000, 'x');
    file.write(large);
    file.write(binary);
    expected += large + binary;
    CHECK_FALSE(std::filesystem::exists(folder / "out.bin"));
    file.commit();
    CHECK_THROWS_AS(file.write("more"), FileError);
  }
  CHECK(contents(folder / "out.bin") == expected);
  CHECK(folder.count() == 1);
}

TEST_CASE("without commit the old file stays and nothing else", "[serialize][quick]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "out.txt", "old");
  try {
    AtomicFile file(folder / "out.txt");
    file.write("new");
    throw std::runtime_error("interrupted");
  } catch (const std::runtime_error&) {
    CHECK(contents(folder / "out.txt") == "old");
  }
  CHECK(folder.count() == 1);
  write_file_atomically(folder / "out.txt", "new");
  CHECK(contents(folder / "out.txt") == "new");
  CHECK(folder.count() == 1);
}

TEST_CASE("another library may write the temporary by name", "[serialize][quick]") {
  const TemporaryFolder folder;
  AtomicFile file(folder / "out.txt");
  std::filesystem::remove(file.temporary_path());
  std::ofstream(file.temporary_path()) << "by name";
  file.commit();
  CHECK(contents(folder / "out.txt") == "by name");
}

TEST_CASE("files get the permissions that the umask leaves", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto umask_before = ::umask(027);
  write_file_atomically(folder / "out.txt", "text");
  ::umask(umask_before);
  CHECK((static_cast<unsigned>(std::filesystem::status(folder / "out.txt").permissions()) & 0777U) == 0640U);
}

TEST_CASE("what cannot be written is refused in words", "[serialize][quick]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder / "absent" / "out"), ContainsSubstring("No such file or directory") &&
                                                               ContainsSubstring("create its folder first") &&
                                                               ContainsSubstring("absent/out"));
  CHECK_THROWS_WITH(AtomicFile(folder.path()), ContainsSubstring("Is a directory") && ContainsSubstring("name a file"));
  CHECK_THROWS_WITH(AtomicFile("/dev/null"), ContainsSubstring("device"));
  CHECK_THROWS_AS(AtomicFile(""), FileError);
  std::ofstream(folder / "plain") << "x";
  CHECK_THROWS_WITH(AtomicFile(folder / "plain" / "out"), ContainsSubstring("Not a directory"));
  if (::geteuid() != 0) {
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THROWS_WITH(AtomicFile(folder / "out"), ContainsSubstring("Permission denied"));
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  }
}

TEST_CASE("a full disk leaves the old file and no temporary", "[serialize]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "out.bin", "old");
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // a limit on file sizes stands for the full disk
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int result = 1;
    try {
      write_file_atomically(folder / "out.bin", std::string(2 << 20, 'x'));
    } catch (const FileError& error) {
      result = std::string(error.what()).find("File too large") != std::string::npos ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(contents(folder / "out.bin") == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a temporary whose name is taken gets the next one", "[serialize][quick]") {
  const TemporaryFolder folder;
  std::filesystem::path next;
  {
    const AtomicFile probe(folder / "out.txt");
    next = probe.temporary_path();
  }
  // The names of the next three, as a killed process of the same number leaves them.
  const auto name = next.filename().string();
  const auto dash = name.rfind('-');
  const auto number = std::stoi(name.substr(dash + 1));
  for (int i = 1; i <= 3; ++i) {
    std::ofstream(folder / (name.substr(0, dash + 1) + std::to_string(number + i) + ".tmp")) << "stale";
  }
  write_file_atomically(folder / "out.txt", "new");
  CHECK(contents(folder / "out.txt") == "new");
  CHECK(folder.count() == 4);
}

TEST_CASE("temporaries are told by their names, and stale ones of certain files removed", "[serialize][quick]") {
  CHECK(name_of_temporary(".image.fits.12-3.tmp") == "image.fits");
  CHECK(name_of_temporary(".a.1.2-3.1-0.tmp") == "a.1.2-3");
  for (const auto* other : {"image.fits.12-3.tmp", ".image.fits.12-3", ".image.fits.12-.tmp", ".image.fits.-3.tmp", ".image.tmp",
                            ".12-3.tmp", ".image.fits12-3.tmp", "", ".tmp", ".notes.txt", ".x.1-2.tmp.bak"}) {
    INFO(other);
    CHECK(name_of_temporary(other).empty());
  }
  const TemporaryFolder folder;
  {
    const AtomicFile file(folder / "out.txt");
    CHECK(name_of_temporary(file.temporary_path().filename().string()) == "out.txt");
  }
  for (const auto* name : {".out.txt.1-0.tmp", ".out.txt.77-12.tmp", ".other.txt.1-0.tmp", ".out.txt.tmp", "out.txt"}) {
    std::ofstream(folder / name) << "x";
  }
  remove_stale_temporaries(folder.path(), [](const std::string& name) { return name == "out.txt"; });
  CHECK(folder.count() == 3);
  for (const auto* name : {".other.txt.1-0.tmp", ".out.txt.tmp", "out.txt"}) CHECK(std::filesystem::exists(folder / name));
  remove_stale_temporaries(folder / "absent", [](const std::string&) { return true; });
}

TEST_CASE("whether a file can be written is seen without touching it", "[serialize][quick]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "out.txt", "old");
  check_can_write(folder / "out.txt");
  check_can_write(folder / "new.txt");
  CHECK(contents(folder / "out.txt") == "old");
  CHECK(folder.count() == 1);
  CHECK_THROWS_WITH(check_can_write(folder / "absent" / "out"), ContainsSubstring("create its folder first"));
  CHECK(sync_folder(folder.path()));
}
