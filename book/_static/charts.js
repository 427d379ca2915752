/* Lets the charts that Altair's output draws follow the page: its colours, when the theme
   is switched too, and its ways (no menu; SVG, which stays sharp and can be read aloud). */
(() => {
  const VEGA = new URL("vendor/vega.js", document.currentScript.src).href;
  const embed = window.vegaEmbed;  // chart_places.js: what Altair's output calls
  const charts = new Set();

  // Vega is large: it is loaded when the first chart comes near the screen, and not
  // before the page itself is there.
  const loaded = new Promise(done => {
    if (document.readyState === "complete") done();
    else window.addEventListener("load", done, { once: true });
  });
  const idle = () => new Promise(done => (window.requestIdleCallback ?? setTimeout)(done));
  let draw;
  const loadVega = () => draw ??= new Promise((ready, failed) => {
    const script = document.createElement("script");
    script.src = VEGA;
    script.onload = () => {
      const real = window.vegaEmbed;
      window.vegaEmbed = embed;
      ready(real);
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

  // What a reader has set or chosen: sliders and menus, marks and words that were clicked.
  // How large a chart is and what it is made of follows from its page again.
  const PAGES = /^(width|height|padding|autosize|background|style|cursor|unit)$/;
  const chosen = view => view.getState({
    signals: name => !PAGES.test(name),
    data: name => name.endsWith("_store"),  // Vega-Lite's selections
  });

  async function paint(chart) {
    const state = chart.view && chosen(chart.view);
    if (chart.view) {
      chart.element.style.minHeight = `${chart.element.offsetHeight}px`;  // the page stays
      chart.view.finalize();
    }
    // ast: expressions are interpreted; the page's policy lets no text become a program.
    const options = merged({ renderer: "svg", actions: false, ast: true, ...chart.options }, {
      config: pageConfig(),
    });
    const result = await (await loadVega())(chart.element, chart.spec, options);
    chart.element.style.minHeight = "";
    chart.view = result.view;
    if (state) result.view.setState(state);
    await result.view.runAsync();
    return result;
  }

  // One drawing at a time for each chart: two at once would both stay.
  const show = chart => (chart.drawn = (chart.drawn || Promise.resolve()).then(() => paint(chart)));

  const begin = chart => {
    if (!chart.drawn) show(chart).then(chart.done, chart.failed);
  };
  const near = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const chart = [...charts].find(one => one.element === entry.target);
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      loaded.then(idle).then(() => begin(chart));
    }
  }, { rootMargin: "800px 0px" });

  // The charts that the page has placed already, and any that still comes.
  const take = chart => {
    charts.add(chart);
    near.observe(chart.element);
  };
  embed.waiting.forEach(take);
  embed.waiting = { push: take };

  // For printing, and for tests.
  window.drawAllCharts = () => {
    charts.forEach(begin);
  };
  window.addEventListener("beforeprint", window.drawAllCharts);

  const drawnOnes = () => [...charts].filter(chart => chart.drawn);
  new MutationObserver(() => drawnOnes().forEach(show)).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
})();
