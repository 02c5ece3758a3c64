#include "distributed/communicator_checks.h"

#include <array>
#include <cstdint>
#include <functional>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/format.h>

using mpol::Communicator;
using torch::Tensor;

namespace {

constexpr std::int64_t large = (std::int64_t{9} << 20) / 8;  // 9 MiB of float64: more than one message of the store

/// Of one rank; a whole number everywhere, so that sums have no rounding.
Tensor numbers_of(std::int64_t rank, const std::vector<std::int64_t>& shape, torch::Dtype dtype) {
  std::int64_t count = 1;
  for (const auto length : shape) count *= length;
  const auto real = at::arange(count, torch::kFloat64).remainder(7) + static_cast<double>(rank);
  if (dtype == torch::kComplexDouble || dtype == torch::kComplexFloat)
    return (real.to(dtype) * c10::complex<double>(1, 2)).view(shape).contiguous();
  return real.to(dtype).view(shape);
}

class Checks {
 public:
  explicit Checks(Communicator& ranks) : ranks_(ranks) {}

  void expect(bool holds, const std::string& what) {
    if (!holds) failures_.push_back(fmt::format("rank {} of {}: {}", ranks_.rank(), ranks_.size(), what));
  }

  void of_dtype(torch::Dtype dtype) {
    const std::string name = c10::toString(dtype);
    const std::vector<std::int64_t> shape = {5, 3};
    auto sum = at::zeros(shape, dtype);
    for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) sum = sum + numbers_of(rank, shape, dtype);
    auto own = numbers_of(ranks_.rank(), shape, dtype);
    ranks_.all_reduce_sum(own);
    expect(own.equal(sum), "all-reduce of " + name);
    for (std::int64_t root = 0; root < ranks_.size(); ++root) {
      auto sent = numbers_of(ranks_.rank(), shape, dtype);
      ranks_.broadcast(sent, root);
      expect(sent.equal(numbers_of(root, shape, dtype)), fmt::format("broadcast of {} from {}", name, root));
    }
    const auto share = mpol::share_of(shape[0], ranks_.rank(), ranks_.size());
    const auto part = ranks_.reduce_scatter(numbers_of(ranks_.rank(), shape, dtype));
    expect(part.equal(sum.narrow(0, share.begin, share.size())), "reduce-scatter of " + name);
    for (std::int64_t root = 0; root < ranks_.size(); ++root) of_gather(dtype, root);
    of_sending(dtype);
  }

  void of_large_tensors() {
    auto own = at::full({large}, 1.0 + static_cast<double>(ranks_.rank()), torch::kFloat64);
    ranks_.all_reduce_sum(own);
    const auto n = static_cast<double>(ranks_.size());
    expect((own == n * (n + 1) / 2).all().item<bool>(), "all-reduce of a large tensor");
    const auto all = ranks_.gather(own.view({-1, 1024}), ranks_.size() - 1);
    expect(all.defined() == (ranks_.rank() == ranks_.size() - 1), "who has the rows of a gather");
    if (all.defined())
      expect(all.numel() == ranks_.size() * large && (all == all[0][0]).all().item<bool>(), "gather of a large tensor");
    if (ranks_.rank() == 0 && ranks_.size() > 1) ranks_.send(own, 1);
    if (ranks_.rank() == 1) expect(ranks_.receive(0).equal(own), "a large tensor received");
  }

  void of_the_rest() {
    ranks_.barrier();
    std::vector<double> numbers = {1, static_cast<double>(ranks_.rank())};
    ranks_.sum(numbers);
    const auto n = static_cast<double>(ranks_.size());
    expect(numbers == std::vector<double>{n, n * (n - 1) / 2}, "sum of numbers");
    expect(ranks_.any(ranks_.rank() == ranks_.size() - 1) && !ranks_.any(false), "whether on any rank");
    auto nothing = at::zeros({0, 3}, torch::kFloat64);
    ranks_.all_reduce_sum(nothing);
    ranks_.broadcast(nothing);
    // Parts work by themselves, one after the other and inside one another, and the whole goes on beside them.
    for (std::int64_t count = 1; count <= ranks_.size(); ++count) {
      const auto part = ranks_.first(count);
      expect((part != nullptr) == (ranks_.rank() < count), fmt::format("who is among the first {}", count));
      if (!part) continue;
      auto ones = at::ones({2}, torch::kFloat64);
      part->all_reduce_sum(ones);
      expect(part->size() == count && part->rank() == ranks_.rank() && ones[0].item<double>() == static_cast<double>(count),
             fmt::format("all-reduce of the first {}", count));
    }
    ranks_.barrier();
  }

  void of_refusals() {
    const auto refuses = [&](const Tensor& tensor, const char* what) {
      auto own = tensor;
      bool refused = false;
      try {
        ranks_.all_reduce_sum(own);
      } catch (const mpol::ShapeError&) {
        refused = true;
      }
      expect(refused, fmt::format("{} is not refused", what));
    };
    refuses(at::zeros({4, 4}).t().narrow(0, 0, 2), "a strided tensor");
    refuses(at::zeros({4}, torch::kBool), "a tensor of bools");
    refuses(Tensor(), "an undefined tensor");
    const auto fails = [&](const std::function<void()>& call, const char* what) {
      bool failed = false;
      try {
        call();
      } catch (const mpol::Error&) {
        failed = true;
      }
      expect(failed, fmt::format("{} is not refused", what));
    };
    const auto other = (ranks_.rank() + 1) % ranks_.size();
    fails([&] { ranks_.send(at::zeros({2}), ranks_.rank()); }, "sending to oneself");
    fails([&] { ranks_.receive(ranks_.rank()); }, "receiving from oneself");
    fails([&] { ranks_.send(at::zeros({2}), ranks_.size()); }, "sending to a rank that is not there");
    fails([&] { ranks_.send(at::zeros({2}, torch::kMeta), other); }, "sending what is not on the CPU");
    fails([&] { ranks_.send(at::zeros({1, 1, 1, 1, 1, 1, 1}), other); }, "sending seven dimensions");
  }

  std::vector<std::string> failures() const { return failures_; }

 private:
  /// Rank r has r rows, so that the first has none.
  void of_gather(torch::Dtype dtype, std::int64_t root) {
    std::vector<Tensor> parts;
    for (std::int64_t rank = 0; rank < ranks_.size(); ++rank) parts.push_back(numbers_of(rank, {rank, 2}, dtype));
    const auto all = ranks_.gather(numbers_of(ranks_.rank(), {ranks_.rank(), 2}, dtype), root);
    const bool right = ranks_.rank() == root ? all.equal(at::cat(parts)) : !all.defined();
    expect(right, fmt::format("gather of {} to {}", c10::toString(dtype), root));
  }

  /// Each rank sends something else to each other, in the order of the ranks, each of which receives from all before it first.
  void of_sending(torch::Dtype dtype) {
    const auto own = ranks_.rank();
    const auto shape_of = [](std::int64_t to) { return std::vector<std::int64_t>{to, 3}; };  // to the first nothing
    const auto expect_of = [&](std::int64_t other) {
      expect(ranks_.receive(other).equal(numbers_of(other, shape_of(own), dtype)),
             fmt::format("{} received from {}", c10::toString(dtype), other));
    };
    for (std::int64_t other = 0; other < own; ++other) {
      expect_of(other);
      ranks_.send(numbers_of(own, shape_of(other), dtype), other);
    }
    for (auto other = own + 1; other < ranks_.size(); ++other) {
      ranks_.send(numbers_of(own, shape_of(other), dtype), other);
      expect_of(other);
    }
  }

  Communicator& ranks_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> failures_of(Communicator& ranks) {
  Checks checks(ranks);
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kInt32, torch::kInt64, torch::kUInt8, torch::kComplexFloat,
                           torch::kComplexDouble}) {
    checks.of_dtype(dtype);
  }
  checks.of_large_tensors();
  checks.of_the_rest();
  checks.of_refusals();
  return checks.failures();
}
