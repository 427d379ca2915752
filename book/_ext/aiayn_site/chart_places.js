// In the page's head: what Altair's output calls. Charts wait here until charts.js comes.
(() => {
  // About as tall as the chart will be, so that little moves when it is drawn: charts in a
  // column one below the other, in a row as tall as the tallest, then controls.
  const drawing = spec => {
    if (spec.vconcat) return spec.vconcat.map(drawing).reduce((sum, one) => sum + one, 0);
    if (spec.hconcat) return Math.max(...spec.hconcat.map(drawing));
    if (spec.spec) return drawing({ height: spec.height, ...spec.spec });
    return (typeof spec.height === "number" ? spec.height : 240) + 60;
  };
  const tall = spec =>
    drawing(spec) + 40 * (spec.params || []).filter(param => param.bind).length;

  const embed = (target, spec, options) => new Promise((done, failed) => {
    const element = typeof target === "string" ? document.querySelector(target) : target;
    element.style.minHeight = `${tall(spec)}px`;
    embed.waiting.push({ element, spec, options, done, failed });
  });
  embed.waiting = [];
  window.vegaEmbed = embed;
})();
