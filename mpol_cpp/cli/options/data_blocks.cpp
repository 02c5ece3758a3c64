#include <mpol_cpp/cli/options/data_blocks.h>

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr auto block_kind_choices = std::to_array<NamedChoice<BlockKind>>({{"window", BlockKind::window},
                                                                           {"observation", BlockKind::observation},
                                                                           {"time", BlockKind::time},
                                                                           {"file", BlockKind::file},
                                                                           {"channel", BlockKind::channel}});

/// An array of (nvis) numbers as (1, nvis), or nothing.
Tensor row_of(const io::NpzReader& arrays, const std::string& key, std::int64_t nvis, torch::Dtype dtype) {
  if (!arrays.contains(key)) return {};
  const auto header = arrays.header(key);
  const bool whole = header.kind == 'i' || header.kind == 'u';
  if (header.shape != std::vector<std::int64_t>{nvis} || !(whole || (dtype == torch::kFloat64 && header.kind == 'f'))) {
    throw DataError(fmt::format("{} is {} {}; blocks are told apart by ({}) {}, one for each sample", arrays.where(key),
                                header.descr, fmt::join(header.shape, " x "), nvis,
                                dtype == torch::kFloat64 ? "numbers" : "whole numbers"));
  }
  return arrays.read(key).to(dtype).unsqueeze(0);
}

Tensor row_of(const Tensor& numbers) { return numbers.defined() ? numbers.to(torch::kInt64).unsqueeze(0) : Tensor(); }

/// Observations that no file knows are -1.
Tensor known(Tensor observations) {
  const bool all = observations.defined() && observations.min().item<std::int64_t>() >= 0;
  return all ? std::move(observations) : Tensor();
}

/// A row for all channels, or one for each, as join_samples() has them behind each other.
Tensor flattened(const Tensor& rows, const Visibilities& visibilities) {
  return rows.expand({visibilities.nchan(), visibilities.nvis()}).reshape({-1});
}

Tensor joined(const std::vector<DataOrigins>& files, const std::vector<Visibilities>& visibilities, Tensor DataOrigins::*what) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& own = files[i].*what;
    if (!own.defined()) return {};
    parts.push_back(flattened(own, visibilities[i]));
  }
  return at::cat(parts).unsqueeze(0);
}

Tensor numbers_of_kind(const DataOrigins& origins, BlockKind kind) {
  if (kind == BlockKind::window) return origins.windows;
  if (kind == BlockKind::observation) return origins.observations;
  return kind == BlockKind::file ? origins.files : origins.channels;
}

SampleBlocks blocks_of_kind(const DataOrigins& origins, BlockKind kind, std::int64_t stretches) {
  const auto name = choice_name(kind, block_kind_choices);
  if (kind == BlockKind::time) {
    const auto& shape = origins.files;
    if (origins.times.defined()) {
      const auto labels = stretches_of_time(origins.times.reshape({-1}), stretches);
      return SampleBlocks::of_numbers(labels.view(origins.times.sizes()), name);
    }
    const auto count = shape.size(-1), most = std::min(stretches, count);
    return SampleBlocks::of_numbers((at::arange(count, torch::kInt64) * most).div(count, "floor").unsqueeze(0), name);
  }
  const auto numbers = numbers_of_kind(origins, kind);
  if (!numbers.defined()) {
    throw DataError(error_text("--blocks", name, fmt::format("the data do not say of which {} a sample is", name),
                               kind == BlockKind::window
                                   ? "a measurement set does, or an .npz file with the whole numbers `block` (nvis); "
                                     "or take --blocks file or channel"
                                   : "a measurement set does, or an .npz file with the whole numbers `observation` "
                                     "(nvis); or take --blocks file or channel"));
  }
  return SampleBlocks::of_numbers(numbers, name);
}

}  // namespace

DataOrigins origins_of(const io::CollectedVisibilities& read) {
  DataOrigins origins;
  origins.windows = row_of(read.windows);
  origins.observations = known(row_of(read.observations));
  if (read.times.defined()) origins.times = read.times.unsqueeze(0);
  return origins;
}

DataOrigins origins_of(const io::NpzReader& arrays, std::int64_t nvis, bool with_times) {
  DataOrigins origins;
  origins.windows = row_of(arrays, "block", nvis, torch::kInt64);
  origins.observations = known(row_of(arrays, "observation", nvis, torch::kInt64));
  if (with_times) origins.times = row_of(arrays, "time", nvis, torch::kFloat64);
  return origins;
}

DataOrigins joined_origins(const std::vector<DataOrigins>& files, const std::vector<Visibilities>& visibilities) {
  auto own = files;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto nchan = visibilities[i].nchan(), nvis = visibilities[i].nvis();
    own[i].files = at::full({1, nvis}, static_cast<std::int64_t>(i), torch::kInt64);
    own[i].channels = at::arange(nchan, torch::kInt64).unsqueeze(1).expand({nchan, nvis});
  }
  if (own.size() == 1) return own.front();
  DataOrigins all;
  for (const auto what :
       {&DataOrigins::windows, &DataOrigins::observations, &DataOrigins::files, &DataOrigins::channels, &DataOrigins::times})
    all.*what = joined(own, visibilities, what);
  return all;
}

void declare_blocks(OptionSet& options, std::string& blocks, const std::string& condition, const std::function<bool()>& applies) {
  const auto set = [&blocks](const std::string& text) { parse_block_kinds(text), blocks = text; };
  const auto get = [&blocks] { return blocks.empty() ? std::nullopt : std::optional(toml_string(blocks)); };
  options.parsed("--blocks", set, get, "KIND[,KIND...]",
                 "What blocks of data are: window, observation, time, file, channel, or several for those that all of them tell "
                 "apart; default: of --fit-blocks windows, observations and files, of --split blocks stretches of samples in "
                 "their order",
                 Record::result);
  options.only({"--blocks"}, condition, applies);
}

std::vector<BlockKind> parse_block_kinds(const std::string& list) {
  std::vector<BlockKind> kinds;
  for (const auto& word : list_items(list, ',')) {
    const auto* const kind =
        std::find_if(block_kind_choices.begin(), block_kind_choices.end(), [&](const auto& each) { return word == each.name; });
    if (kind == block_kind_choices.end()) {
      std::vector<std::string> all;
      all.reserve(block_kind_choices.size());
      for (const auto& each : block_kind_choices) all.emplace_back(each.name);
      throw UsageError(
          error_text("--blocks", word, "is no kind of block", fmt::format("take one or several of {}", fmt::join(all, ", "))));
    }
    if (std::find(kinds.begin(), kinds.end(), kind->value) != kinds.end())
      throw UsageError(error_text("--blocks", list, fmt::format("names {} twice", word), "name it once"));
    kinds.push_back(kind->value);
  }
  return kinds;
}

SampleBlocks blocks_of(const DataOrigins& origins, const std::string& kinds, std::int64_t stretches) {
  SampleBlocks all;
  const auto add = [&all](SampleBlocks blocks) { all = all.names.empty() ? std::move(blocks) : all.crossed(blocks); };
  for (const auto kind : parse_block_kinds(kinds)) add(blocks_of_kind(origins, kind, stretches));
  if (!kinds.empty()) return all;
  for (const auto kind : {BlockKind::window, BlockKind::observation, BlockKind::file}) {
    if (!numbers_of_kind(origins, kind).defined()) continue;
    auto blocks = blocks_of_kind(origins, kind, stretches);
    if (blocks.size() > 1) add(std::move(blocks));
  }
  return all.names.empty() ? blocks_of_kind(origins, BlockKind::file, stretches) : all;
}

void DataParts::note(std::size_t file, const std::string& name, const std::vector<io::WindowRange>& ranges,
                     const Visibilities& visibilities) {
  if (file == 0) files_.clear();
  files_.push_back({name, ranges, visibilities.nchan(), visibilities.nvis(), visibilities.frequencies()});
}

std::vector<SampleRange> DataParts::ranges(std::int64_t samples) const {
  std::vector<SampleRange> parts;
  const bool several = files_.size() > 1;
  std::int64_t begin = 0;
  for (const auto& file : files_) {
    const auto copies = several ? file.nchan : 1;  // channels of joined files lie behind each other
    for (std::int64_t channel = 0; channel < copies; ++channel, begin += file.nvis) {
      const bool is_known = copies == file.nchan && file.frequencies.defined();  // else samples are of all channels
      const double frequency = is_known ? file.frequencies[channel].item<double>() : 0;
      if (file.ranges.empty()) parts.push_back({file.name, begin, begin + file.nvis, frequency});
      for (const auto& range : file.ranges) {
        auto name = several ? fmt::format("{}, spw {}", file.name, range.window) : fmt::format("spw {}", range.window);
        parts.push_back({std::move(name), begin + range.begin, begin + range.end, range.frequency});
      }
    }
  }
  return begin == samples && parts.size() > 1 ? parts : std::vector<SampleRange>();
}

std::vector<io::WindowRange> window_ranges(const io::NpzReader& arrays, std::int64_t nvis) {
  constexpr std::size_t most = 4096;
  constexpr std::int64_t at_once = 1 << 16;  // never the whole array: the samples themselves may be on disk
  if (!arrays.contains("block")) return {};
  const auto header = arrays.header("block");
  if (header.shape != std::vector<std::int64_t>{nvis} || (header.kind != 'i' && header.kind != 'u')) return {};
  auto stream = arrays.stream("block");
  std::vector<io::WindowRange> ranges;
  for (std::int64_t begin = 0; begin < nvis; begin += at_once) {
    const auto numbers = stream.next(std::min(at_once, nvis - begin)).to(torch::kInt64);
    const auto* number = numbers.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      if (ranges.empty() || ranges.back().window != number[i]) ranges.push_back({number[i], begin + i, begin + i});
      if (ranges.size() > most) return {};
      ranges.back().end = begin + i + 1;
    }
  }
  stream.finish();
  return ranges;
}

}  // namespace mpol::cli
