// The module libmpol_mpi.so: a Communicator by MPI 3. Every wait is a non-blocking operation that is asked after, so that it has
// a time-out and a rank that waits for long sleeps.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/mpi_module.h>
#include <mpol_cpp/distributed/patience.h>

namespace mpol {
namespace {

constexpr std::int64_t largest_message = std::int64_t{1} << 28;  // elements; MPI counts in int

MPI_Datatype type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return MPI_FLOAT;
    case torch::kFloat64:
      return MPI_DOUBLE;
    case torch::kInt32:
      return MPI_INT32_T;
    case torch::kInt64:
      return MPI_INT64_T;
    default:
      return MPI_UINT8_T;
  }
}

std::string words(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int error, const char* what) {
  if (error != MPI_SUCCESS) throw RankError(fmt::format("{} failed in MPI: {}", what, words(error)));
}

std::int64_t number_from(int (*ask)(MPI_Comm, int*), MPI_Comm communicator) {
  int number = 0;
  check(ask(communicator, &number), "asking for the ranks");
  return number;
}

const char* place_in(const Tensor& tensor, std::int64_t element) {
  return static_cast<const char*>(tensor.const_data_ptr()) + element * static_cast<std::int64_t>(tensor.element_size());
}
char* place_in(Tensor& tensor, std::int64_t element) {
  return static_cast<char*>(tensor.mutable_data_ptr()) + element * static_cast<std::int64_t>(tensor.element_size());
}

/// MPI itself, between its beginning and its end.
struct Session {
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { MPI_Finalize(); }
};

class MpiCommunicator : public Communicator {
 public:
  /// Takes both handles.
  /// @param endings  of the same ranks, for how they end, whatever they are in the middle of
  MpiCommunicator(std::shared_ptr<Session> session, MPI_Comm ranks, MPI_Comm endings)
      : Communicator(number_from(MPI_Comm_rank, ranks), number_from(MPI_Comm_size, ranks)),
        session_(std::move(session)),
        codes_(static_cast<std::size_t>(size())),
        ranks_(ranks),
        endings_(endings) {}
  ~MpiCommunicator() override {
    MPI_Comm_free(&ranks_);
    MPI_Comm_free(&endings_);
  }

  std::string name() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string version(text.data(), static_cast<std::size_t>(length));
    version.resize(std::min(version.find_first_of(",\n"), version.size()));
    std::replace(version.begin(), version.end(), '\t', ' ');
    return version;
  }

  std::shared_ptr<Communicator> first(std::int64_t count) override {
    if (count < 1 || count > size())
      throw ValueError(fmt::format("the first {} of {} ranks: there are not so many", count, size()));
    const int color = rank() < count ? 0 : MPI_UNDEFINED;
    MPI_Comm part = MPI_COMM_NULL, endings = MPI_COMM_NULL;
    check(MPI_Comm_split(ranks_, color, static_cast<int>(rank()), &part), "dividing the ranks");
    if (part == MPI_COMM_NULL) return nullptr;
    check(MPI_Comm_dup(part, &endings), "dividing the ranks");
    auto own = std::make_shared<MpiCommunicator>(session_, part, endings);
    own->set_timeout(timeout());
    return own;
  }

  std::optional<std::vector<std::int64_t>> exchange_endings(std::int64_t code, std::optional<Milliseconds> patience) override {
    code_ = code;
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(&code_, 1, MPI_INT64_T, codes_.data(), 1, MPI_INT64_T, endings_, &request), "ending");
    detail::Patience wait;
    for (int done = 0; done == 0;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "ending");
      if (done != 0) break;
      if (patience && wait.waited() > *patience) return std::nullopt;  // what follows is an abort
      wait.wait();
    }
    return codes_;
  }

  void abort(int code) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  void finish(MPI_Request request, const char* what) {
    detail::Patience wait;
    for (int done = 0;;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
      if (done != 0) return;
      if (wait.waited() > timeout()) {
        throw RankError(
            fmt::format("rank {} has waited {} s for the others ({}), which do not come: one has died, or is slower than "
                        "the time-out allows",
                        rank(), static_cast<double>(timeout().count()) / 1000.0, what));
      }
      wait.wait();
    }
  }

  /// Exchanges so many elements by messages that MPI can count, each waited for.
  /// @param start  starts one, of `count` elements from `begin` on, and says whether it could
  template <typename Start>
  void exchange(std::int64_t elements, const char* what, const Start& start) {
    for (std::int64_t begin = 0; begin < elements; begin += largest_message) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(start(begin, static_cast<int>(std::min(largest_message, elements - begin)), &request), what);
      finish(request, what);
    }
  }

  void broadcast_tensor(Tensor& tensor, std::int64_t root) override {
    exchange(tensor.numel(), "broadcast", [&](std::int64_t begin, int count, MPI_Request* request) {
      return MPI_Ibcast(place_in(tensor, begin), count, type_of(tensor), static_cast<int>(root), ranks_, request);
    });
  }

  /// By rank 0, which hands its sum to all: MPI promises no more than rounding for ranks of an all-reduce, and where ranks decide
  /// by a number it must be the same on each.
  void sum_tensor(Tensor& tensor) override {
    exchange(tensor.numel(), "all-reduce", [&](std::int64_t begin, int count, MPI_Request* request) {
      void* here = place_in(tensor, begin);
      return is_first() ? MPI_Ireduce(MPI_IN_PLACE, here, count, type_of(tensor), MPI_SUM, 0, ranks_, request)
                        : MPI_Ireduce(here, nullptr, count, type_of(tensor), MPI_SUM, 0, ranks_, request);
    });
    broadcast_tensor(tensor, 0);
  }

  void send_tensor(const Tensor& tensor, std::int64_t to) override { send_to(to, tensor, "send"); }
  void receive_tensor(Tensor& tensor, std::int64_t from) override { receive_from(from, tensor, "receive"); }

  void send_to(std::int64_t other, const Tensor& tensor, const char* what) {
    exchange(tensor.numel(), what, [&](std::int64_t begin, int count, MPI_Request* request) {
      return MPI_Isend(place_in(tensor, begin), count, type_of(tensor), static_cast<int>(other), 0, ranks_, request);
    });
  }

  void receive_from(std::int64_t other, Tensor& tensor, const char* what) {
    exchange(tensor.numel(), what, [&](std::int64_t begin, int count, MPI_Request* request) {
      return MPI_Irecv(place_in(tensor, begin), count, type_of(tensor), static_cast<int>(other), 0, ranks_, request);
    });
  }

  void gather_tensor(const Tensor& rows, Tensor& all, const std::vector<std::int64_t>& rows_of, std::int64_t root) override {
    // Rank by rank: a count of all together may be more than MPI can count.
    if (rank() != root) return send_to(root, rows, "gather");
    std::int64_t row = 0;
    for (std::int64_t other = 0; other < size(); ++other) {
      auto place = all.narrow(0, row, rows_of[static_cast<std::size_t>(other)]);
      row += place.size(0);
      if (other == root) place.copy_(rows);
      else receive_from(other, place, "gather");
    }
  }

  void reduce_scatter_tensor(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>& rows_of) override {
    const auto of_row = tensor.numel() / tensor.size(0);
    if (tensor.numel() > largest_message) return reduce_scatter_in_parts(tensor, own, rows_of);
    std::vector<int> counts;
    counts.reserve(rows_of.size());
    for (const auto rows : rows_of) counts.push_back(static_cast<int>(rows * of_row));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ireduce_scatter(tensor.const_data_ptr(), own.mutable_data_ptr(), counts.data(), type_of(tensor), MPI_SUM, ranks_,
                              &request),
          "reduce-scatter");
    finish(request, "reduce-scatter");
  }

  /// Each rank's part reduced to it, one after the other.
  void reduce_scatter_in_parts(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>& rows_of) {
    std::int64_t row = 0;
    for (std::int64_t root = 0; root < size(); ++root) {
      auto part = tensor.narrow(0, row, rows_of[static_cast<std::size_t>(root)]);
      row += part.size(0);
      exchange(part.numel(), "reduce-scatter", [&](std::int64_t begin, int count, MPI_Request* request) {
        return MPI_Ireduce(place_in(part, begin), rank() == root ? place_in(own, begin) : nullptr, count, type_of(part), MPI_SUM,
                           static_cast<int>(root), ranks_, request);
      });
    }
  }

  std::shared_ptr<Session> session_;
  std::int64_t code_ = 0;            // of the ending, where MPI finds it however long it takes
  std::vector<std::int64_t> codes_;  // of all
  MPI_Comm ranks_, endings_;
};

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

/// Whether a task of SLURM's, if this is one, has what MPI_Init needs: without it Open MPI ends the process with a page on how it
/// might have been built, and MPICH makes each task a run of its own, which open_communicator() notices.
bool tasks_can_meet() {
#ifdef OPEN_MPI
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (!is_set("SLURM_STEP_NUM_TASKS")) return true;
  return is_set("PMIX_NAMESPACE") || is_set("PMI_RANK") || is_set("PMI_FD") || is_set("OMPI_COMM_WORLD_SIZE");
#else
  return true;
#endif
}

}  // namespace
}  // namespace mpol

extern "C" void mpol_mpi_version(std::string& version) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) == MPI_SUCCESS) version.assign(text.data(), static_cast<std::size_t>(length));
}

extern "C" mpol::Communicator* mpol_open_mpi(std::string& failure) {
  if (!mpol::tasks_can_meet()) {
    failure =
        "srun gave its tasks no PMIx, by which those of Open MPI find each other; say srun --mpi=pmix (srun --mpi=list tells "
        "what there is), or set MpiDefault=pmix in slurm.conf";
    return nullptr;
  }
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    failure = "MPI_Init_thread";
    return nullptr;
  }
  try {
    auto session = std::make_shared<mpol::Session>();
    MPI_Comm ranks = mpol::copy_of_world();
    MPI_Comm endings = mpol::copy_of_world();
    return std::make_unique<mpol::MpiCommunicator>(std::move(session), ranks, endings).release();
  } catch (const mpol::RankError& error) {
    failure = error.what();
    return nullptr;
  }
}
