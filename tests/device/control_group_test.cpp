#include "catch.h"

#include <fstream>

#include <mpol_cpp/device/host/control_group.h>

#include "temporary_folder.h"

using namespace mpol;

namespace {

constexpr double mib = 0x1p20;

/// A machine's /proc/self/cgroup and /sys/fs/cgroup, in a folder.
class FakeMachine {
 public:
  explicit FakeMachine(const std::string& groups) { write("proc/self/cgroup", groups); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  void version_2(const std::string& group, const std::string& limit, const std::string& used,
                 const std::string& stat = "") const {
    const auto folder = "sys/fs/cgroup/" + group;
    write(folder + "/memory.max", limit);
    write(folder + "/memory.current", used);
    if (!stat.empty()) write(folder + "/memory.stat", stat);
  }
  void version_1(const std::string& group, const std::string& limit, const std::string& used,
                 const std::string& stat = "") const {
    const auto folder = "sys/fs/cgroup/memory/" + group;
    write(folder + "/memory.limit_in_bytes", limit);
    write(folder + "/memory.usage_in_bytes", used);
    if (!stat.empty()) write(folder + "/memory.stat", stat);
  }
  std::optional<double> left() const { return control_group_memory(folder_.path()); }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

std::string bytes(double mebibytes) { return std::to_string(static_cast<std::int64_t>(mebibytes * mib)) + "\n"; }

}  // namespace

TEST_CASE("without control groups, or without limits in them, there is no limit", "[device][quick]") {
  const TemporaryFolder empty;
  CHECK_FALSE(control_group_memory(empty.path()).has_value());
  const FakeMachine machine("0::/user.slice/job\n");
  CHECK_FALSE(machine.left().has_value());
  machine.version_2("user.slice/job", "max\n", bytes(100));
  CHECK_FALSE(machine.left().has_value());
}

TEST_CASE("the limit of the process's own group is seen below the root", "[device][quick]") {
  SECTION("version 2") {
    const FakeMachine machine("0::/system.slice/slurmstepd.scope/job_7/step_0\n");
    machine.version_2("system.slice/slurmstepd.scope/job_7/step_0", bytes(1000), bytes(300));
    CHECK(machine.left() == 700 * mib);
  }
  SECTION("version 1") {
    const FakeMachine machine("12:cpuset:/other\n9:cpu,memory:/slurm/uid_1000/job_7\n1:name=systemd:/x\n");
    machine.version_1("slurm/uid_1000/job_7", bytes(1000), bytes(300));
    machine.version_1("other", bytes(10), bytes(0));
    CHECK(machine.left() == 700 * mib);
  }
  SECTION("version 1 beside an empty hierarchy of version 2") {
    const FakeMachine machine("4:memory:/job\n0::/\n");
    machine.version_1("job", bytes(1000), bytes(300));
    CHECK(machine.left() == 700 * mib);
  }
}

TEST_CASE("of nested groups the one that leaves least binds", "[device][quick]") {
  const FakeMachine machine("0::/a/b/c\n");
  machine.version_2("a/b/c", bytes(4000), bytes(100));
  machine.version_2("a/b", "max\n", bytes(100));
  machine.version_2("a", bytes(2000), bytes(1500));  // its other children use it up
  CHECK(machine.left() == 500 * mib);
  machine.version_2("a/b/c", bytes(400), bytes(100));
  CHECK(machine.left() == 300 * mib);
}

TEST_CASE("files that the kernel keeps in memory do not count as used", "[device][quick]") {
  SECTION("version 2") {
    const FakeMachine machine("0::/job\n");
    machine.version_2("job", bytes(1000), bytes(900),
                      "anon 1048576\ninactive_file " + bytes(500) + "active_file " + bytes(200) + "slab 77\n");
    CHECK(machine.left() == 800 * mib);
  }
  SECTION("version 1 counts those of the groups below too") {
    const FakeMachine machine("3:memory:/job\n");
    machine.version_1("job", bytes(1000), bytes(900),
                      "inactive_file " + bytes(1) + "total_inactive_file " + bytes(500) + "total_active_file " + bytes(200));
    CHECK(machine.left() == 800 * mib);
  }
  SECTION("a statistic that is behind never makes more room than the limit") {
    const FakeMachine machine("0::/job\n");
    machine.version_2("job", bytes(1000), bytes(100), "inactive_file " + bytes(500));
    CHECK(machine.left() == 1000 * mib);
  }
}

TEST_CASE("a group that is over its limit leaves nothing", "[device][quick]") {
  const FakeMachine machine("0::/job\n");
  machine.version_2("job", bytes(100), bytes(150));
  CHECK(machine.left() == 0.0);
}

TEST_CASE("a container that does not see its own group has the limit of the root that it sees", "[device][quick]") {
  const auto groups = GENERATE(as<std::string>(), "0::/docker/0123abc\n", "0::/../../docker/0123abc\n", "0::/\n");
  const FakeMachine machine(groups);
  machine.version_2("", bytes(512), bytes(12));
  CHECK(machine.left() == 500 * mib);
}

TEST_CASE("files that say nothing sensible set no limit", "[device][quick]") {
  const auto text = GENERATE(as<std::string>(), "", "\n", "many\n", "-5\n", "12MB\n", "1e9\n", "99999999999999999999999\n");
  INFO("limit \"" << text << '"');
  const FakeMachine machine("no colon\n0:\n:\n0::/job\n");
  machine.version_2("job", text, bytes(1));
  CHECK_FALSE(machine.left().has_value());
  machine.version_2("job", bytes(100), text, "inactive_file\nactive_file many\n");
  CHECK(machine.left() == 100 * mib);
}

TEST_CASE("folders of control groups come from the process's own upwards", "[device][quick]") {
  const FakeMachine machine("5:cpu,cpuacct:/a/b\n");
  machine.write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "1");
  const auto mount = machine.root() / "sys/fs/cgroup/cpu";
  CHECK(control_group_folders("cpu", machine.root()) == std::vector{mount / "a/b", mount / "a", mount});
}
