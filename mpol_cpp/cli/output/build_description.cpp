#include <mpol_cpp/cli/output/build_description.h>

#include <features.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include <utility>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/device/backends/cuda_memory.h>
#include <mpol_cpp/distributed/nccl_communicator.h>
#include <mpol_cpp/distributed/nccl_library.h>
#include <mpol_cpp/distributed/open_communicator.h>
#include <mpol_cpp/io/archives/zip_archive.h>
#include <mpol_cpp/io/cfitsio/library_versions.h>
#include <mpol_cpp/io/measurement_set/set_table.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/plot/gnuplot.h>

namespace mpol::cli {
namespace {

std::string compiler_words() {
#if defined(__clang__)
  return __VERSION__;  // "Clang 14.0.6"
#else
  return fmt::format("GCC {}", __VERSION__);
#endif
}

std::string c_library_words() {
#ifdef __GLIBC__
  return fmt::format("glibc {}", gnu_get_libc_version());
#else
  return "not glibc";
#endif
}

std::string kernel_words() { return fmt::format("{} (built in: {})", to_string(selected_isa()), built_isas()); }

std::string cuda_words() {
  if (!detail::compiled_with_cuda) return "not built in: build with -DMPOL_CUDA=ON";
  const int version = detail::cuda_runtime_version();
  return fmt::format("built in, runtime {}.{}", version / 1000, version % 1000 / 10);
}

std::string nccl_words() {
  std::string reason;
  const auto nccl = detail::NcclLibrary::open(nccl_library_name, reason);
  if (nccl != nullptr)
    return fmt::format("{}, loaded where ranks have GPUs of their own", detail::nccl_version_words(nccl->version));
  return fmt::format("not found: {} is looked for where ranks have GPUs of their own", nccl_library_name);
}

std::string mpi_line() {
  if (!has_mpi()) return "not built in: build with -DMPOL_WITH_MPI=ON";
  try {
    return fmt::format("{}, loaded where its launcher started mpol", mpi_words());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string gnuplot_words() {
  const auto program = plot::find_gnuplot();
  if (!program) return "no gnuplot here: runs leave scripts and data";
  try {
    const auto version = plot::Gnuplot(*program).version(5);
    return fmt::format("gnuplot {} ({})", version.empty() ? "that does not tell its version" : version, program->string());
  } catch (const Error& error) {
    return fmt::format("{}: {}", program->string(), error.what());
  }
}

std::string fmt_version() { return fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100); }

std::string json_version() {
  return fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
}

}  // namespace

std::string build_description() {
  std::string text;
  for (const auto& [name, words] : {
           std::pair<std::string, std::string>("mpol", version()),
           {"libtorch", TORCH_VERSION},
           {"compiler", compiler_words()},
           {"C library", c_library_words()},
           {"kernels", kernel_words()},
           {"cuda", cuda_words()},
           {"nccl", nccl_words()},
           {"mpi", mpi_line()},
           {"measurement sets", io::has_casacore() ? fmt::format("by casacore {}", io::casacore_version())
                                                   : "not built in: build with -DMPOL_WITH_CASACORE=ON"},
           {"cfitsio", io::version_of_cfitsio()},
           {"libzip", io::libzip_version()},
           {"zlib", io::version_of_zlib()},
           {"fmt", fmt_version()},
           {"nlohmann-json", json_version()},
           {"CLI11", CLI11_VERSION},
           {"toml++", toml_version()},
           {"figures", gnuplot_words()},
       }) {
    text += fmt::format("{:<17} {}\n", name, words);
  }
  return text;
}

}  // namespace mpol::cli
