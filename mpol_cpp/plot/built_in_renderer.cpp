#include <mpol_cpp/plot/built_in_renderer.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/axes_painter.h>
#include <mpol_cpp/plot/panel_painter.h>

namespace mpol::plot {

Picture draw_page(const Page& page) {
  if (page.panels.empty() || page.columns < 1) throw ValueError("a page without panels cannot be drawn");
  const auto panels = static_cast<std::int64_t>(page.panels.size());
  const auto columns = std::min(page.columns, panels);
  const auto rows = (panels + columns - 1) / columns;
  const std::int64_t header = page.title.empty() ? 0 : 44;
  Canvas canvas(columns * page.panel_width, rows * page.panel_height + header);
  if (header > 0) canvas.text({static_cast<double>(canvas.width()) / 2, 32}, page.title, {1.3 * title_size, ink});
  for (std::int64_t i = 0; i < panels; ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    const auto left = static_cast<double>(column * page.panel_width);
    const auto top = static_cast<double>(row * page.panel_height + header);
    const Box area{left, top, left + static_cast<double>(page.panel_width), top + static_cast<double>(page.panel_height)};
    std::visit([&](const auto& panel) { paint(canvas, area, panel); }, page.panels[static_cast<std::size_t>(i)]);
  }
  return {canvas.width(), canvas.height(), canvas.pixels()};
}

}  // namespace mpol::plot
