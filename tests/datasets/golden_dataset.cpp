#include "golden_dataset.h"

#include "golden.h"

mpol::GriddedDataset golden_dataset() {
  const Golden gridding("gridding");
  return mpol::GriddedDataset(dataset_coords(), 2, gridding("out_mask_packed").flatten().nonzero().squeeze(1),
                              gridding("out_vis_indexed"), gridding("out_weight_indexed"));
}
