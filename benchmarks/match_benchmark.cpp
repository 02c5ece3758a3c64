// Times template matching; one JSON row: seconds, and seconds of all cores, of each match of a file's frames with a file's
// templates.
//
// usage: match_benchmark FILE.npz N_BEST KEEP_FRACTION SCORE DTYPE THREADS ROUNDS OUT.npz
//
// FILE.npz has `frames` (n, nr, nphi) and points of templates `r`, `theta`, `intensity` (templates, points) or maps `polar`
// (templates, nr, nphi); SCORE is projection or cosine. OUT.npz gets `index`, `angle` (degrees), `mirrored` and `score`.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/npz_archive.h>

namespace {

mpol::PolarTemplates templates_in(const mpol::io::NpzReader& file, torch::Dtype dtype, std::int64_t nr, std::int64_t nphi) {
  if (file.contains("polar")) return mpol::PolarTemplates(file.read("polar").to(dtype));
  return {mpol::PolarPoints{file.read("r"), file.read("theta"), file.read("intensity")}, nr, nphi};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    fmt::print(stderr, "usage: match_benchmark FILE.npz N_BEST KEEP_FRACTION SCORE DTYPE THREADS ROUNDS OUT.npz\n");
    return 2;
  }
  at::set_num_threads(std::atoi(argv[6]));
  const auto dtype = std::string(argv[5]) == "float64" ? torch::kFloat64 : torch::kFloat32;
  const mpol::io::NpzReader file(argv[1]);
  const auto frames = file.read("frames").to(dtype);
  const auto nr = frames.size(1);
  const auto templates = templates_in(file, dtype, nr, frames.size(2));
  const auto options = mpol::MatchOptions()
                           .n_best(std::atoll(argv[2]))
                           .keep_fraction(std::strtod(argv[3], nullptr))
                           .score(std::string(argv[4]) == "cosine" ? mpol::MatchScore::cosine : mpol::MatchScore::projection)
                           .first_azimuth(0)
                           .coarse_weights(at::arange(nr, torch::kFloat64) / static_cast<double>(nr));
  std::vector<double> seconds, processor;
  mpol::Matches found;
  for (int round = 0; round < std::atoi(argv[7]); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const auto ticks = std::clock();
    found = mpol::match_templates(frames, templates, options);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    processor.push_back(static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC);
  }
  mpol::io::write_npz_arrays(argv[8], {{"index", found.index},
                                       {"angle", found.angle / mpol::units::degree},
                                       {"mirrored", found.mirrored},
                                       {"score", found.score}});
  fmt::print("{{\"seconds\": [{:.4g}], \"processor\": [{:.4g}]}}\n", fmt::join(seconds, ", "), fmt::join(processor, ", "));
  return 0;
}
