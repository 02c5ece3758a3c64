#include "readers.h"

namespace mpol::testing {

const std::vector<FuzzedReader>& fuzzed_readers() {
  static const std::vector<FuzzedReader> readers = {
      {"npz", fuzz_npz, npz_corpus, repair_zip},
      {"npy", fuzz_npy, npy_corpus, nullptr},
      {"visibilities", fuzz_visibilities, visibilities_corpus, repair_zip},
      {"fits", fuzz_fits, fits_corpus, repair_fits},
      {"uvfits", fuzz_uvfits, uvfits_corpus, repair_fits},
      {"safetensors", fuzz_safetensors, safetensors_corpus, repair_safetensors},
      {"checkpoint", fuzz_checkpoint, checkpoint_corpus, repair_safetensors},
      {"diagnostics", fuzz_diagnostics, diagnostics_corpus, repair_safetensors},
      {"toml", fuzz_toml, toml_corpus, nullptr},
      {"csv", fuzz_csv, csv_corpus, nullptr},
      {"antennas", fuzz_antennas, antennas_corpus, nullptr},
  };
  return readers;
}

}  // namespace mpol::testing
