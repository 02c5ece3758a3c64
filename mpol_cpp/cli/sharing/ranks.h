#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/distributed/exchange_speed.h>
#include <mpol_cpp/distributed/rendezvous.h>

namespace mpol::cli {

/// The ranks of this run, of which the first alone speaks and writes; one where no launcher started several.
const std::shared_ptr<Communicator>& ranks();
/// Who started this rank, and where it is.
const Rendezvous& place_of_rank();

/// How many ranks of this node run on the very CPUs of this one, itself among them: 1 where the launcher gave each its own.
std::int64_t ranks_on_these_cpus();

/// From now on ranks() take tensors on their devices by NCCL, where each has a GPU of its own (with_nccl). Called by every rank.
void exchange_on(torch::Device device);

/// How fast ranks() exchange tensors of a device, measured. Called by every rank.
void measure_exchange_on(torch::Device device);
/// The same, where it was measured.
const std::optional<ExchangeSpeed>& speed_of_exchange();

/// Runs `action` as run_to_exit_code() does, on the ranks that a launcher has started: on all of them where the verb shares its
/// work, else on the first, for which the others wait. All end with the same exit code; of an error there is one line, from the
/// lowest rank that has it, and the others do not outlive it by more than seconds.
/// @param shares  whether the verb shares its work
int run_on_ranks(const std::string& verb, bool shares, const std::function<int()>& action);

/// A text of the first rank, on all. @param text  looked at on the first alone
std::string text_of_first(const std::string& text);
/// The same of some numbers.
template <std::size_t count>
std::array<double, count> numbers_of_first(const std::array<double, count>& numbers) {
  const auto told = text_of_first(fmt::format("{:.17g}", fmt::join(numbers, " ")));
  std::string_view text = told;
  std::array<double, count> found{};
  for (auto& number : found) number = take_number<double>(text).value();
  return found;
}

/// A step that all ranks take or none: the first says which way, or leaves without a word, on which the others leave too.
class Agreement {
 public:
  Agreement() = default;
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// By the first rank, at most once. @param way  > 0
  void announce(std::int64_t way);
  /// By the others. @return the way; 0: the first rank has left
  static std::int64_t wait();

 private:
  bool announced_ = false;
};

}  // namespace mpol::cli
