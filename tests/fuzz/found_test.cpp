// Files that once took memory, crashed, or ended in an error that was not ours.
#include "catch.h"

#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/output/csv_table.h>
#include <mpol_cpp/cli/image/fit_diagnostics.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npy.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/trainer.h>

#include "../train/problems.h"
#include "allocations.h"
#include "compare.h"
#include "input_file.h"
#include "readers.h"
#include "temporary_folder.h"
#include "zip_bytes.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

void write_bytes(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// What a reader says to a file.
template <typename Read>
std::string refusal_of(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A safetensors file without tensors whose header is this text.
std::string with_header(const std::string& header) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xffU);
  return length + header;
}

}  // namespace

TEST_CASE("a gzip file takes as much memory as it unpacks to, whatever its last bytes promise", "[fuzz][quick]") {
  const TemporaryFolder folder;
  auto packed = fits_corpus().at(3);
  REQUIRE(packed.starts_with("\x1f\x8b"));
  const auto refusal = [&](const std::string& bytes) {
    write_bytes(folder / "a.fits.gz", bytes);
    const AllocationWatch watch;
    const auto words = refusal_of([&] { io::read_fits(folder / "a.fits.gz"); });
    CHECK(watch.most() < 1 << 22);
    return words;
  };
  CHECK(refusal(packed) == "no error");
  CHECK(io::read_fits(folder / "a.fits.gz").cube.size(-1) == 8);
  // What follows the packed contents is no part of them, and no size: cfitsio takes zeros for 4 GiB.
  CHECK(refusal(packed + std::string(80, ' ')) == "no error");
  CHECK(refusal(packed + std::string(packed.size(), '\0')) == "no error");
  for (const auto& size : {std::string("\xff\xff\xff\x3f"), std::string("\x05\0\0\0", 4), std::string(4, '\0')}) {
    auto damaged = packed;
    CHECK_THAT(refusal(damaged.replace(packed.size() - 4, 4, size)), ContainsSubstring("a.fits.gz: gzip cannot unpack it"));
  }
  CHECK_THAT(refusal(packed.substr(0, packed.size() / 2)), ContainsSubstring("a.fits.gz: gzip cannot unpack it"));
  write_bytes(folder / "other.fits", "\x1f\x9d" + packed);
  CHECK_THAT(refusal_of([&] { io::read_fits(folder / "other.fits"); }), ContainsSubstring("neither with SIMPLE"));
}

TEST_CASE("an array that repeats itself is read, one that is not there asks for no memory", "[fuzz][quick]") {
  const TemporaryFolder folder;
  const auto zeros = at::zeros({1 << 18}, torch::kFloat64);
  io::write_npz_arrays(folder / "zeros.npz", {{"x", zeros}});
  const auto bytes = bytes_of(folder / "zeros.npz");
  REQUIRE(bytes.size() * 100 < zeros.nbytes());
  CHECK(same(io::read_npz_array(folder / "zeros.npz", "x"), zeros));
  for (std::size_t at = 40; at < bytes.size() - 100; at += 97) {
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write_bytes(folder / "damaged.npz", damaged);
    const AllocationWatch watch;
    const auto refusal = refusal_of([&] { io::read_npz_array(folder / "damaged.npz", "x"); });
    CAPTURE(at);
    if (refusal != "no error") CHECK(watch.most() < std::ssize(damaged) * 10 + (3 << 20) / 2);
  }
}

TEST_CASE("compressed images whose tiles are empty or lie elsewhere are refused before they are unpacked", "[fuzz][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "tiles.fits";
  for (const std::size_t packed : {4, 5}) {  // by Rice and by gzip
    const auto good = fits_corpus().at(packed);
    write_bytes(path, good);
    CHECK(refusal_of([&] { io::read_fits(path); }) == "no error");
    const auto with = [&](std::size_t at, const std::string& bytes) {
      auto damaged = good;
      write_bytes(path, damaged.replace(at, bytes.size(), bytes));
      const AllocationWatch watch;
      const auto refusal = refusal_of([&] { io::read_fits(path); });
      CHECK(watch.most() < 1 << 22);
      return refusal;
    };
    const std::string card = "ZTILE1  =                    ";
    const auto tile = good.find(card);
    REQUIRE(tile != std::string::npos);
    CHECK_THAT(with(tile, card + "0"), ContainsSubstring("ZTILE1 = 0; a tile of a compressed image has"));
    // cfitsio would write its message about a long text beyond the message's end.
    CHECK_THAT(with(tile, "ZTILE1  = '" + std::string(60, 'x') + "'"), ContainsSubstring("ZTILE1 = 'xx"));
    CHECK_THAT(with(good.find("ZBITPIX ="), "ZBITPIX = '" + std::string(60, 'x') + "'"), ContainsSubstring("must be a number"));
    CHECK_THAT(with(good.find("BITPIX  ="), "BITPIX  = '" + std::string(60, 'x') + "'"), ContainsSubstring("must be a number"));
    CHECK_THAT(with(good.find("ZNAXIS1 ="), "ZNAXIS1 =      (             4 / "), ContainsSubstring("must be a number"));
    if (packed == 4) {
      const auto block = good.find("ZVAL1   =");
      REQUIRE(block != std::string::npos);
      CHECK_THAT(with(block, "ZVAL1   =                    0"), ContainsSubstring("ZVAL1 = 0; pixels are packed by Rice"));
      CHECK_THAT(with(block, "ZVAL1   =           0       32"), ContainsSubstring("ZVAL1 = 0       32; pixels are packed"));
      CHECK_THAT(with(good.find("ZVAL2   ="), "ZVAL2   =                    3"), ContainsSubstring("ZVAL2 = 3; pixels packed"));
    }
    // The first row of the table: how many bytes the first tile has, and where.
    const auto end = good.find("END" + std::string(77, ' '), tile);
    const auto table = (end / 2880 + 1) * 2880;
    CHECK_THAT(with(table, std::string("\x20\x22\x20\x27", 4)), ContainsSubstring("tiles outside the part that holds them"));
    if (packed == 5) {  // a tile whose last byte is gone, which cfitsio would unpack for ever; the fourth column holds them
      const auto length = table + 27;
      REQUIRE(good[length] > 1);
      CHECK_THAT(with(length, std::string(1, static_cast<char>(good[length] - 1))),
                 ContainsSubstring("tiles of gzip that do not unpack"));
      // Pixels of another width than the header says: cfitsio would convert from an array that is not there.
      const auto bits = good.find("ZBITPIX =");
      const bool wide = good.substr(bits, 40).find("-64") != std::string::npos;
      CHECK_THAT(with(bits, wide ? "ZBITPIX =                  -32" : "ZBITPIX =                  -64"),
                 ContainsSubstring("tiles of gzip of other sizes"));
    }
    CHECK_THAT(with(table + 4, std::string("\x00\x00\x7f\x00", 4)), ContainsSubstring("tiles outside the part that holds them"));
  }
}

TEST_CASE("shapes that no memory takes are refused, also where a zero makes them empty", "[fuzz][quick]") {
  const TemporaryFolder folder;
  for (const std::int64_t first : std::initializer_list<std::int64_t>{4294967296, 0}) {
    write_bytes(folder / "x.npz", zip_of("x.npy", io::npy_header("<f8", {first, 4294967296, 4294967296})));
    CHECK_THAT(refusal_of([&] { io::NpzReader(folder / "x.npz").read("x"); }), ContainsSubstring("does not fit any memory"));
  }
}

TEST_CASE("what toml++ takes for granted is refused in words", "[fuzz][quick]") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.toml", "npix = [ }\n");
  CHECK_THAT(refusal_of([&] { cli::recorded_run(folder / "a.toml"); }), ContainsSubstring("a.toml"));
  write_bytes(folder / "a.toml", "npix = 1\u00e9\n");
  CHECK_THAT(refusal_of([&] { cli::recorded_run(folder / "a.toml"); }), ContainsSubstring("line 1"));
}

TEST_CASE("headers of safetensors that no tensor has are refused", "[fuzz][quick]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& header, const char* words) {
    write_bytes(folder / "a.safetensors", with_header(header));
    CHECK_THAT(refusal_of([&] { read_safetensors(folder / "a.safetensors"); }), ContainsSubstring(words));
  };
  refuses(R"({"x":{"dtype":"F64","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", "too large for any memory");
  refuses("{\"x\":" + std::string(1000, '[') + std::string(1000, ']') + "}", "nested deeper");
}

TEST_CASE("texts that would take many times their size are refused", "[fuzz][quick]") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.csv", std::string(100000, ',') + "\n");
  CHECK_THAT(refusal_of([&] { cli::read_csv(folder / "a.csv"); }), ContainsSubstring("more than 16384 columns"));
  write_bytes(folder / "a.toml", "# " + std::string(2 << 20, 'x') + "\n");
  CHECK_THAT(refusal_of([&] { cli::recorded_run(folder / "a.toml"); }), ContainsSubstring("more than 1048576 bytes"));
}

TEST_CASE("diagnostics without the numbers and images they should have are refused by name", "[fuzz][quick]") {
  const TemporaryFolder folder;
  const auto out = folder / "out";
  std::filesystem::create_directories(cli::diagnostics_folder(out));
  write_bytes(cli::diagnostics_folder(out) / "diagnostics.csv", "epoch,gradient_norm,largest_change,flux_0\n5,1,nan,1\n");
  const auto image = at::zeros({1, 4, 4}, torch::kFloat64);
  const auto refusal = [&](const NamedTensors& tensors, const Metadata& metadata) {
    write_safetensors(cli::diagnostics_folder(out) / "last.safetensors", tensors, metadata);
    return refusal_of([&] { cli::read_diagnostics(out); });
  };
  const Metadata good = {{"epoch", "5"}, {"cell_size", "0.05"}};
  CHECK(refusal({{"image", image}, {"gradient", image}}, good) == "no error");
  CHECK_THAT(refusal({{"image", image}}, {{"cell_size", "0.05"}}), ContainsSubstring("does not say its epoch"));
  CHECK_THAT(refusal({{"image", image}}, {{"epoch", "1e999"}, {"cell_size", "0.05"}}),
             ContainsSubstring("does not say its epoch"));
  CHECK_THAT(refusal({{"image", image}}, {{"epoch", "5"}, {"cell_size", "wide"}}), ContainsSubstring("does not say its epoch"));
  CHECK_THAT(refusal({{"gradient", image}}, good), ContainsSubstring("no image"));
  CHECK_THAT(refusal({{"image", image[0]}}, good), ContainsSubstring("image of shape"));
  CHECK_THAT(refusal({{"image", image}, {"gradient", image.slice(1, 0, 2)}}, good), ContainsSubstring("gradient of shape"));
}

TEST_CASE("a checkpoint whose tensors are of another kind is refused by name", "[fuzz][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const SmallProblem problem{.coords = GridCoords(0.05, 4), .nchan = 1};
  const auto kind = GENERATE(OptimizerKind::adam, OptimizerKind::lbfgs);
  const auto options = TrainOptions().optimizer(kind).step(StepKind::eager).epochs(2).checkpoint(path);
  auto model = problem.model();
  Trainer(model, problem.objective(), options).fit();
  const auto refusal = [&](const std::string& end, const Tensor& instead) {
    auto file = read_safetensors(path);
    int changed = 0;
    for (auto& [name, tensor] : file.tensors) {
      if (name.ends_with(end)) tensor = instead, ++changed;
    }
    REQUIRE(changed == 1);
    const auto other = folder / "changed.safetensors";
    write_safetensors(other, file.tensors, file.metadata);
    return refusal_of([&] { Trainer(model, problem.objective(), TrainOptions(options).checkpoint(other).resume(true)).fit(); });
  };
  CHECK_THAT(refusal("random.cpu", at::zeros({5}, torch::kUInt8)), ContainsSubstring("random generator"));
  const auto* number = kind == OptimizerKind::adam ? ".step" : ".n_iter";
  CHECK_THAT(refusal(number, at::zeros({2}, torch::kInt64)), ContainsSubstring("one whole number"));
  CHECK_THAT(refusal(number, at::zeros({}, torch::kFloat64)), ContainsSubstring("one whole number"));
  if (kind == OptimizerKind::lbfgs)
    CHECK_THAT(refusal(".d", at::zeros({16}, torch::kInt32)), ContainsSubstring("16 elements of Int"));
}
