#include <array>
#include <string_view>

#include <ATen/ops/arange.h>

#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/image/fit_diagnostics.h>
#include <mpol_cpp/serialize/safetensors.h>

#include "input_file.h"
#include "random.h"
#include "readers.h"

namespace mpol::testing {
namespace {

/// The file of these tensors, and the same without digests, as other programs write them.
std::vector<std::string> with_and_without_digests(const NamedTensors& tensors, const Metadata& metadata) {
  const auto path = input_folder() / "corpus.safetensors";
  write_safetensors(path, tensors, metadata);
  return {bytes_of(path), without_digests(bytes_of(path))};
}

/// Where the JSON text that begins at byte 8 ends, spaces behind it included; 0 when its braces do not close.
std::size_t end_of_header(std::string_view bytes) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 8; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (quoted && c == '\\') ++i;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && c == '{') ++depth;
    else if (!quoted && c == '}' && --depth == 0) return std::min(bytes.find_first_not_of(' ', i + 1), bytes.size());
  }
  return 0;
}

}  // namespace

std::string without_digests(std::string bytes) {
  for (const std::string_view key : {"\"payload_sha256\"", "\"header_sha256\""}) {
    const auto at = bytes.find(key);
    if (at != std::string::npos) bytes[at + key.size() - 2] = 'x';
  }
  return bytes;
}

int fuzz_safetensors(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.safetensors", bytes, size);
  return refused([&] { read_safetensors(path); });
}

std::vector<std::string> safetensors_corpus() {
  const auto numbers = normal({2, 3}, torch::kFloat64, 1);
  auto files = with_and_without_digests({{"a", numbers},
                                         {"b", numbers.to(torch::kFloat32)},
                                         {"c", normal({4}, torch::kComplexDouble, 2)},
                                         {"mask", numbers > 0},
                                         {"count", at::arange(5, torch::kInt64)},
                                         {"none", numbers.slice(0, 0, 0)}},
                                        {{"format", "test"}, {"note", "k\u03bb"}});
  for (auto& file : with_and_without_digests({}, {})) files.push_back(std::move(file));
  return files;
}

std::string repair_safetensors(std::string bytes) {
  const auto end = end_of_header(bytes);
  if (end == 0) return bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(((end - 8) >> (8 * i)) & 0xffU);
  return bytes;
}

int fuzz_diagnostics(const std::uint8_t* bytes, std::size_t size) {
  static const auto table = [] {
    std::filesystem::create_directories(cli::diagnostics_folder(input_folder()));
    const std::string text = "epoch,gradient_norm,largest_change,flux_0\n5,1,nan,1\n";
    return input_file("diagnostics/diagnostics.csv", reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }();
  input_file("diagnostics/last.safetensors", bytes, size);
  return refused([] { cli::read_diagnostics(input_folder()); });
}

std::vector<std::string> diagnostics_corpus() {
  const auto image = normal({1, 4, 4}, torch::kFloat64, 1);
  return with_and_without_digests({{"image", image}, {"gradient", image}, {"change", image}},
                                  {{"epoch", "5"}, {"cell_size", "0.05"}});
}

}  // namespace mpol::testing
