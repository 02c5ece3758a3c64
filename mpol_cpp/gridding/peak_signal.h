#pragma once

#include <mpol_cpp/datasets/gridded_dataset.h>

namespace mpol {

/// How far a source stands out of the noise before anything is fitted: the peak of the dirty image with natural weights over the
/// standard deviation that the weights promise it, of the channel with the most signal (largest sum W |V|^2 less the noise's).
/// About 4 where there is nothing but noise. One transform of an image, on the CPU.
/// @param dataset  float64, on the CPU
double peak_signal_to_noise(const GriddedDataset& dataset);

}  // namespace mpol
