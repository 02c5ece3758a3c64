#include <mpol_cpp/distributed/row_slabs.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// What two ranges of rows have in common; nothing at the first one's begin where there is nothing.
Share common_rows(const Share& a, const Share& b) {
  const auto begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  return begin < end ? Share{begin, end} : Share{a.begin, a.begin};
}

/// Some rows of a slab, these first, as they are sent: (rows, nchan, columns). @param held  the rows of the slab
Tensor rows_to_send(const Tensor& slab, const Share& held, const Share& rows) {
  return slab.narrow(1, rows.begin - held.begin, rows.size()).transpose(0, 1).contiguous();
}

void check_slab(const Tensor& slab, std::int64_t rows) {
  if (slab.dim() == 3 && slab.size(1) == rows) return;
  throw ShapeError(
      fmt::format("a slab of shape {}: it must be (nchan, rows, columns) with this rank's {} rows", slab.sizes().vec(), rows));
}

}  // namespace

Tensor all_to_all(Communicator& ranks, const std::vector<Tensor>& parts) {
  if (static_cast<std::int64_t>(parts.size()) != ranks.size())
    throw ShapeError(fmt::format("an all-to-all of {} parts among {} ranks: give one for each", parts.size(), ranks.size()));
  Tensor own;
  for (std::int64_t root = 0; root < ranks.size(); ++root) {
    auto rows = ranks.gather(parts[static_cast<std::size_t>(root)], root);
    if (root == ranks.rank()) own = std::move(rows);
  }
  return own;
}

RowSlabs::RowSlabs(std::int64_t npix, std::shared_ptr<Communicator> ranks) : npix_(npix), ranks_(std::move(ranks)) {
  if (npix_ < 1) throw ValueError(fmt::format("slabs of an image of {} rows: there must be at least one", npix_));
}

Share RowSlabs::rows_of(std::int64_t rank) const { return share_of(npix_, rank, ranks_->size()); }

Share RowSlabs::rows_with_halo(std::int64_t rank, std::int64_t halo) const {
  const auto own = rows_of(rank);
  if (own.is_empty()) return own;
  return {std::max<std::int64_t>(own.begin - halo, 0), std::min(own.end + halo, npix_)};
}

Tensor RowSlabs::slab_of(const Tensor& image) const {
  check_slab(image, npix_);
  return image.narrow(1, rows().begin, rows().size()).contiguous();
}

Tensor RowSlabs::scatter(const Tensor& image, const Tensor& like) const {
  check_slab(like, rows().size());
  if (ranks_->is_first()) check_slab(image, npix_);
  std::vector<Tensor> parts;
  for (std::int64_t other = 0; other < ranks_->size(); ++other) {
    parts.push_back(ranks_->is_first() ? rows_to_send(image, {0, npix_}, rows_of(other))
                                       : at::zeros({0, like.size(0), like.size(2)}, like.options()));
  }
  return all_to_all(*ranks_, parts).transpose(0, 1).contiguous();
}

Tensor RowSlabs::gather(const Tensor& slab) const {
  check_slab(slab, rows().size());
  const auto all = ranks_->gather(slab.transpose(0, 1).contiguous());
  return all.defined() ? all.transpose(0, 1).contiguous() : all;
}

Tensor RowSlabs::with_halo(const Tensor& slab, std::int64_t halo) const {
  check_slab(slab, rows().size());
  std::vector<Tensor> parts;
  for (std::int64_t other = 0; other < ranks_->size(); ++other)
    parts.push_back(rows_to_send(slab, rows(), common_rows(rows(), rows_with_halo(other, halo))));
  return all_to_all(*ranks_, parts).transpose(0, 1).contiguous();
}

Tensor RowSlabs::add_halo(const Tensor& slab, std::int64_t halo) const {
  const auto held = rows_with_halo(ranks_->rank(), halo);
  check_slab(slab, held.size());
  std::vector<Tensor> parts;
  for (std::int64_t other = 0; other < ranks_->size(); ++other)
    parts.push_back(rows_to_send(slab, held, common_rows(held, rows_of(other))));
  const auto found = all_to_all(*ranks_, parts);
  auto sum = at::zeros({rows().size(), slab.size(0), slab.size(2)}, slab.options());
  std::int64_t begin = 0;
  for (std::int64_t other = 0; other < ranks_->size(); ++other) {
    const auto common = common_rows(rows_with_halo(other, halo), rows());
    if (common.is_empty()) continue;
    sum.narrow(0, common.begin - rows().begin, common.size()).add_(found.narrow(0, begin, common.size()));
    begin += common.size();
  }
  return sum.transpose(0, 1).contiguous();
}

Tensor RowSlabs::to_columns(const Tensor& slab) const {
  check_slab(slab, rows().size());
  std::vector<Tensor> parts;
  for (std::int64_t other = 0; other < ranks_->size(); ++other) {
    const auto columns = share_of(slab.size(2), other, ranks_->size());
    parts.push_back(slab.narrow(2, columns.begin, columns.size()).transpose(0, 1).contiguous());
  }
  return all_to_all(*ranks_, parts).transpose(0, 1).contiguous();
}

Tensor RowSlabs::to_rows(const Tensor& columns) const {
  check_slab(columns, npix_);
  std::vector<Tensor> parts;
  for (std::int64_t other = 0; other < ranks_->size(); ++other) {
    const auto held = rows_of(other);
    parts.push_back(columns.narrow(1, held.begin, held.size()).permute({2, 0, 1}).contiguous());
  }
  return all_to_all(*ranks_, parts).permute({1, 2, 0}).contiguous();
}

}  // namespace mpol
