#include "catch.h"

#include <fstream>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/history_files.h>

#include "problems.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr auto file_rows = LossHistory::block_rows;

LossHistory saved_history(std::size_t epochs, double offset = 0) {
  LossHistory history;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    const double numbers[3] = {0.3, offset + static_cast<double>(epoch), 2.0};
    history.append_rows(numbers, 1, 3);
  }
  return history;
}

/// A checkpoint of a run of that history whose complete blocks are in files.
Checkpoint checkpoint_of(const std::filesystem::path& path, const LossHistory& history) {
  Checkpoint checkpoint;
  checkpoint.epochs = static_cast<std::int64_t>(history.size());
  checkpoint.step = "eager";
  checkpoint.columns = {"total", "nll"};
  checkpoint.history = history;
  for (std::size_t i = 0; i < history.size() / file_rows; ++i) {
    checkpoint.history_files.push_back(mpol::detail::write_history_block(path, history, i));
  }
  return checkpoint;
}

std::vector<std::filesystem::path> blocks_beside(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    if (mpol::detail::is_history_block(path, entry.path().filename().string())) found.push_back(entry.path());
  }
  return found;
}

}  // namespace

TEST_CASE("a long history comes back from its files, and the checkpoint itself stays small", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto history = saved_history(3 * file_rows + 100);
  write_checkpoint(path, checkpoint_of(path, history));
  CHECK(blocks_beside(path).size() == 3);
  CHECK(std::filesystem::file_size(path) < 100 * 24 + 4096);
  const auto read = read_checkpoint(path);
  CHECK(read->epochs == static_cast<std::int64_t>(history.size()));
  CHECK(same_history(read->history, history));

  // Once more, as the checkpoint before another.
  write_checkpoint(path, checkpoint_of(path, saved_history(3 * file_rows + 200)));
  std::filesystem::remove(path);
  CHECK(same_history(read_checkpoint(path)->history, history));
  CHECK(same_history(read_checkpoint(previous_checkpoint(path))->history, history));
}

TEST_CASE("a file of a history that is missing, damaged or of other epochs is an error", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const auto checkpoint = checkpoint_of(path, saved_history(2 * file_rows + 1));
  write_checkpoint(path, checkpoint);
  const auto first = folder / checkpoint.history_files[0], second = folder / checkpoint.history_files[1];
  SECTION("missing") { std::filesystem::remove(first); }
  SECTION("cut") { std::filesystem::resize_file(first, 1000); }
  SECTION("another block") { std::filesystem::copy_file(second, first, std::filesystem::copy_options::overwrite_existing); }
  SECTION("of another run") {
    const TemporaryFolder other;
    const auto name = mpol::detail::write_history_block(other / "checkpoint.safetensors", saved_history(file_rows, 1e-9), 0);
    CHECK(name != checkpoint.history_files[0]);
    std::filesystem::copy_file(other / name, first, std::filesystem::copy_options::overwrite_existing);
  }
  SECTION("no rows") { write_safetensors(first, {{"x", torch::ones({2})}}); }
  CHECK_THROWS_AS(read_checkpoint(path), FileError);
  CHECK_THROWS_WITH(read_checkpoint(path), ContainsSubstring(checkpoint.history_files[0]));
}

TEST_CASE("only files with the name of a block are taken for one", "[train][quick]") {
  const std::filesystem::path path = "out/checkpoint.safetensors";
  const std::string name = "checkpoint.history-000012-0123456789abcdef.safetensors";
  CHECK(mpol::detail::is_history_block(path, name));
  CHECK_FALSE(mpol::detail::is_history_block("out/other.safetensors", name));
  for (const auto* other :
       {"checkpoint.safetensors", "checkpoint.previous.safetensors", "checkpoint.history-.safetensors",
        "checkpoint.history-00001x-0123456789abcdef.safetensors", "checkpoint.history-000012-0123456789ABCDEF.safetensors",
        "checkpoint.history-000012-0123456789abcdef.safetensors2", "history.csv"}) {
    CHECK_FALSE(mpol::detail::is_history_block(path, other));
  }
}

TEST_CASE("a run of more than a block of epochs goes on bit for bit, and its block is written once", "[train]") {
  SmallProblem problem;
  problem.coords = GridCoords(0.05, 4);
  problem.nchan = 1;
  const auto run = [&](TrainOptions options) {
    auto model = problem.model();
    auto result = Trainer(model, problem.objective(), options.optimizer(OptimizerKind::adam).learning_rate(1e-4)).fit();
    return std::pair(std::move(result), model->base().detach().clone());
  };
  constexpr auto half = static_cast<std::int64_t>(file_rows / 2), epochs = 2 * half + 10;
  const auto [whole, base] = run(TrainOptions().epochs(epochs + 10));
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  std::ofstream(folder / "checkpoint.history-000000-0000000000000000.safetensors") << "of another run";
  run(TrainOptions().epochs(half).checkpoint(path));
  REQUIRE(blocks_beside(path).size() == 1);  // both checkpoints may still be the other run's
  run(TrainOptions().epochs(epochs).checkpoint(path).checkpoint_interval(half / 4).resume(true));
  const auto written = blocks_beside(path);
  REQUIRE(written.size() == 1);
  CHECK_THAT(written[0].filename().string(), !ContainsSubstring("-0000000000000000"));
  CHECK(std::filesystem::file_size(path) < 64'000);
  const auto time = std::filesystem::last_write_time(written[0]);

  const auto [result, resumed] = run(TrainOptions().epochs(epochs + 10).checkpoint(path).resume(true));
  CHECK(result.resumed_from == epochs);
  CHECK(same_history(result.history, whole.history));
  CHECK(at::equal(resumed, base));
  CHECK(same_history(read_checkpoint(path)->history, whole.history));
  CHECK(blocks_beside(path) == written);
  CHECK(std::filesystem::last_write_time(written[0]) == time);

  std::ofstream(path) << "damaged";
  CHECK(same_history(run(TrainOptions().epochs(epochs + 10).checkpoint(path).resume(true)).first.history, whole.history));
}
