#include <mpol_cpp/datasets/gridded_dataset.h>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

void check_cells(const Tensor& cells, std::int64_t cube_cells) {
  if (cells.numel() == 0) return;
  const auto first = cells[0].item<std::int64_t>(), last = cells[-1].item<std::int64_t>();
  if (first < 0 || last >= cube_cells) {
    throw DataError(fmt::format("cell indices run from {} to {}; they must lie in 0 … {}", first, last, cube_cells - 1));
  }
  if (cells.numel() > 1 && !(cells.slice(0, 1) > cells.slice(0, 0, -1)).all().item<bool>()) {
    throw DataError("cell indices must increase strictly: sort them and merge duplicates");
  }
}

}  // namespace

GriddedDatasetImpl::GriddedDatasetImpl(GridCoords coords, std::int64_t nchan, Tensor cells, Tensor visibilities, Tensor weights)
    : coords_(coords),
      nchan_(nchan),
      cells_(std::move(cells)),
      visibilities_(std::move(visibilities)),
      weights_(std::move(weights)) {
  if (cells_.dim() != 1 || visibilities_.sizes() != cells_.sizes() || weights_.sizes() != cells_.sizes()) {
    throw ShapeError(fmt::format("cells {}, visibilities {} and weights {} must be vectors of one length", cells_.sizes().vec(),
                                 visibilities_.sizes().vec(), weights_.sizes().vec()));
  }
  if (!visibilities_.is_complex()) throw ShapeError("gridded visibilities must be complex");
  check_cells(cells_, nchan_ * coords_.npix() * coords_.npix());
  reset();
}

void GriddedDatasetImpl::reset() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  visibilities_ = register_buffer("visibilities", visibilities_.variable_data());
  weights_ = register_buffer("weights", weights_.variable_data());
  cells_ = register_buffer("cells", cells_.variable_data());
  nvis_.follow(register_buffer("nvis", nvis_.to_register()));
}

std::map<std::string, std::string> GriddedDatasetImpl::state_labels() const {
  auto labels = grid_labels(coords_);
  labels["nchan"] = fmt::format("{}", nchan_);
  return labels;
}

Tensor GriddedDatasetImpl::dense(const Tensor& values) const {
  const auto npix = coords_.npix();
  auto cube = at::zeros({nchan_ * npix * npix}, values.options());
  return cube.index_copy_(0, cells_, values).view({nchan_, npix, npix});
}

Tensor GriddedDatasetImpl::mask() const { return dense(at::ones_like(cells_, torch::kBool)); }
Tensor GriddedDatasetImpl::packed_visibilities() const { return dense(visibilities_); }
Tensor GriddedDatasetImpl::packed_weights() const { return dense(weights_); }

Tensor GriddedDatasetImpl::at_cells(const Tensor& packed_cube) const {
  const auto npix = coords_.npix();
  if (packed_cube.dim() < 3 || packed_cube.size(-3) != nchan_ || packed_cube.size(-2) != npix || packed_cube.size(-1) != npix) {
    throw ShapeError(
        fmt::format("the cube has shape {}; the dataset needs (…, {}, {}, {})", packed_cube.sizes().vec(), nchan_, npix, npix));
  }
  if (!packed_cube.is_complex()) {
    throw ShapeError(fmt::format("the cube is {}; visibilities are complex: an image goes through FourierCube first",
                                 c10::toString(packed_cube.scalar_type())));
  }
  if (packed_cube.device() != cells_.device()) {
    throw DeviceError(fmt::format("the cube is on {} but the dataset on {}: move one of them with .to(device)",
                                  packed_cube.device().str(), cells_.device().str()));
  }
  return packed_cube.flatten(-3).index_select(-1, cells_);
}

std::shared_ptr<GriddedDatasetImpl> GriddedDatasetImpl::subset(const Tensor& keep) const {
  if (keep.scalar_type() != torch::kBool || keep.sizes() != cells_.sizes()) {
    throw ShapeError(fmt::format("keep must be bool of shape ({}), one value per cell", ncells()));
  }
  const auto kept = keep.to(cells_.device()).nonzero().squeeze(1);
  return std::make_shared<GriddedDatasetImpl>(coords_, nchan_, cells_.index_select(0, kept), visibilities_.index_select(0, kept),
                                              weights_.index_select(0, kept));
}

}  // namespace mpol
