/* Whatever scrolls sideways can be reached, and so scrolled, by keyboard. */
(() => {
  const boxes = "pre, div.math, .vega-embed, .pst-scrollable-table-container, .cell_output .output, .aiayn-scrolls";
  const mark = () => {
    for (const box of document.querySelectorAll(boxes)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  new ResizeObserver(mark).observe(document.documentElement);
})();
