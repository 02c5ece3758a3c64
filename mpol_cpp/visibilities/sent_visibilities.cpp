#include <mpol_cpp/visibilities/sent_visibilities.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

namespace mpol {
namespace {

constexpr std::int64_t values_at_once = std::int64_t{1} << 22;  // so that neither rank holds much beside the samples
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Texts one after another, each with a zero at its end.
Tensor texts_of(const Observation& observation) {
  std::string all;
  for (const auto* text : {&observation.object, &observation.telescope, &observation.date, &observation.spectral_reference})
    all += *text + '\0';
  auto bytes = at::empty({std::ssize(all)}, torch::kUInt8);
  std::copy(all.begin(), all.end(), bytes.mutable_data_ptr<std::uint8_t>());
  return bytes;
}

Tensor numbers_of(const Observation& observation) {
  return at::tensor({observation.right_ascension.value_or(unknown), observation.declination.value_or(unknown),
                     observation.rest_frequency.value_or(unknown), observation.center.east, observation.center.north,
                     static_cast<double>(observation.stokes)},
                    torch::kFloat64);
}

Observation observation_of(const Tensor& numbers, const Tensor& texts) {
  Observation observation;
  const auto* number = numbers.const_data_ptr<double>();
  const auto known = [](double value) { return value == value ? std::optional(value) : std::nullopt; };
  observation.right_ascension = known(number[0]);
  observation.declination = known(number[1]);
  observation.rest_frequency = known(number[2]);
  observation.center = {number[3], number[4]};
  observation.stokes = static_cast<Stokes>(number[5]);
  const auto* byte = texts.const_data_ptr<std::uint8_t>();
  for (auto* text : {&observation.object, &observation.telescope, &observation.date, &observation.spectral_reference}) {
    for (; *byte != 0; ++byte) text->push_back(static_cast<char>(*byte));
    ++byte;
  }
  return observation;
}

/// Which parts of the arrays of visibilities are sent.
struct ArrayParts {
  Share samples;
  std::vector<std::int64_t> channels;

  /// Picks those of (nchan) numbers.
  Tensor of_channels(const Tensor& values) const {
    return values.index_select(0, at::tensor(channels, torch::kInt64)).contiguous();
  }

  /// What is sent of (nvis), or of (nchan, nvis), which may be one row for all channels.
  std::vector<std::int64_t> shape(const Tensor& array) const {
    return array.dim() == 1 ? std::vector{samples.size()} : std::vector{rows(array), samples.size()};
  }
  std::int64_t rows(const Tensor& array) const { return array.dim() == 1 || array.size(0) == 1 ? 1 : std::ssize(channels); }
  /// A row of those that are sent.
  Tensor row(const Tensor& array, std::int64_t number) const {
    if (array.dim() == 1) return array;
    return array.select(0, array.size(0) == 1 ? 0 : channels[static_cast<std::size_t>(number)]);
  }
  double bytes(const Tensor& array) const {
    return static_cast<double>(rows(array)) * static_cast<double>(samples.size()) * static_cast<double>(array.element_size());
  }
};

/// An array by itself: its shape, then its values row by row and block by block, the first of which says their dtype.
void send_array(const Tensor& array, const ArrayParts& parts, std::int64_t to, Communicator& ranks) {
  ranks.send(at::tensor(parts.shape(array), torch::kInt64), to);
  for (std::int64_t number = 0; number < parts.rows(array); ++number) {
    const auto row = parts.row(array, number);
    for (auto begin = parts.samples.begin; begin < parts.samples.end; begin += values_at_once)
      ranks.send(row.narrow(0, begin, std::min(values_at_once, parts.samples.end - begin)).contiguous(), to);
  }
}

Tensor receive_array(std::int64_t from, Communicator& ranks, const ArrayRoom& room) {
  const auto lengths = ranks.receive(from);
  const std::vector<std::int64_t> shape(lengths.const_data_ptr<std::int64_t>(),
                                        lengths.const_data_ptr<std::int64_t>() + lengths.numel());
  const auto columns = shape.back(), count = shape.size() == 1 ? columns : shape.front() * columns;
  Tensor values;
  for (std::int64_t begin = 0; begin < count;) {
    const auto block = ranks.receive(from);
    if (begin == 0) values = room.empty({count}, block.scalar_type());
    values.narrow(0, begin, block.numel()).copy_(block);
    begin += block.numel();
  }
  return values.view(shape);
}

/// Arrays that may be missing.
void send_optional(const Tensor& array, std::int64_t to, Communicator& ranks) {
  ranks.send(array.defined() ? array.contiguous() : at::empty({0}, torch::kFloat64), to);
}
Tensor receive_optional(std::int64_t from, Communicator& ranks) {
  auto array = ranks.receive(from);
  return array.numel() > 0 ? array : Tensor();
}

}  // namespace

void send_visibilities(const Visibilities& visibilities, const VisibilityShare& share, std::int64_t to, Communicator& ranks) {
  const auto& baselines = visibilities.baselines();
  ArrayParts parts{share.samples.value_or(Share{0, visibilities.nvis()}), share.channels};
  if (parts.channels.empty()) {
    parts.channels.resize(static_cast<std::size_t>(visibilities.nchan()));
    std::iota(parts.channels.begin(), parts.channels.end(), 0);
  }
  const std::array arrays = {&baselines.u(), &baselines.v(), &visibilities.data(), &visibilities.weights()};
  double bytes = 0;
  for (const auto* array : arrays) bytes += parts.bytes(*array);
  ranks.send(at::tensor({bytes}, torch::kFloat64), to);
  ranks.send(numbers_of(visibilities.observation()), to);
  ranks.send(texts_of(visibilities.observation()), to);
  for (const auto* frequencies : {&visibilities.frequencies(), &baselines.frequencies()})
    send_optional(frequencies->defined() ? parts.of_channels(*frequencies) : Tensor(), to, ranks);
  for (const auto* array : arrays) send_array(*array, parts, to, ranks);
}

Visibilities receive_visibilities(std::int64_t from, Communicator& ranks, const std::function<ArrayRoom(double bytes)>& room) {
  const auto bytes = ranks.receive(from).item<double>();
  const auto numbers = ranks.receive(from), texts = ranks.receive(from);
  const auto frequencies = receive_optional(from, ranks), of_baselines = receive_optional(from, ranks);
  const auto place = room ? room(bytes) : ArrayRoom();
  std::array<Tensor, 4> arrays;
  for (auto& array : arrays) array = receive_array(from, ranks, place);
  auto& [u, v, data, weights] = arrays;
  Visibilities visibilities(of_baselines.defined() ? Baselines::in_metres(u, v, of_baselines) : Baselines::in_lambda(u, v), data,
                            weights);
  if (frequencies.defined()) visibilities.set_frequencies(frequencies);
  visibilities.set_observation(observation_of(numbers, texts));
  return visibilities;
}

}  // namespace mpol
