#include <mpol_cpp/datasets/resident_array.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

ResidentArray::ResidentArray(const Tensor& array, DataResidency residency, torch::Device device)
    : residency_(residency), device_(device) {
  if (residency == DataResidency::disk) {
    throw ValueError("an array in memory cannot be kept on disk: write it to a .npy file and map that");
  }
  if (array.dim() == 0) throw ValueError("a scalar has no rows: give an array of samples");
  array_ = array.to(residency == DataResidency::device ? device : torch::Device(torch::kCPU));
}

ResidentArray::ResidentArray(const MappedArray& file, DataResidency residency, torch::Device device)
    : residency_(residency), device_(device) {
  if (residency == DataResidency::disk) {
    file_ = file;
    return;
  }
  array_ = file.read(0, file.rows());
  file.release();
  if (residency == DataResidency::device) array_ = array_.to(device);
}

std::int64_t ResidentArray::rows() const { return file_ ? file_->rows() : array_.size(0); }

Tensor ResidentArray::read(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > rows()) {
    throw ValueError(fmt::format("rows [{}, {}) of an array of {} rows: they are not there", begin, end, rows()));
  }
  return (file_ ? file_->read(begin, end) : array_.narrow(0, begin, end - begin)).to(device_);
}

Tensor ResidentArray::read(const Tensor& indices) const {
  return (file_ ? file_->read(indices) : array_.index_select(0, indices.to(array_.device()))).to(device_);
}

}  // namespace mpol
