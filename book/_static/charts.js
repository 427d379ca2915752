/* Lets the charts that Altair's output draws follow the page: its colours, when the theme
   is switched too, and its ways (no menu; SVG, which stays sharp and can be read aloud). */
(() => {
  const VEGA = new URL("vendor/vega.js", document.currentScript.src).href;
  const charts = new Set();

  // Vega is large: it is loaded when the first chart comes near the screen.
  let draw;
  const loadVega = () => draw ??= new Promise((loaded, failed) => {
    const script = document.createElement("script");
    script.src = VEGA;
    script.onload = () => {
      const real = window.vegaEmbed;
      window.vegaEmbed = embed;
      loaded(real);
    };
    script.onerror = () => failed(new Error(`${VEGA} could not be loaded.`));
    document.head.append(script);
  });

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
    const result = await (await loadVega())(chart.element, chart.spec, options);
    chart.element.style.minHeight = "";
    chart.view = result.view;
    for (const [name, value] of chosen) result.view.signal(name, value);
    await result.view.runAsync();
    return result;
  }

  // One drawing at a time for each chart: two at once would both stay.
  const show = chart => (chart.drawn = (chart.drawn || Promise.resolve()).then(() => paint(chart)));

  const near = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const chart = [...charts].find(one => one.element === entry.target);
      if (entry.isIntersecting && !chart.drawn) show(chart).then(chart.done, chart.failed);
    }
  }, { rootMargin: "800px 0px" });

  // About as tall as the chart will be, so that little moves when it is drawn.
  const tall = spec => (typeof spec.height === "number" ? spec.height + 60 : 300);

  // What Altair's output calls for each chart.
  function embed(element, spec, options) {
    const target = typeof element === "string" ? document.querySelector(element) : element;
    return new Promise((done, failed) => {
      charts.add({ element: target, spec, options, done, failed });
      target.style.minHeight = `${tall(spec)}px`;
      near.observe(target);
    });
  }
  window.vegaEmbed = embed;

  // For printing, and for tests.
  window.drawAllCharts = () => {
    for (const chart of charts) if (!chart.drawn) show(chart).then(chart.done, chart.failed);
  };
  window.addEventListener("beforeprint", window.drawAllCharts);

  const drawnOnes = () => [...charts].filter(chart => chart.drawn);
  new MutationObserver(() => drawnOnes().forEach(show)).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
})();
