// A stand-in for NCCL whose ranks are threads of one process and whose device is the host: the tests load it in NCCL's place. It
// does what communicators that do not block do: a call is taken at once, and done when the other ranks' calls have come, which
// ncclCommGetAsyncError tells. Collective calls must be the same on all ranks in their order, kind, size and type, and what is
// received as long as what was sent; what is not is an error of all ranks. A rank can be made to fail (fake_nccl_fail).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

enum Result : int { success = 0, system_error = 2, invalid_argument = 4, invalid_usage = 5, in_progress = 7 };
enum class Kind { all_reduce, broadcast, reduce };

struct UniqueId {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking, rest;
};

/// A call that is not done yet.
struct Call {
  Kind kind = Kind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  int type = 0, root = 0;
};

struct Communicator;

/// The ranks of one unique id.
struct Ranks {
  int size = 0, joined = 0;
  bool is_broken = false;  // one has aborted, and its calls with it
  std::vector<Communicator*> members;
  std::map<std::size_t, std::vector<Call>> collective;          // by number, in the order of ranks
  std::map<std::size_t, std::size_t> arrived;                   // ranks that made it
  std::map<std::pair<int, int>, std::deque<Call>> sent, asked;  // by (from, to)
};

struct Communicator {
  std::shared_ptr<Ranks> ranks;
  int rank = 0, error = success;
  std::size_t calls = 0, done = 0, collectives = 0;
  bool is_lost = false;  // its calls never end
};

std::mutex mutex;
std::map<std::string, std::shared_ptr<Ranks>> meetings;
int ids = 0, open = 0, aborted = 0;
int failing_rank = -1, failing_result = 0, failing_in = 0;
thread_local int depth = 0;  // groups that are open

std::size_t bytes_of(int type) { return type == 1 ? 1 : type == 2 || type == 7 ? 4 : type == 4 || type == 8 ? 8 : 0; }

template <typename T>
void add(void* sum, const void* term, std::size_t count) {
  auto* to = static_cast<T*>(sum);
  const auto* from = static_cast<const T*>(term);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}

void add(void* sum, const void* term, std::size_t count, int type) {
  if (type == 1) add<std::uint8_t>(sum, term, count);
  if (type == 2) add<std::int32_t>(sum, term, count);
  if (type == 4) add<std::int64_t>(sum, term, count);
  if (type == 7) add<float>(sum, term, count);
  if (type == 8) add<double>(sum, term, count);
}

void fail(Ranks& ranks, int error) {
  for (auto* member : ranks.members) {
    if (member != nullptr) member->error = error;
  }
}

void perform(Ranks& ranks, const std::vector<Call>& calls) {
  const auto& first = calls.front();
  for (const auto& call : calls) {
    if (call.kind != first.kind || call.count != first.count || call.type != first.type || call.root != first.root)
      return fail(ranks, invalid_usage);
  }
  const auto bytes = first.count * bytes_of(first.type);
  std::vector<char> result(bytes);
  const auto root = static_cast<std::size_t>(first.root);
  std::memcpy(result.data(), calls[first.kind == Kind::broadcast ? root : 0].send, bytes);
  if (first.kind != Kind::broadcast) {
    for (std::size_t rank = 1; rank < calls.size(); ++rank) add(result.data(), calls[rank].send, first.count, first.type);
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    if (first.kind == Kind::reduce && rank != root) continue;
    std::memcpy(calls[rank].receive, result.data(), bytes);
  }
  for (auto* member : ranks.members) ++member->done;
}

/// A failure that was ordered for this call.
int ordered_failure(Communicator& communicator) {
  if (failing_rank != communicator.rank || failing_in-- != 0) return success;
  failing_rank = -1;
  if (failing_result < 0) communicator.is_lost = true;
  return failing_result;
}

int take(void* handle, const Call& call) {
  if (handle == nullptr || bytes_of(call.type) == 0) return invalid_argument;
  const std::lock_guard lock(mutex);
  auto& communicator = *static_cast<Communicator*>(handle);
  if (depth == 0) return invalid_usage;  // this library groups all its calls
  if (const int ordered = ordered_failure(communicator); ordered > 0) return ordered;
  ++communicator.calls;
  if (communicator.is_lost) return in_progress;
  auto& ranks = *communicator.ranks;
  if (ranks.is_broken) return system_error;
  const auto number = communicator.collectives++;
  auto& calls = ranks.collective[number];
  calls.resize(static_cast<std::size_t>(ranks.size));
  calls[static_cast<std::size_t>(communicator.rank)] = call;
  if (++ranks.arrived[number] == calls.size()) {
    perform(ranks, calls);
    ranks.collective.erase(number);
  }
  return in_progress;
}

int take_pair(void* handle, bool sends, int peer, const Call& call) {
  if (handle == nullptr || bytes_of(call.type) == 0) return invalid_argument;
  const std::lock_guard lock(mutex);
  auto& communicator = *static_cast<Communicator*>(handle);
  auto& ranks = *communicator.ranks;
  if (depth == 0) return invalid_usage;
  if (peer < 0 || peer >= ranks.size || peer == communicator.rank) return invalid_argument;
  if (const int ordered = ordered_failure(communicator); ordered > 0) return ordered;
  if (ranks.is_broken) return system_error;
  ++communicator.calls;
  if (communicator.is_lost) return in_progress;
  const std::pair pair = sends ? std::pair(communicator.rank, peer) : std::pair(peer, communicator.rank);
  (sends ? ranks.sent : ranks.asked)[pair].push_back(call);
  auto &sent = ranks.sent[pair], &asked = ranks.asked[pair];
  if (sent.empty() || asked.empty()) return in_progress;
  const auto from = sent.front(), to = asked.front();
  sent.pop_front();
  asked.pop_front();
  if (from.count != to.count || from.type != to.type) {
    fail(ranks, invalid_usage);
    return in_progress;
  }
  std::memcpy(to.receive, from.send, from.count * bytes_of(from.type));
  for (const int rank : {pair.first, pair.second}) ++ranks.members[static_cast<std::size_t>(rank)]->done;
  return in_progress;
}

/// Takes a communicator away; its members know of it no more.
void remove(Communicator* communicator) {
  communicator->ranks->members[static_cast<std::size_t>(communicator->rank)] = nullptr;
  --open;
  delete communicator;
}

}  // namespace

extern "C" {
int ncclGetVersion(int* version);
int ncclGetUniqueId(UniqueId* id);
int ncclCommInitRankConfig(void** communicator, int size, UniqueId id, int rank, Config* config);
int ncclCommFinalize(void* communicator);
int ncclCommDestroy(void* communicator);
int ncclCommAbort(void* communicator);
int ncclCommGetAsyncError(void* communicator, int* state);
const char* ncclGetErrorString(int result);
const char* ncclGetLastError(void* communicator);
int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation, void* communicator, void* stream);
int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root, void* communicator, void* stream);
int ncclReduce(const void* send, void* receive, std::size_t count, int type, int operation, int root, void* communicator,
               void* stream);
int ncclSend(const void* send, std::size_t count, int type, int peer, void* communicator, void* stream);
int ncclRecv(void* receive, std::size_t count, int type, int peer, void* communicator, void* stream);
int ncclGroupStart();
int ncclGroupEnd();
void fake_nccl_fail(int rank, int result, int calls);
void fake_nccl_counts(int* still_open, int* were_aborted);

int ncclGetVersion(int* version) {
  *version = 22809;
  return success;
}

int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(mutex);
  if (failing_rank == -2) {
    failing_rank = -1;
    return failing_result;
  }
  std::memset(id->bytes, 0, sizeof(id->bytes));
  const auto name = "meeting " + std::to_string(++ids);
  std::copy(name.begin(), name.end(), id->bytes);
  id->bytes[sizeof(id->bytes) - 1] = 'z';  // all of it must arrive
  return success;
}

int ncclCommInitRankConfig(void** handle, int size, UniqueId id, int rank, Config* config) {
  const std::lock_guard lock(mutex);
  const bool right = config->size == 24 && config->magic == 0xcafebeef && config->version == 21400 && config->blocking == 0;
  if (!right || id.bytes[sizeof(id.bytes) - 1] != 'z' || rank < 0 || rank >= size) return invalid_argument;
  auto& ranks = meetings[std::string(id.bytes)];
  if (!ranks) ranks = std::make_shared<Ranks>();
  ranks->size = size;
  ranks->members.resize(static_cast<std::size_t>(size));
  auto& member = ranks->members[static_cast<std::size_t>(rank)];
  if (member != nullptr) return invalid_usage;
  member = new Communicator{ranks, rank, success, 0, 0, 0, false};
  ++open;
  ++ranks->joined;
  *handle = member;
  return in_progress;
}

int ncclCommGetAsyncError(void* handle, int* state) {
  const std::lock_guard lock(mutex);
  const auto& communicator = *static_cast<Communicator*>(handle);
  const bool all_here = communicator.ranks->joined == communicator.ranks->size;
  *state = communicator.error;
  if (communicator.error == success && (communicator.done < communicator.calls || !all_here)) *state = in_progress;
  return success;
}

int ncclCommFinalize(void*) { return success; }

int ncclCommDestroy(void* handle) {
  const std::lock_guard lock(mutex);
  remove(static_cast<Communicator*>(handle));
  return success;
}

int ncclCommAbort(void* handle) {
  const std::lock_guard lock(mutex);
  ++aborted;
  static_cast<Communicator*>(handle)->ranks->is_broken = true;
  remove(static_cast<Communicator*>(handle));
  return success;
}

const char* ncclGetErrorString(int result) {
  if (result == system_error) return "unhandled system error";
  return result == invalid_usage ? "invalid usage" : "invalid argument";
}

const char* ncclGetLastError(void*) { return ""; }

int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation, void* communicator, void*) {
  return operation != 0 ? invalid_argument : take(communicator, {Kind::all_reduce, send, receive, count, type, 0});
}

int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root, void* communicator, void*) {
  return take(communicator, {Kind::broadcast, send, receive, count, type, root});
}

int ncclReduce(const void* send, void* receive, std::size_t count, int type, int operation, int root, void* communicator, void*) {
  return operation != 0 ? invalid_argument : take(communicator, {Kind::reduce, send, receive, count, type, root});
}

int ncclSend(const void* send, std::size_t count, int type, int peer, void* communicator, void*) {
  return take_pair(communicator, true, peer, {Kind::broadcast, send, nullptr, count, type, 0});
}

int ncclRecv(void* receive, std::size_t count, int type, int peer, void* communicator, void*) {
  return take_pair(communicator, false, peer, {Kind::broadcast, nullptr, receive, count, type, 0});
}

int ncclGroupStart() {
  ++depth;
  return success;
}

int ncclGroupEnd() {
  if (depth == 0) return invalid_usage;
  --depth;
  return in_progress;
}

/// Lets a call of a rank fail with a result above 0, or never end (-1). @param rank  -2: the making of the next unique id
/// @param calls  that go well before
void fake_nccl_fail(int rank, int result, int calls) {
  const std::lock_guard lock(mutex);
  failing_rank = rank;
  failing_result = result;
  failing_in = calls;
}

/// Communicators that are neither destroyed nor aborted, and those that were aborted since the beginning.
void fake_nccl_counts(int* still_open, int* were_aborted) {
  const std::lock_guard lock(mutex);
  *still_open = open;
  *were_aborted = aborted;
}
}
