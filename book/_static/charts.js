/* Lets the charts that Altair's output draws follow the page: its colours, when the theme
   is switched too, and its ways (no menu; SVG, which stays sharp and can be read aloud). */
(() => {
  const draw = window.vegaEmbed;
  const charts = new Set();

  const pageConfig = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--book-ink").trim();
    const rule = style.getPropertyValue("--book-rule").trim();
    const text = { labelColor: ink, titleColor: ink };
    return {
      background: "transparent",
      axis: { ...text, gridColor: rule, domainColor: ink, tickColor: ink },
      header: text,
      legend: text,
      text: { color: ink },
      title: { color: ink, subtitleColor: ink },
      view: { stroke: "transparent" },
    };
  };

  const isObject = value => value && typeof value === "object" && !Array.isArray(value);
  const merged = (base, extra) => {
    const result = { ...base };
    for (const [key, value] of Object.entries(extra)) {
      result[key] = isObject(value) ? merged(result[key] || {}, value) : value;
    }
    return result;
  };

  // The names of the controls (sliders, menus) outside the drawing.
  const controls = chart =>
    (chart.spec.params || []).filter(p => p.bind && !p.select).map(p => p.name);

  async function paint(chart) {
    const chosen = chart.view ? controls(chart).map(name => [name, chart.view.signal(name)]) : [];
    if (chart.view) chart.view.finalize();
    // ast: expressions are interpreted; the page's policy lets no text become a program.
    const options = merged({ renderer: "svg", actions: false, ast: true, ...chart.options }, {
      config: pageConfig(),
    });
    const result = await draw(chart.element, chart.spec, options);
    chart.view = result.view;
    for (const [name, value] of chosen) result.view.signal(name, value);
    await result.view.runAsync();
    return result;
  }

  // One drawing at a time for each chart: two at once would both stay.
  const show = chart => (chart.drawn = (chart.drawn || Promise.resolve()).then(() => paint(chart)));

  window.vegaEmbed = (element, spec, options) => {
    const target = typeof element === "string" ? document.querySelector(element) : element;
    const chart = { element: target, spec, options };
    charts.add(chart);
    return show(chart);
  };

  new MutationObserver(() => charts.forEach(show)).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
})();
