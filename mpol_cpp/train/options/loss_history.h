#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

namespace mpol {

/// The loss of one epoch, before its update. Weighted terms in the order of the objective's columns.
struct EpochLoss {
  std::int64_t epoch = 0;      ///< from 0
  double learning_rate = 0;    ///< of the update that followed
  std::vector<double> values;  ///< total, nll, terms… (sums over problems)

  double total() const { return values.at(0); }  ///< the objective, which is made small
  double nll() const { return values.at(1); }    ///< of the likelihood alone
};

/// The losses of a run, epoch after epoch from 0 on, 8 bytes a value: runs have millions of epochs. Rows lie in blocks, and
/// copies share the complete ones. Elements are made when they are asked for; they are no references.
class LossHistory {
 public:
  /// Epochs of a block.
  static constexpr std::size_t block_rows = std::size_t{1} << 18;

  class Iterator;

  LossHistory() = default;
  /// The history of the rows given. @throws ValueError as push_back
  LossHistory(std::initializer_list<EpochLoss> rows);

  std::size_t size() const { return complete_.size() * block_rows + open_rows(); }  ///< epochs
  bool empty() const { return complete_.empty() && open_.empty(); }                 ///< whether there is no epoch yet
  /// The losses of an epoch < size(), which is not checked.
  EpochLoss operator[](std::size_t epoch) const;
  EpochLoss at(std::size_t epoch) const;                           ///< @throws std::out_of_range
  EpochLoss front() const { return (*this)[0]; }                   ///< of epoch 0; there must be one
  EpochLoss back() const { return (*this)[size() - 1]; }           ///< of the newest epoch; there must be one
  double total(std::size_t epoch) const { return row(epoch)[1]; }  ///< of an epoch < size()
  Iterator begin() const;                                          ///< at epoch 0
  Iterator end() const;                                            ///< behind the newest epoch

  /// Appends an epoch. @throws ValueError for a row with another number of values than the first, or of another epoch than size()
  void push_back(const EpochLoss& loss);
  /// Forgets the epochs from `rows` on. @throws ValueError when there are fewer
  void resize(std::size_t rows);
  void pop_back() { resize(size() - 1); }  ///< forgets the newest epoch; there must be one

  /// Numbers of a row: the learning rate, then the values; 0 while there is none.
  std::size_t row_values() const { return row_values_; }
  /// The numbers of one epoch; those of the next behind them, to the end of the block.
  const double* row(std::size_t epoch) const;
  /// Appends rows of so many numbers as they are. @throws ValueError as push_back
  void append_rows(const double* numbers, std::size_t rows, std::size_t row_values);

  /// Memory of an epoch of an objective with so many columns.
  static double bytes_per_epoch(std::size_t columns) { return static_cast<double>((1 + columns) * sizeof(double)); }

 private:
  using Block = std::vector<double>;

  std::size_t open_rows() const { return row_values_ == 0 ? 0 : open_.size() / row_values_; }

  std::size_t row_values_ = 0;
  std::vector<std::shared_ptr<const Block>> complete_;
  Block open_;
};

/// Goes through a history; what it points to is made anew.
class LossHistory::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = EpochLoss;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = EpochLoss;

  Iterator() = default;
  /// At an epoch, of a history that lives as long.
  Iterator(const LossHistory& history, std::size_t epoch) : history_(&history), epoch_(epoch) {}
  EpochLoss operator*() const { return (*history_)[epoch_]; }  ///< made anew
  Iterator& operator++() {                                     ///< on to the next epoch
    ++epoch_;
    return *this;
  }
  Iterator operator++(int) {  ///< the same, from where it was
    const auto before = *this;
    ++epoch_;
    return before;
  }
  /// Whether both are at the same epoch, of one history.
  bool operator==(const Iterator& other) const { return epoch_ == other.epoch_; }

 private:
  const LossHistory* history_ = nullptr;
  std::size_t epoch_ = 0;
};

inline LossHistory::Iterator LossHistory::begin() const { return {*this, 0}; }
inline LossHistory::Iterator LossHistory::end() const { return {*this, size()}; }

}  // namespace mpol
