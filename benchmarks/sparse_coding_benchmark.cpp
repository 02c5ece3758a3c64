// Times sparse coding; one JSON row: seconds of each run, those of its stages, the functional value and the iterations.
//
// usage: sparse_coding_benchmark CASE PROBLEM.npz ITERATIONS LAMBDA THREADS RUNS
//
// CASE is cbpdn, cbpdn_mask, tvl2, tvl1, tvl2_deconv, bpdn or rpca. The file has what the case needs: `image` (channels, rows,
// columns), `filters` (filters, h, w), `mask`, `kernel`, `dictionary` and `signals`, or `matrix`; compare_sporco.py writes it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

template <typename Options>
Options of_iterations(Options options, std::int64_t iterations) {
  options.tolerance = 1e-12;
  options.most_iterations = iterations;
  return options;
}

/// A case's solver, made anew. What a coder keeps besides is in `keeper`.
mpol::IterativeSolver* make_solver(const std::string& name, const mpol::io::NpzReader& problem, std::int64_t iterations,
                                   double lambda, std::shared_ptr<void>& keeper) {
  const auto keep = [&](std::unique_ptr<mpol::Admm> solver) {
    std::shared_ptr<mpol::Admm> own = std::move(solver);
    keeper = own;
    return own.get();
  };
  if (name == "cbpdn" || name == "cbpdn_mask") {
    auto options = of_iterations(mpol::ConvolutionalCodingOptions(lambda), iterations);
    if (name == "cbpdn_mask") {
      options.mask = problem.read("mask");
      options.rho = 1;
      options.balance.rho = mpol::AdmmOptions::Balance::Rho::fixed;
    }
    const auto coder = std::make_shared<mpol::ConvolutionalCoder>(problem.read("filters"), problem.read("image"), options);
    keeper = coder;
    return &coder->solver();
  }
  if (name == "bpdn") {
    const auto options = of_iterations(mpol::BasisPursuitOptions(lambda), iterations);
    return keep(mpol::basis_pursuit(problem.read("dictionary"), problem.read("signals"), options));
  }
  if (name == "rpca")
    return keep(mpol::robust_pca(problem.read("matrix"), of_iterations(mpol::RobustPcaOptions(lambda), iterations)));
  auto options = of_iterations(mpol::TvRestorationOptions(lambda), iterations);
  if (name == "tvl2_deconv") return keep(mpol::tv_deconvolver(problem.read("kernel"), problem.read("image"), options));
  options.balance.rho = mpol::AdmmOptions::Balance::Rho::fixed;
  if (name == "tvl1") options.fidelity = mpol::TvRestorationOptions::Fidelity::absolute;
  else if (name != "tvl2") throw mpol::ValueError(fmt::format("there is no case {}", name));
  return keep(mpol::tv_denoiser(problem.read("image"), options));
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 6) throw mpol::ValueError("give CASE PROBLEM.npz ITERATIONS LAMBDA THREADS RUNS");
  const mpol::io::NpzReader problem(arguments[1]);
  const auto iterations = std::stoll(arguments[2]);
  at::set_num_threads(std::stoi(arguments[4]));
  nlohmann::json row = {{"case", arguments[0]}, {"threads", at::get_num_threads()}, {"seconds", nlohmann::json::array()}};
  for (int k = 0; k < std::stoi(arguments[5]); ++k) {
    std::shared_ptr<void> keeper;
    auto* solver = make_solver(arguments[0], problem, iterations, std::stod(arguments[3]), keeper);
    const auto report = solver->solve();
    row["seconds"].push_back(report.seconds.at("total"));
    row["stages"] = report.seconds;
    row["objective"] = report.objective.front();
    row["iterations"] = report.iterations;
  }
  fmt::print("{}\n", row.dump());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sparse_coding_benchmark: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
