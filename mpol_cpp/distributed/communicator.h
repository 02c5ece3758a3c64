#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/shares.h>

namespace mpol {

using torch::Tensor;

/// Another rank has failed, or did not come in time.
class RankError : public Error {
  using Error::Error;
};

/// The ranks that work on one thing together, each a process (or a thread) that calls the same functions in the same order.
///
/// Tensors are contiguous, on the CPU or another device that takes() says, of float32, float64, int32, int64 or uint8, or
/// complex, which go as pairs; of the same shape on every rank where nothing else is said. Whatever waits for other ranks waits
/// for timeout() at most. All functions but rank(), size(), timeout(), send(), receive() and abort() must be called by every
/// rank. @throws RankError when another rank has failed or does not come in time; ShapeError for another tensor
class Communicator {
 public:
  using Milliseconds = std::chrono::milliseconds;  ///< of time-outs

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  std::int64_t rank() const { return rank_; }        ///< of the caller, from 0
  std::int64_t size() const { return size_; }        ///< how many ranks there are
  bool is_first() const { return rank_ == 0; }       ///< the one that speaks and writes
  bool is_alone() const { return size_ == 1; }       ///< whether there is nobody to talk to
  Milliseconds timeout() const { return timeout_; }  ///< ten minutes, unless set
  /// How long a call waits for the others. @throws ValueError unless > 0
  void set_timeout(Milliseconds timeout);
  virtual std::string name() const = 0;  ///< of the engine, for people
  /// Whether tensors on this device can be handed over; those on the CPU always can.
  virtual bool takes(torch::Device device) const { return device.is_cpu(); }

  /// The tensor of the rank `root` on all.
  void broadcast(Tensor& tensor, std::int64_t root = 0);
  /// The sum over ranks on all; the same bits on each.
  void all_reduce_sum(Tensor& tensor);
  /// The sum over ranks, of which each rank gets its share_of() of the rows (first dimension).
  Tensor reduce_scatter(const Tensor& tensor);
  /// The rows of all ranks one below the other, in the order of ranks, on the rank `root`; undefined elsewhere. The numbers of
  /// rows may differ, and be 0.
  Tensor gather(const Tensor& rows, std::int64_t root = 0);
  /// Waits until all are here.
  void barrier();
  /// Hands a tensor of the CPU to one other rank, which receives it; nobody else takes part. It may wait until that has happened:
  /// of two ranks that send to each other one receives first.
  void send(const Tensor& tensor, std::int64_t to);
  /// The next tensor that another rank sends to this one, of whatever shape and dtype it is.
  Tensor receive(std::int64_t from);
  /// Numbers, summed over ranks.
  void sum(std::vector<double>& numbers);
  /// Whether it is so on any rank.
  bool any(bool here);

  /// The first `count` ranks by themselves; nothing on the others. @throws ValueError unless 1 <= count <= size()
  virtual std::shared_ptr<Communicator> first(std::int64_t count) = 0;

  /// Says how this rank ends (an exit code) and waits for what the others say.
  /// @param patience  how long; nothing: as long as it takes
  /// @return          the codes of all ranks; nothing when one did not come in time
  virtual std::optional<std::vector<std::int64_t>> exchange_endings(std::int64_t code, std::optional<Milliseconds> patience) = 0;
  /// Ends all ranks, with this exit code, wherever they are. MPI does not return.
  virtual void abort(int code) noexcept = 0;

 protected:
  /// The end of one rank. @param size  how many ranks there are
  Communicator(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {}

 private:
  // What engines do, with contiguous real tensors that are checked, and more than one rank.
  virtual void broadcast_tensor(Tensor& tensor, std::int64_t root) = 0;
  virtual void sum_tensor(Tensor& tensor) = 0;
  /// @param all  where they go on `root`, undefined elsewhere  @param rows_of  how many rows each rank has
  virtual void gather_tensor(const Tensor& rows, Tensor& all, const std::vector<std::int64_t>& rows_of, std::int64_t root) = 0;
  // Tensors of the CPU go to and come from another rank than this one.
  virtual void send_tensor(const Tensor& tensor, std::int64_t to) = 0;
  virtual void receive_tensor(Tensor& tensor, std::int64_t from) = 0;
  /// @param own  where this rank's rows of the sum go  @param rows_of  how many rows each rank gets
  virtual void reduce_scatter_tensor(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>& rows_of) = 0;

  void check_other(std::int64_t other) const;

  std::int64_t rank_, size_;
  Milliseconds timeout_ = std::chrono::minutes(10);
};

/// One rank by itself: every function is the identity.
std::shared_ptr<Communicator> single_rank();

}  // namespace mpol
