#include <mpol_cpp/distributed/nccl_communicator.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/current_device.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/device/streams.h>
#include <mpol_cpp/distributed/caller_stream.h>
#include <mpol_cpp/distributed/nccl_library.h>
#include <mpol_cpp/distributed/patience.h>

namespace mpol {
namespace {

using detail::NcclLibrary;

constexpr auto patience_of_end = std::chrono::seconds(5);

int type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return NcclLibrary::float32;
    case torch::kFloat64:
      return NcclLibrary::float64;
    case torch::kInt32:
      return NcclLibrary::int32;
    case torch::kInt64:
      return NcclLibrary::int64;
    default:
      return NcclLibrary::uint8;
  }
}

std::size_t count_of(const Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

/// The parts of a tensor that ranks have, each so many rows.
std::vector<Tensor> parts_of(const Tensor& tensor, const std::vector<std::int64_t>& rows_of) {
  std::vector<Tensor> parts;
  std::int64_t row = 0;
  for (const auto rows : rows_of) {
    parts.push_back(tensor.narrow(0, row, rows));
    row += rows;
  }
  return parts;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> base, torch::Device device, std::shared_ptr<const NcclLibrary> nccl)
      : Communicator(base->rank(), base->size()), base_(std::move(base)), device_(device), nccl_(std::move(nccl)) {
    set_timeout(base_->timeout());
    join();
  }
  ~NcclCommunicator() override { leave(); }

  std::string name() const override {
    return fmt::format("NCCL {} beside {}", detail::nccl_version_words(nccl_->version), base_->name());
  }
  bool takes(torch::Device device) const override { return device == device_ || base_->takes(device); }

  std::shared_ptr<Communicator> first(std::int64_t count) override {
    auto part = base().first(count);
    return part ? std::make_shared<NcclCommunicator>(std::move(part), device_, nccl_) : nullptr;
  }
  std::optional<std::vector<std::int64_t>> exchange_endings(std::int64_t code, std::optional<Milliseconds> patience) override {
    return base_->exchange_endings(code, patience);
  }
  void abort(int code) noexcept override {
    give_up("this rank has ended all");
    base_->abort(code);
  }

 private:
  /// For what does not go by NCCL, with the time-out of this one.
  Communicator& base() {
    base_->set_timeout(timeout());
    return *base_;
  }
  bool is_on_device(const Tensor& tensor) const { return tensor.device() == device_; }

  /// The device is the current one while a call is made.
  std::optional<CurrentDevice> current() const {
    return device_.is_cpu() ? std::nullopt : std::optional<CurrentDevice>(std::in_place, device_);
  }

  void join() {
    // A rank that has no id must say so, or the others would wait for it.
    auto message = at::zeros({static_cast<std::int64_t>(sizeof(NcclLibrary::UniqueId)) + 1}, torch::kUInt8);
    NcclLibrary::UniqueId id{};
    auto* bytes = message.mutable_data_ptr<std::uint8_t>();
    if (is_first()) {
      const auto device = current();
      bytes[0] = nccl_->get_unique_id(&id) == NcclLibrary::success ? 1 : 0;
      std::memcpy(bytes + 1, id.bytes, sizeof(id.bytes));
    }
    base().broadcast(message);
    if (bytes[0] == 0) throw RankError(fmt::format("NCCL of rank 0 makes no unique id: {}", last_words()));
    std::memcpy(id.bytes, bytes + 1, sizeof(id.bytes));
    NcclLibrary::Config config;
    const auto device = current();
    const int result = nccl_->join(&communicator_, static_cast<int>(size()), id, static_cast<int>(rank()), &config);
    wait_for(result, "joining the ranks");
  }

  void leave() noexcept {
    if (communicator_ == nullptr) return;
    try {
      const auto device = current();
      detail::Patience wait;
      int state = nccl_->finalize(communicator_);
      while (state == NcclLibrary::in_progress && wait.waited() < patience_of_end) {
        wait.wait();
        state = state_of_nccl();
      }
      if (state == NcclLibrary::success) nccl_->destroy(communicator_);
      else nccl_->abort(communicator_);
    } catch (...) {
      // The device is gone, and the communicator with it.
    }
    communicator_ = nullptr;
  }

  std::string last_words() const {
    const char* words = nccl_->get_last_error(communicator_);
    return words == nullptr || *words == '\0' ? "NCCL does not say why (NCCL_DEBUG=WARN makes it)" : words;
  }

  /// After this, NCCL's communicator is of no use any more.
  void give_up(const std::string& reason) noexcept {
    if (communicator_ == nullptr) return;
    end_ = reason;
    nccl_->abort(std::exchange(communicator_, nullptr));
  }

  [[noreturn]] void fail(const std::string& message) {
    give_up(message);
    throw RankError(message);
  }

  int state_of_nccl() const {
    int state = NcclLibrary::success;
    const int result = nccl_->get_async_error(communicator_, &state);
    return result == NcclLibrary::success ? state : result;
  }

  void check(int result, const char* what) {
    if (result == NcclLibrary::success || result == NcclLibrary::in_progress) return;
    fail(fmt::format("rank {}: {} failed in NCCL: {}; {}", rank(), what, nccl_->get_error_string(result), last_words()));
  }

  void check_time(const detail::Patience& wait, const char* what) {
    if (wait.waited() <= timeout()) return;
    fail(
        fmt::format("rank {} has waited {} s for the others ({}, NCCL), which do not come: one has died, or is slower than the "
                    "time-out allows",
                    rank(), static_cast<double>(timeout().count()) / 1000.0, what));
  }

  /// Waits until NCCL has taken a call. @param result  of the call
  void wait_for(int result, const char* what) {
    check(result, what);
    detail::Patience wait;
    for (int state = state_of_nccl();; state = state_of_nccl()) {
      check(state, what);
      if (state == NcclLibrary::success) return;
      check_time(wait, what);
      wait.wait();
    }
  }

  /// Makes calls that belong together, and waits until the stream has done them.
  /// @param call  is given the stream, and returns the first result that is no success
  template <typename Call>
  void exchange(const char* what, const Call& call) {
    if (communicator_ == nullptr) throw RankError(fmt::format("rank {}: NCCL has ended before: {}", rank(), end_));
    const auto device = current();
    check(nccl_->group_start(), what);
    const int result = call(detail::stream_of_caller(device_));
    const int end = nccl_->group_end();  // also after a failure: what is begun must be ended
    check(result, what);
    wait_for(end, what);
    if (!detail::has_streams(device_)) return;
    const auto done = detail::record_event(device_, detail::EventTiming::off);
    detail::Patience wait;
    while (!done.query()) {
      check(state_of_nccl(), what);
      check_time(wait, what);
      wait.wait();
    }
  }

  void broadcast_tensor(Tensor& tensor, std::int64_t root) override {
    if (!is_on_device(tensor)) return base().broadcast(tensor, root);
    exchange("broadcast", [&](void* stream) {
      auto* place = tensor.mutable_data_ptr();
      return nccl_->broadcast(place, place, count_of(tensor), type_of(tensor), static_cast<int>(root), communicator_, stream);
    });
  }

  void sum_tensor(Tensor& tensor) override {
    if (!is_on_device(tensor)) return base().all_reduce_sum(tensor);
    exchange("all-reduce", [&](void* stream) {
      auto* place = tensor.mutable_data_ptr();
      return nccl_->all_reduce(place, place, count_of(tensor), type_of(tensor), NcclLibrary::sum, communicator_, stream);
    });
  }

  void gather_tensor(const Tensor& rows, Tensor& all, const std::vector<std::int64_t>& rows_of, std::int64_t root) override {
    if (!is_on_device(rows)) {
      const auto found = base().gather(rows, root);
      if (rank() == root) all.copy_(found);
      return;
    }
    std::vector<Tensor> parts;
    if (rank() == root) {
      parts = parts_of(all, rows_of);
      parts[static_cast<std::size_t>(root)].copy_(rows);
    }
    exchange("gather", [&](void* stream) {
      if (rank() != root) {
        if (rows.numel() == 0) return static_cast<int>(NcclLibrary::success);
        return nccl_->send(rows.const_data_ptr(), count_of(rows), type_of(rows), static_cast<int>(root), communicator_, stream);
      }
      return first_failure(parts, [&](std::size_t other, Tensor& part) {
        if (static_cast<std::int64_t>(other) == root) return static_cast<int>(NcclLibrary::success);
        return nccl_->receive(part.mutable_data_ptr(), count_of(part), type_of(part), static_cast<int>(other), communicator_,
                              stream);
      });
    });
  }

  // What one rank sends to another is on the CPU.
  void send_tensor(const Tensor& tensor, std::int64_t to) override { base().send(tensor, to); }
  void receive_tensor(Tensor& tensor, std::int64_t from) override { tensor = base().receive(from); }

  /// By one reduction to each rank, as their numbers of rows differ.
  void reduce_scatter_tensor(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>& rows_of) override {
    if (!is_on_device(tensor)) {
      own.copy_(base().reduce_scatter(tensor));
      return;
    }
    auto parts = parts_of(tensor, rows_of);
    exchange("reduce-scatter", [&](void* stream) {
      return first_failure(parts, [&](std::size_t root, Tensor& part) {
        void* place = static_cast<std::int64_t>(root) == rank() ? own.mutable_data_ptr() : nullptr;
        return nccl_->reduce(part.const_data_ptr(), place, count_of(part), type_of(part), NcclLibrary::sum,
                             static_cast<int>(root), communicator_, stream);
      });
    });
  }

  /// Calls for each part that is not empty, until one fails.
  template <typename Call>
  static int first_failure(std::vector<Tensor>& parts, const Call& call) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].numel() == 0) continue;
      const int result = call(i, parts[i]);
      if (result != NcclLibrary::success && result != NcclLibrary::in_progress) return result;
    }
    return NcclLibrary::success;
  }

  std::shared_ptr<Communicator> base_;
  torch::Device device_;
  std::shared_ptr<const NcclLibrary> nccl_;
  NcclLibrary::Communicator communicator_ = nullptr;
  std::string end_;  // why there is none any more
};

std::shared_ptr<const NcclLibrary> usual_library(std::string& reason) { return NcclLibrary::open(nccl_library_name, reason); }

/// A number that is the same for the same GPU, whichever rank sees it under whichever name.
std::int64_t mark_of_device(torch::Device device) {
  const auto backend = find_backend(device.type());
  const int index = std::max<int>(0, device.index());
  auto name = backend && index < backend->count() ? backend->info(index).uuid : std::string();
  if (name.empty()) {
    std::array<char, 256> node{};
    gethostname(node.data(), node.size() - 1);
    name = fmt::format("{} {}", node.data(), index);
  }
  return static_cast<std::int64_t>(std::hash<std::string>()(name));
}

/// A row of each rank, on all.
Tensor rows_of_all(Communicator& ranks, const std::vector<std::int64_t>& own) {
  const auto columns = static_cast<std::int64_t>(own.size());
  auto rows = ranks.gather(at::tensor(own, torch::kInt64).view({1, columns}));
  if (!ranks.is_first()) rows = at::empty({ranks.size(), columns}, torch::kInt64);
  ranks.broadcast(rows);
  return rows;
}

/// Why the ranks cannot use NCCL together; empty where they can. @param rows  version of NCCL (0: none) and mark of the device
std::string obstacle_of_ranks(const Tensor& rows) {
  const auto* numbers = rows.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> marks;
  for (std::int64_t rank = 0; rank < rows.size(0); ++rank) {
    const auto version = numbers[2 * rank];
    if (version == 0) return fmt::format("rank {} has no GPU, or finds no NCCL", rank);
    if (version != numbers[0]) return fmt::format("rank {} finds another version of NCCL than rank 0", rank);
    const auto mark = numbers[2 * rank + 1];
    if (std::find(marks.begin(), marks.end(), mark) != marks.end()) return fmt::format("rank {} shares a GPU with another", rank);
    marks.push_back(mark);
  }
  return {};
}

}  // namespace

std::string nccl_obstacle(const std::string& library) {
  std::string reason;
  NcclLibrary::open(library, reason);
  return reason;
}

std::shared_ptr<Communicator> nccl_communicator(std::shared_ptr<Communicator> base, torch::Device device,
                                                const std::string& library) {
  std::string reason;
  auto nccl = NcclLibrary::open(library, reason);
  if (!nccl) throw RankError(reason);
  return std::make_shared<NcclCommunicator>(std::move(base), device, std::move(nccl));
}

NcclChoice with_nccl(std::shared_ptr<Communicator> base, torch::Device device) {
  if (base->is_alone()) return {std::move(base), "one rank alone"};
  if (!compiled_in(c10::DeviceType::CUDA)) return {std::move(base), "this build has no CUDA"};
  std::string reason;
  const auto nccl = device.is_cuda() ? usual_library(reason) : nullptr;
  const auto rows = rows_of_all(*base, {nccl ? nccl->version : 0, mark_of_device(device)});
  if (auto obstacle = obstacle_of_ranks(rows); !obstacle.empty()) return {std::move(base), std::move(obstacle)};
  auto ranks = std::make_shared<NcclCommunicator>(std::move(base), device, nccl);
  return {std::move(ranks), "each rank has a GPU of its own"};
}

}  // namespace mpol
