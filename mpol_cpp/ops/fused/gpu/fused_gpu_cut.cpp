#include <mpol_cpp/ops/fused/gpu/fused_gpu_cut.h>

#include <mpol_cpp/ops/gpu/gpu_stream.h>
#include <mpol_cpp/ops/gpu/line_roots.h>

namespace mpol::ops {
namespace {

/// So many blocks keep the processors of a GPU busy.
constexpr std::int64_t busy_blocks = 128;

std::int64_t pieces_of(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

std::int64_t rows_of(TileKind kind) {
  switch (kind) {
    case TileKind::two_rows:
      return TwoRows::rows;
    case TileKind::four_rows:
      return FourRows::rows;
    case TileKind::eight_rows:
      return EightRows::rows;
    default:
      return OddRows::rows;
  }
}

std::int64_t bytes_of_lines(const LinePlan& plan, std::int64_t lines, torch::Dtype dtype) {
  const auto count = static_cast<int>(lines);
  return dtype == torch::kFloat64 ? LineTransform<double>::bytes(plan, count) : LineTransform<float>::bytes(plan, count);
}

/// More rows are fewer that are transformed twice; fewer keep more processors busy. None where a processor could not hold two
/// blocks of even two rows.
std::optional<TileKind> suitable_rows(const GpuShape& shape, const LinePlan& plan, torch::Dtype dtype, std::int64_t memory) {
  std::optional<TileKind> suitable;
  for (const auto kind : {TileKind::two_rows, TileKind::four_rows, TileKind::eight_rows}) {
    const auto rows = rows_of(kind);
    if (bytes_of_lines(plan, rows / 2 + 1, dtype) > memory / 2) break;
    if (suitable && shape.images() * pieces_of(shape.npix, rows) < busy_blocks) break;
    suitable = kind;
  }
  return suitable;
}

/// As many columns of a block, while others still keep the processors busy and a processor holds three blocks.
std::int64_t suitable_columns(std::int64_t images, std::int64_t columns, const LinePlan& plan, torch::Dtype dtype,
                              std::int64_t memory) {
  std::int64_t suitable = 1;
  for (const std::int64_t count : {2, 4, 8}) {
    if (images * pieces_of(columns, count) < busy_blocks || bytes_of_lines(plan, count, dtype) > memory / 3) break;
    suitable = count;
  }
  return suitable;
}

template <typename Tile>
GpuPieces pieces_of_tile(const GpuShape& shape) {
  GpuArrays<float> arrays{};
  arrays.shape = shape;
  return {arrays.template pieces<Tile>(), arrays.template tiles<Tile>()};
}

}  // namespace

TileKind suitable_tile(const GpuShape& shape) {
  const auto pixels = shape.images() * std::int64_t{shape.pixels()};
  return pixels >= 4 * busy_blocks * HighTile::width * HighTile::height ? TileKind::high : TileKind::low;
}

GpuPieces pieces_of_tiles(TileKind tile, const GpuShape& shape) {
  if (tile == TileKind::high) return pieces_of_tile<HighTile>(shape);
  return tile == TileKind::odd ? pieces_of_tile<OddTile>(shape) : pieces_of_tile<LowTile>(shape);
}

std::optional<TileKind> GpuRowCut::kind_for(const GpuShape& shape, torch::Dtype dtype, torch::Device device,
                                            std::optional<TileKind> wanted) {
  if (!LinePlan::exists(shape.npix)) return std::nullopt;
  const auto plan = LinePlan::of(shape.npix);
  const auto memory = shared_memory_of_block(device);
  if (!wanted) return suitable_rows(shape, plan, dtype, memory);
  if (bytes_of_lines(plan, rows_of(*wanted) / 2 + 1, dtype) > memory) return std::nullopt;
  return wanted;
}

GpuRowCut::GpuRowCut(TileKind kind, const GpuShape& shape, torch::Dtype dtype, torch::Device device, const GpuCells& cells,
                     bool all)
    : kind_(kind),
      npix_(shape.npix),
      dtype_(dtype),
      device_(device),
      plan_(LinePlan::of(npix_)),
      columns_(columns_of(cells, all)),
      columns_of_block_(suitable_columns(shape.images(), columns(), plan_, dtype, shared_memory_of_block(device))) {
  for (auto* table : {&columns_.column, &columns_.number, &columns_.cells.cell_of, &columns_.cells.weight, &columns_.cells.real,
                      &columns_.cells.imag, &columns_.cells.constant, &columns_.cells.channel_constants}) {
    *table = table->to(device);
  }
  roots_ = line_roots(npix_).to(device, c10::toComplexType(dtype));
}

GpuRowCut GpuRowCut::for_images(const GpuShape& shape) const {
  auto cut = *this;
  cut.kind_ = kind_for(shape, dtype_, device_).value_or(kind_);
  cut.columns_of_block_ = suitable_columns(shape.images(), columns(), plan_, dtype_, shared_memory_of_block(device_));
  return cut;
}

GpuPieces GpuRowCut::pieces() const { return {pieces_of(columns(), columns_of_block_), pieces_of(npix_, rows_of(kind_))}; }

std::int64_t GpuRowCut::memory_bytes() const {
  return static_cast<std::int64_t>(columns_.column.nbytes() + columns_.number.nbytes() + roots_.nbytes());
}

}  // namespace mpol::ops
