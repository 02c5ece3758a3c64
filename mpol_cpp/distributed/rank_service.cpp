#include <mpol_cpp/distributed/rank_service.h>

#include <algorithm>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>

namespace mpol {
namespace {

enum class Wish : std::int64_t { leave, work };

/// What the first rank wants, on all. @param message  looked at on the first alone
Wish agree(Communicator& ranks, Wish wish, RankService::Words& words) {
  auto message = at::zeros({1 + static_cast<std::int64_t>(words.size())}, torch::kInt64);
  auto* values = message.mutable_data_ptr<std::int64_t>();
  values[0] = static_cast<std::int64_t>(wish);
  std::copy(words.begin(), words.end(), values + 1);
  ranks.broadcast(message);
  std::copy_n(message.const_data_ptr<std::int64_t>() + 1, words.size(), words.begin());
  return static_cast<Wish>(*message.const_data_ptr<std::int64_t>());
}

}  // namespace

void RankService::ask(const Words& words) {
  if (released_) throw ValueError("the other ranks were released: evaluate before release()");
  auto sent = words;
  agree(*ranks_, Wish::work, sent);
}

void RankService::release() {
  Words none = {};
  if (!released_) agree(*ranks_, Wish::leave, none);
  released_ = true;
}

void RankService::serve(const std::function<void(const Words&)>& work) {
  for (Words words = {}; agree(*ranks_, Wish::leave, words) == Wish::work;) work(words);
}

}  // namespace mpol
