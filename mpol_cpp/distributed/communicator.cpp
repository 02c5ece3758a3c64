#include <mpol_cpp/distributed/communicator.h>

#include <algorithm>
#include <array>
#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::array known_dtypes = {torch::kFloat32, torch::kFloat64, torch::kInt32, torch::kInt64, torch::kUInt8};
constexpr std::int64_t most_dimensions = 6, header_length = 3 + most_dimensions;  // of a tensor that is sent

/// The same storage, with complex numbers as pairs. @throws ShapeError
Tensor as_real(const Communicator& ranks, const Tensor& tensor, const char* what) {
  if (!tensor.defined()) throw ShapeError(fmt::format("{}: the tensor is undefined", what));
  if (!tensor.is_contiguous() || tensor.is_conj() || !ranks.takes(tensor.device())) {
    throw ShapeError(fmt::format("{}: the tensor of shape {} on {} must be contiguous and on the CPU: take .cpu().contiguous()",
                                 what, tensor.sizes().vec(), tensor.device().str()));
  }
  const auto real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  if (std::find(known_dtypes.begin(), known_dtypes.end(), real.scalar_type()) == known_dtypes.end()) {
    throw ShapeError(fmt::format("{}: the tensor is {}; ranks exchange float32, float64, int32, int64, uint8 and complex numbers",
                                 what, c10::toString(tensor.scalar_type())));
  }
  return real.detach();
}

void check_root(std::int64_t root, std::int64_t size) {
  if (root < 0 || root >= size) throw ValueError(fmt::format("rank {} of {} ranks: they go from 0 to {}", root, size, size - 1));
}

void check_rows(const Tensor& tensor, const char* what) {
  if (tensor.dim() < 1) throw ShapeError(fmt::format("{}: a tensor without dimensions has no rows: take .view({{1}})", what));
}

/// What a tensor that is sent is like: dtype, whether it is of complex numbers, dimensions, and their lengths.
Tensor header_of(const Tensor& real, bool is_complex) {
  if (real.dim() > most_dimensions) {
    throw ShapeError(fmt::format("send: a tensor of {} dimensions; at most {} can be sent, pairs of complex numbers one of them",
                                 real.dim(), most_dimensions));
  }
  std::vector<std::int64_t> header(header_length);
  header[0] = static_cast<std::int64_t>(real.scalar_type());
  header[1] = is_complex ? 1 : 0;
  header[2] = real.dim();
  std::copy(real.sizes().begin(), real.sizes().end(), header.begin() + 3);
  return at::tensor(header, torch::kInt64);
}

bool is_complex_header(const Tensor& header) { return header.const_data_ptr<std::int64_t>()[1] != 0; }

/// Where a tensor with such a header goes.
Tensor room_for(const Tensor& header) {
  const auto* numbers = header.const_data_ptr<std::int64_t>();
  return at::empty({numbers + 3, static_cast<std::size_t>(numbers[2])}, static_cast<torch::Dtype>(numbers[0]));
}

/// What single_rank() gives.
class SingleRank : public Communicator {
 public:
  SingleRank() : Communicator(0, 1) {}
  std::string name() const override { return "one rank"; }
  std::shared_ptr<Communicator> first(std::int64_t count) override {
    if (count != 1) throw ValueError(fmt::format("the first {} of 1 rank: there is only one", count));
    return single_rank();
  }
  std::optional<std::vector<std::int64_t>> exchange_endings(std::int64_t code, std::optional<Milliseconds>) override {
    return std::vector{code};
  }
  void abort(int) noexcept override {}

 private:
  void broadcast_tensor(Tensor&, std::int64_t) override {}
  void sum_tensor(Tensor&) override {}
  void gather_tensor(const Tensor& rows, Tensor& all, const std::vector<std::int64_t>&, std::int64_t) override {
    all.copy_(rows);
  }
  void send_tensor(const Tensor&, std::int64_t) override {}
  void receive_tensor(Tensor&, std::int64_t) override {}
  void reduce_scatter_tensor(const Tensor& tensor, Tensor& own, const std::vector<std::int64_t>&) override { own.copy_(tensor); }
};

}  // namespace

std::shared_ptr<Communicator> single_rank() { return std::make_shared<SingleRank>(); }

void Communicator::set_timeout(Milliseconds timeout) {
  if (timeout.count() <= 0) throw ValueError(fmt::format("a time-out of {} ms: it must be above 0", timeout.count()));
  timeout_ = timeout;
}

void Communicator::broadcast(Tensor& tensor, std::int64_t root) {
  check_root(root, size());
  auto real = as_real(*this, tensor, "broadcast");
  if (!is_alone() && real.numel() > 0) broadcast_tensor(real, root);
}

void Communicator::all_reduce_sum(Tensor& tensor) {
  auto real = as_real(*this, tensor, "all-reduce");
  if (!is_alone() && real.numel() > 0) sum_tensor(real);
}

Tensor Communicator::reduce_scatter(const Tensor& tensor) {
  check_rows(tensor, "reduce-scatter");
  const auto real = as_real(*this, tensor, "reduce-scatter");
  std::vector<std::int64_t> rows_of;
  for (std::int64_t other = 0; other < size(); ++other) rows_of.push_back(share_of(real.size(0), other, size()).size());
  auto shape = real.sizes().vec();
  shape.front() = rows_of[static_cast<std::size_t>(rank())];
  auto own = at::empty(shape, real.options());
  if (real.numel() > 0) reduce_scatter_tensor(real, own, rows_of);
  return tensor.is_complex() ? at::view_as_complex(own) : own;
}

Tensor Communicator::gather(const Tensor& rows, std::int64_t root) {
  check_root(root, size());
  check_rows(rows, "gather");
  const auto real = as_real(*this, rows, "gather");
  std::vector<double> counts(static_cast<std::size_t>(size()), 0.0);
  counts[static_cast<std::size_t>(rank())] = static_cast<double>(real.size(0));
  sum(counts);
  std::vector<std::int64_t> rows_of(counts.begin(), counts.end());
  auto shape = real.sizes().vec();
  shape.front() = std::accumulate(rows_of.begin(), rows_of.end(), std::int64_t{0});
  auto all = rank() == root ? at::empty(shape, real.options()) : Tensor();
  const bool is_empty = std::any_of(shape.begin(), shape.end(), [](std::int64_t length) { return length == 0; });
  if (!is_empty) gather_tensor(real, all, rows_of, root);
  return all.defined() && rows.is_complex() ? at::view_as_complex(all) : all;
}

void Communicator::send(const Tensor& tensor, std::int64_t to) {
  check_other(to);
  if (tensor.defined() && !tensor.device().is_cpu())
    throw ShapeError(fmt::format("send: the tensor is on {}; what is sent is on the CPU: take .cpu()", tensor.device().str()));
  const auto real = as_real(*this, tensor, "send");
  send_tensor(header_of(real, tensor.is_complex()), to);
  if (real.numel() > 0) send_tensor(real, to);
}

Tensor Communicator::receive(std::int64_t from) {
  check_other(from);
  auto header = at::empty({header_length}, torch::kInt64);
  receive_tensor(header, from);
  auto real = room_for(header);
  if (real.numel() > 0) receive_tensor(real, from);
  return is_complex_header(header) ? at::view_as_complex(real) : real;
}

void Communicator::check_other(std::int64_t other) const {
  check_root(other, size());
  if (other == rank()) throw ValueError(fmt::format("rank {} sends to itself: it has that already", other));
}

void Communicator::barrier() {
  auto one = at::zeros({1}, torch::kUInt8);
  all_reduce_sum(one);
}

void Communicator::sum(std::vector<double>& numbers) {
  if (is_alone() || numbers.empty()) return;
  auto tensor = at::tensor(numbers, torch::kFloat64);
  all_reduce_sum(tensor);
  numbers.assign(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
}

bool Communicator::any(bool here) {
  std::vector<double> count = {here ? 1.0 : 0.0};
  sum(count);
  return count.front() > 0;
}

}  // namespace mpol
