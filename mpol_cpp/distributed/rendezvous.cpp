#include <mpol_cpp/distributed/rendezvous.h>

#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

extern char** environ;

namespace mpol {
namespace {

constexpr std::int64_t largest_port = 65535, most_ranks = 1 << 20;

/// The variables of one launcher.
struct Variables {
  Launcher launcher;
  const char *rank, *size, *local_rank, *local_size;
  bool needs_both;  ///< either of rank and size alone is an error; SLURM sets a rank outside of steps too
};
constexpr Variables torchrun = {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", true};
constexpr Variables others[] = {
    {Launcher::openmpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {Launcher::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", false},
};

/// "RANK=1, WORLD_SIZE is not set"
std::string seen(const Environment& environment, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    const auto found = environment.find(name);
    if (!text.empty()) text += ", ";
    text += found == environment.end() ? name + " is not set" : name + "=" + found->second;
  }
  return text;
}

ValueError refusal(const Environment& environment, Launcher launcher, const std::vector<std::string>& names, const char* limit) {
  return ValueError(fmt::format("the environment looks like that of {}: {}; {}; start mpol by it, or unset these variables",
                                to_string(launcher), seen(environment, names), limit));
}

std::optional<std::int64_t> whole_number(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  std::int64_t value = -1;
  const auto& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return -1;
  return value;
}

/// Rank and numbers of ranks; nothing where the launcher's variables are not there.
std::optional<Rendezvous> ranks_of(const Environment& environment, const Variables& variables) {
  const auto rank = whole_number(environment, variables.rank), size = whole_number(environment, variables.size);
  if (!rank && !size) return std::nullopt;
  const std::vector<std::string> names = {variables.rank, variables.size};
  if (!rank || !size) {
    if (!variables.needs_both && !size) return std::nullopt;
    throw refusal(environment, variables.launcher, names, "both must be set");
  }
  if (*size < 1 || *size > most_ranks || *rank < 0 || *rank >= *size)
    throw refusal(environment, variables.launcher, names, "they must be whole numbers, and the rank below the number of ranks");
  Rendezvous place;
  place.launcher = variables.launcher;
  place.rank = *rank;
  place.size = *size;
  const auto local_rank = whole_number(environment, variables.local_rank),
             local_size = whole_number(environment, variables.local_size);
  place.local_rank = local_rank.value_or(*rank);
  place.local_size = local_size.value_or(1);
  if (place.local_rank < 0 || place.local_size < 1)
    throw refusal(environment, variables.launcher, {variables.local_rank, variables.local_size}, "they must be whole numbers");
  return place;
}

std::string text_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

Rendezvous with_meeting_point(Rendezvous place, const Environment& environment) {
  place.address = text_of(environment, "MASTER_ADDR");
  place.port = whole_number(environment, "MASTER_PORT").value_or(0);
  if (place.size > 1 && (place.address.empty() || place.port < 1 || place.port > largest_port)) {
    throw refusal(environment, Launcher::torchrun, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
                  "ranks need an address and a port to meet at");
  }
  place.launcher_has_store = text_of(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (const auto attempt = text_of(environment, "TORCHELASTIC_RESTART_COUNT"); !attempt.empty()) place.attempt = attempt;
  return place;
}

}  // namespace

std::string to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "none";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::openmpi:
      return "Open MPI";
    case Launcher::mpich:
      return "MPICH";
    case Launcher::slurm:
      return "SLURM";
  }
  throw ValueError(fmt::format("{} is not a launcher", static_cast<int>(launcher)));
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const auto equals = text.find('='); equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Rendezvous find_rendezvous(const Environment& environment) {
  if (const auto place = ranks_of(environment, torchrun)) return with_meeting_point(*place, environment);
  for (const auto& variables : others) {
    if (const auto place = ranks_of(environment, variables)) return *place;
  }
  return {};
}

}  // namespace mpol
