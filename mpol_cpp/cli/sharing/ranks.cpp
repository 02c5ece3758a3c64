#include <mpol_cpp/cli/sharing/ranks.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/distributed/nccl_communicator.h>
#include <mpol_cpp/distributed/open_communicator.h>

namespace mpol::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_join = 60s, usual_timeout = 600s;
/// How long a rank that has failed waits for the others to end by themselves: those that have the same error do at once.
constexpr auto patience_of_failed = 2s;
/// The same of one that a signal told to stop, as it did the others, which finish their epoch first.
constexpr auto patience_of_interrupted = 20s;
constexpr int first_signal_code = 128;
constexpr std::int64_t consequence_mark = 256;  // added to codes

struct RunRanks {
  std::shared_ptr<Communicator> ranks = single_rank();
  Rendezvous place;
  std::int64_t on_these_cpus = 1;
  std::optional<ExchangeSpeed> speed;
};

RunRanks& ranks_of_run() {
  static RunRanks run;
  return run;
}

void say(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

/// Node and CPUs of this rank, (1, bytes) uint8.
Tensor cpus_of_rank() {
  std::array<char, 256> node{};
  gethostname(node.data(), node.size() - 1);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof(cpus), &cpus);
  auto row = at::zeros({1, static_cast<std::int64_t>(node.size() + sizeof(cpus))}, torch::kUInt8);
  auto* bytes = row.mutable_data_ptr<std::uint8_t>();
  std::memcpy(bytes, node.data(), node.size());
  std::memcpy(bytes + node.size(), &cpus, sizeof(cpus));
  return row;
}

std::int64_t count_ranks_on_these_cpus(Communicator& all) {
  const auto own = cpus_of_rank();
  auto rows = all.gather(own);
  if (!all.is_first()) rows = at::zeros({all.size(), own.size(1)}, torch::kUInt8);
  all.broadcast(rows);
  return (rows == own).all(1).sum().item<std::int64_t>();
}

/// Joins the others. @return an exit code where that does not work
int join(const std::string& verb) {
  auto& run = ranks_of_run();
  const auto ending = ending_of(verb, [&run] {
    run.place = find_rendezvous(process_environment());
    run.ranks = open_communicator(run.place, time_to_join);
    run.on_these_cpus = count_ranks_on_these_cpus(*run.ranks);
    run.ranks->set_timeout(usual_timeout);
    return exit_done;
  });
  if (!ending.line.empty()) say(ending.line);
  return ending.code;
}

/// Which ending is everybody's: that of the lowest rank that failed by itself, else of the lowest that failed as a consequence.
int common_code(const std::vector<std::int64_t>& codes, std::int64_t& owner) {
  for (const auto wanted_consequence : {false, true}) {
    for (std::size_t rank = 0; rank < codes.size(); ++rank) {
      const bool consequence = codes[rank] >= consequence_mark;
      if (codes[rank] == 0 || consequence != wanted_consequence) continue;
      owner = static_cast<std::int64_t>(rank);
      return static_cast<int>(codes[rank] % consequence_mark);
    }
  }
  return 0;
}

/// All ranks come to their end together, or are ended.
int end_together(const Ending& ending) {
  const auto ranks = ranks_of_run().ranks;
  const bool failed = ending.code != exit_done;
  const std::int64_t code = ending.code + (ending.is_consequence ? consequence_mark : 0);
  std::optional<Communicator::Milliseconds> patience;
  if (failed) patience = ending.code >= first_signal_code ? patience_of_interrupted : patience_of_failed;
  std::int64_t owner = -1;
  const auto line =
      ending.line.empty() || ranks->is_first() ? ending.line : fmt::format("{} (rank {})", ending.line, ranks->rank());
  try {
    const auto codes = ranks->exchange_endings(code, patience);
    if (codes) {
      const int common = common_code(*codes, owner);
      if (owner == ranks->rank() && !line.empty()) say(line);
      return common;
    }
  } catch (const std::exception& error) {
    // Who ended all has said why; a server that is gone has not.
    if (dynamic_cast<const RankError*>(&error) == nullptr && !line.empty()) say(line);
    return failed ? ending.code : exit_failed;
  }
  if (!line.empty()) say(line);
  ranks->abort(ending.code);
  return ending.code;
}

}  // namespace

const std::shared_ptr<Communicator>& ranks() { return ranks_of_run().ranks; }
const Rendezvous& place_of_rank() { return ranks_of_run().place; }
std::int64_t ranks_on_these_cpus() { return ranks_of_run().on_these_cpus; }

void exchange_on(torch::Device device) {
  auto& run = ranks_of_run();
  if (run.ranks->is_alone()) return;
  auto choice = with_nccl(run.ranks, device);
  run.ranks = std::move(choice.ranks);
  log_info(fmt::format("ranks exchange by {} ({})", run.ranks->name(), choice.reason));
}

void measure_exchange_on(torch::Device device) {
  auto& run = ranks_of_run();
  if (run.ranks->is_alone()) return;
  run.speed = measure_exchange(*run.ranks, device);
  log_info(fmt::format("an exchange between ranks takes {:.3g} us and {} a second", 1e6 * run.speed->seconds,
                       memory_words(run.speed->bytes_per_second)));
}

const std::optional<ExchangeSpeed>& speed_of_exchange() { return ranks_of_run().speed; }

int run_on_ranks(const std::string& verb, bool shares, const std::function<int()>& action) {
  if (const int code = join(verb); code != exit_done) return code;
  auto& run = ranks_of_run();
  if (run.ranks->is_alone()) return run_to_exit_code(verb, action);
  const auto ending = shares || run.ranks->is_first() ? ending_of(verb, action) : Ending();
  const int code = end_together(ending);
  run = {};  // MPI ends here
  return code;
}

std::string text_of_first(const std::string& text) {
  auto length = at::full({1}, static_cast<std::int64_t>(text.size()), torch::kInt64);
  ranks()->broadcast(length);
  auto bytes = at::empty({length.item<std::int64_t>()}, torch::kUInt8);
  if (ranks()->is_first()) std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<std::uint8_t>());
  ranks()->broadcast(bytes);
  return {bytes.const_data_ptr<std::uint8_t>(), bytes.const_data_ptr<std::uint8_t>() + bytes.numel()};
}

Agreement::~Agreement() {
  const auto& all = ranks();
  if (announced_ || all->is_alone() || !all->is_first()) return;
  try {
    all->set_timeout(std::chrono::duration_cast<Communicator::Milliseconds>(patience_of_failed));  // they may have left before
    auto way = at::full({1}, 0, torch::kInt64);
    all->broadcast(way);
  } catch (const std::exception&) {
    // The endings tell.
  }
}

void Agreement::announce(std::int64_t way) {
  announced_ = true;
  auto tensor = at::full({1}, way, torch::kInt64);
  ranks()->broadcast(tensor);
}

std::int64_t Agreement::wait() {
  auto way = at::full({1}, 0, torch::kInt64);
  ranks()->broadcast(way);
  return way.item<std::int64_t>();
}

}  // namespace mpol::cli
