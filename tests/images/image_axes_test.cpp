#include "catch.h"

#include <mpol_cpp/images/image_axes.h>
#include <mpol_cpp/models/gridded_net.h>

using namespace mpol;

TEST_CASE("cubes have channels, rows and columns, and what comes later stands before them", "[images][quick]") {
  CHECK(to_string(cube_axes()) == "channel,y,x");
  CHECK(to_string(ImageAxes{ImageAxis::stokes, ImageAxis::channel, ImageAxis::y, ImageAxis::x}) == "stokes,channel,y,x");
  CHECK(to_string(ImageAxis::sample) == "sample");
  const GriddedNet net(GriddedNetOptions(GridCoords(0.1, 8)));
  CHECK((net->axes() == cube_axes()));
  CHECK(net->state_labels().at("axes") == "channel,y,x");
}
