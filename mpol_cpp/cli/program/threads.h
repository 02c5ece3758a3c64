#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// CPUs that this process may use: the smaller of its affinity mask and its control group's quota (rounded up), >= 1.
std::int64_t available_cpus();

/// The quota of a control group in CPUs from the text of cpu.max (version 2) or of cfs_quota_us and cfs_period_us
/// (version 1); empty when there is none.
std::optional<double> quota_of_cpu_max(const std::string& cpu_max);
std::optional<double> quota_of_cfs(const std::string& quota_us, const std::string& period_us);

/// Declares --threads.
void declare_threads(OptionSet& options, std::optional<std::int64_t>& threads);

/// Sets the number of threads of LibTorch's operators; nothing given: available_cpus(). Returns the number.
std::int64_t use_threads(std::optional<std::int64_t> threads);

}  // namespace mpol::cli
