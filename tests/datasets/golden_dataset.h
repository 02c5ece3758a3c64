#pragma once

#include <mpol_cpp/datasets/gridded_dataset.h>

/// The gridded reference data, two channels, without Hermitian pairs.
mpol::GriddedDataset golden_dataset();
