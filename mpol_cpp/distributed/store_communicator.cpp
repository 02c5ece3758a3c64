#include <mpol_cpp/distributed/store_communicator.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/patience.h>

namespace mpol {
namespace {

constexpr std::size_t largest_message = std::size_t{4} << 20;  // the TCPStore takes 8 MiB
constexpr auto between_looks_at_abort = std::chrono::milliseconds(50);
constexpr auto patience_of_server = std::chrono::seconds(5);
constexpr const char* abort_key = "abort";

using Store = c10::intrusive_ptr<c10d::Store>;

class StoreCommunicator : public Communicator {
 public:
  /// @param all  the store of all ranks, of which these may be a part: where one tells that it has failed
  StoreCommunicator(Store store, Store all, std::int64_t own_rank, std::int64_t own_size)
      : Communicator(own_rank, own_size), store_(std::move(store)), all_(std::move(all)) {}

  std::string name() const override { return "LibTorch's store"; }

  std::shared_ptr<Communicator> first(std::int64_t count) override {
    if (count < 1 || count > size())
      throw ValueError(fmt::format("the first {} of {} ranks: there are not so many", count, size()));
    auto part = c10::make_intrusive<c10d::PrefixStore>(fmt::format("first{}", ++parts_), store_);
    if (rank() >= count) return nullptr;
    auto own = std::make_shared<StoreCommunicator>(std::move(part), all_, rank(), count);
    own->set_timeout(timeout());
    return own;
  }

  std::optional<std::vector<std::int64_t>> exchange_endings(std::int64_t code, std::optional<Milliseconds> patience) override {
    const auto ending = [](std::int64_t other) { return fmt::format("end/{}", other); };
    const auto text = fmt::format("{}", code);
    store_->set(ending(rank()), std::vector<std::uint8_t>(text.begin(), text.end()));
    std::vector<std::string> keys;
    for (std::int64_t other = 0; other < size(); ++other) keys.push_back(ending(other));
    detail::Patience wait;
    while (!store_->check(keys)) {
      if (patience && wait.waited() > *patience) return std::nullopt;
      check_abort();
      wait.wait();
    }
    std::vector<std::int64_t> codes;
    for (const auto& key : keys) {
      const auto bytes = store_->get(key);
      codes.push_back(std::stoll(std::string(bytes.begin(), bytes.end())));
    }
    store_->add("read", 1);
    if (!is_first()) return codes;
    // The server may be this rank's: it stays until the others have read.
    detail::Patience stay;
    while (store_->add("read", 0) < size() && stay.waited() < patience_of_server) stay.wait();
    return codes;
  }

  void abort(int code) noexcept override {
    try {
      all_->set(abort_key, std::vector<std::uint8_t>{static_cast<std::uint8_t>(code)});
    } catch (const std::exception&) {
      // There is nobody left to tell.
    }
  }

 private:
  void check_abort() {
    if (all_->check({abort_key})) throw RankError("another rank has failed");
  }

  /// Waits until another rank has put a message there, or has taken it away. @throws RankError
  void wait_for(const std::string& key, std::int64_t other, bool there = true) {
    detail::Patience patience;
    auto next_look = std::chrono::steady_clock::now() + between_looks_at_abort;
    while (store_->check({key}) != there) {
      if (std::chrono::steady_clock::now() > next_look) {
        check_abort();
        next_look = std::chrono::steady_clock::now() + between_looks_at_abort;
      }
      if (patience.waited() > timeout()) {
        throw RankError(
            fmt::format("rank {} has waited {} s for rank {}, which does not answer: it has died, or is slower than the "
                        "time-out allows",
                        rank(), static_cast<double>(timeout().count()) / 1000.0, other));
      }
      patience.wait();
    }
  }

  static std::string piece(const std::string& message, std::size_t begin) { return fmt::format("{}/{}", message, begin); }

  void put(const std::string& message, const Tensor& tensor) {
    const auto* bytes = static_cast<const std::uint8_t*>(tensor.const_data_ptr());
    for (std::size_t begin = 0; begin < tensor.nbytes(); begin += largest_message) {
      const auto end = std::min(tensor.nbytes(), begin + largest_message);
      store_->set(piece(message, begin), std::vector<std::uint8_t>(bytes + begin, bytes + end));
    }
  }

  /// @param readers  the last of so many takes the message away
  void take(const std::string& message, Tensor& tensor, std::int64_t from, std::int64_t readers) {
    auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data_ptr());
    for (std::size_t begin = 0; begin < tensor.nbytes(); begin += largest_message) {
      const auto key = piece(message, begin);
      wait_for(key, from);
      const auto found = store_->get(key);
      const auto wanted = std::min(tensor.nbytes() - begin, largest_message);
      if (found.size() != wanted)
        throw ShapeError(fmt::format("rank {} sends {} bytes where rank {} expects {}", from, found.size(), rank(), wanted));
      std::memcpy(bytes + begin, found.data(), wanted);
      if (readers == 1) {
        store_->deleteKey(key);
      } else if (store_->add(key + "/read", 1) == readers) {
        store_->deleteKey(key);
        store_->deleteKey(key + "/read");
      }
    }
  }

  std::string next_message() { return fmt::format("m{}", ++messages_); }
  std::string next_of_two(std::int64_t from, std::int64_t to) {
    return fmt::format("{}-{}/{}", from, to, ++messages_of_two_[{from, to}]);
  }

  void broadcast_tensor(Tensor& tensor, std::int64_t root) override {
    const auto message = next_message();
    if (rank() == root) put(message, tensor);
    else take(message, tensor, root, size() - 1);
  }

  void sum_tensor(Tensor& tensor) override {
    const auto message = next_message();
    if (is_first()) {
      auto part = at::empty_like(tensor);
      for (std::int64_t other = 1; other < size(); ++other) {
        take(fmt::format("{}/{}", message, other), part, other, 1);
        tensor.add_(part);
      }
    } else {
      put(fmt::format("{}/{}", message, rank()), tensor);
    }
    broadcast_tensor(tensor, 0);
  }

  void gather_tensor(const Tensor& rows, Tensor& all, const std::vector<std::int64_t>& rows_of, std::int64_t root) override {
    const auto message = next_message();
    if (rank() != root) return put(fmt::format("{}/{}", message, rank()), rows);
    std::int64_t begin = 0;
    for (std::int64_t other = 0; other < size(); ++other) {
      auto place = all.narrow(0, begin, rows_of[static_cast<std::size_t>(other)]);
      begin += place.size(0);
      if (other == root) place.copy_(rows);
      else take(fmt::format("{}/{}", message, other), place, other, 1);
    }
  }

  /// Waits until a large tensor is taken, as MPI does: what waits in the store is memory of the rank that serves it.
  void send_tensor(const Tensor& tensor, std::int64_t to) override {
    const auto message = next_of_two(rank(), to);
    put(message, tensor);
    if (tensor.nbytes() > largest_message)
      wait_for(piece(message, (tensor.nbytes() - 1) / largest_message * largest_message), to, /*there=*/false);
  }
  void receive_tensor(Tensor& tensor, std::int64_t from) override { take(next_of_two(from, rank()), tensor, from, 1); }

  void reduce_scatter_tensor(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>& rows_of) override {
    auto sum_of_all = tensor.clone();
    if (!is_alone()) sum_tensor(sum_of_all);
    std::int64_t begin = 0;
    for (std::int64_t other = 0; other < rank(); ++other) begin += rows_of[static_cast<std::size_t>(other)];
    own.copy_(sum_of_all.narrow(0, begin, own.size(0)));
  }

  Store store_, all_;
  std::int64_t messages_ = 0, parts_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> messages_of_two_;
};

}  // namespace

std::shared_ptr<Communicator> store_communicator(c10::intrusive_ptr<c10d::Store> store, std::int64_t rank, std::int64_t size) {
  if (size < 1 || rank < 0 || rank >= size)
    throw ValueError(fmt::format("rank {} of {} ranks: there is no such rank", rank, size));
  return std::make_shared<StoreCommunicator>(store, store, rank, size);
}

std::shared_ptr<Communicator> tcp_communicator(const TcpPlace& place, std::int64_t rank, std::int64_t size,
                                               Communicator::Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = rank == 0 && !place.has_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    auto store =
        c10::make_intrusive<c10d::PrefixStore>(place.prefix, c10::make_intrusive<c10d::TCPStore>(place.address, options));
    auto communicator = store_communicator(std::move(store), rank, size);
    communicator->set_timeout(timeout);
    return communicator;
  } catch (const c10::Error& error) {
    throw RankError(fmt::format("rank {} of {} cannot reach the others at {}:{}: {}", rank, size, place.address, place.port,
                                error.what_without_backtrace()));
  }
}

void run_as_threads(std::int64_t size, const std::function<void(Communicator&)>& rank) {
  if (size < 1) throw ValueError(fmt::format("{} ranks: there must be at least one", size));
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size)), consequences = failures;
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      const auto communicator = store_communicator(store, i, size);
      try {
        rank(*communicator);
      } catch (const RankError&) {
        consequences[static_cast<std::size_t>(i)] = std::current_exception();
        communicator->abort(1);
      } catch (...) {
        failures[static_cast<std::size_t>(i)] = std::current_exception();
        communicator->abort(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto* group : {&failures, &consequences}) {
    for (const auto& failure : *group) {
      if (failure) std::rethrow_exception(failure);
    }
  }
}

}  // namespace mpol
