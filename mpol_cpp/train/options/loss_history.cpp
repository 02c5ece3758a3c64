#include <mpol_cpp/train/options/loss_history.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

LossHistory::LossHistory(std::initializer_list<EpochLoss> rows) {
  for (const auto& loss : rows) push_back(loss);
}

const double* LossHistory::row(std::size_t epoch) const {
  const auto block = epoch / block_rows;
  const auto& numbers = block < complete_.size() ? *complete_[block] : open_;
  return numbers.data() + epoch % block_rows * row_values_;
}

EpochLoss LossHistory::operator[](std::size_t epoch) const {
  const auto* numbers = row(epoch);
  return {static_cast<std::int64_t>(epoch), numbers[0], {numbers + 1, numbers + row_values_}};
}

EpochLoss LossHistory::at(std::size_t epoch) const {
  if (epoch >= size()) throw std::out_of_range(fmt::format("epoch {} of a history of {}", epoch, size()));
  return (*this)[epoch];
}

void LossHistory::push_back(const EpochLoss& loss) {
  if (loss.epoch != static_cast<std::int64_t>(size())) {
    throw ValueError(fmt::format("epoch {} was appended to a history of {}; append epochs in order", loss.epoch, size()));
  }
  std::vector<double> numbers = {loss.learning_rate};
  numbers.insert(numbers.end(), loss.values.begin(), loss.values.end());
  append_rows(numbers.data(), 1, numbers.size());
}

void LossHistory::append_rows(const double* numbers, std::size_t rows, std::size_t row_values) {
  if (empty()) row_values_ = row_values;
  if (row_values != row_values_) {
    throw ValueError(fmt::format("a row of {} losses in a history of {}", row_values, row_values_));
  }
  while (rows > 0) {
    const auto taken = std::min(rows, block_rows - open_rows());
    open_.insert(open_.end(), numbers, numbers + taken * row_values);
    numbers += taken * row_values;
    rows -= taken;
    if (open_rows() < block_rows) continue;
    open_.shrink_to_fit();
    complete_.push_back(std::make_shared<const Block>(std::exchange(open_, {})));
  }
}

void LossHistory::resize(std::size_t rows) {
  if (rows > size()) throw ValueError(fmt::format("{} epochs of a history of {}", rows, size()));
  if (const auto complete = rows / block_rows; complete < complete_.size()) {
    open_ = *complete_[complete];
    complete_.resize(complete);
  }
  open_.resize(rows % block_rows * row_values_);
}

}  // namespace mpol
