/* Lets the charts that Altair's output draws follow the page: its colours, when the theme
   is switched too, and its ways (no menu; SVG, which stays sharp and can be read aloud). */
(() => {
  const VEGA = new URL("vendor/vega.js", document.currentScript.src).href;
  const embed = window.vegaEmbed;  // chart_places.js: what Altair's output calls
  const charts = new Set();

  // Vega is large: it is loaded when the first chart comes near the screen, or a reader
  // stirs, and not before the page itself is there.
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
    script.onerror = () => {
      draw = undefined;  // the next chart asks again
      failed(new Error(`${VEGA} could not be loaded.`));
    };
    document.head.append(script);
  });

  // The page's letters. Vega measures its words before it sets them, so they have to be there.
  const letters = async () => {
    const style = getComputedStyle(document.documentElement);
    const font = style.getPropertyValue("--book-sans").trim();
    const faces = [400, 600].map(weight => document.fonts.load(`${weight} 1em ${font}`));
    await Promise.allSettled(faces);
    return { font };
  };

  const pageConfig = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--book-ink").trim();
    const rule = style.getPropertyValue("--book-rule").trim();
    const text = { labelColor: ink, titleColor: ink };
    return {
      background: "transparent",
      axis: { ...text, gridColor: rule, domainColor: ink, tickColor: ink, labelSeparation: 5 },
      header: text,
      legend: text,
      rule: { color: ink },
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

  // On a narrow page a chart that takes the page's width has less room for words: titles
  // are set in several lines, the words of a legend below each other.
  const NARROW = 480;
  const LETTER = { title: 7.8, axis: 6.6 };  // the widths of a letter, generously
  const inLines = (text, width, letter) => {
    if (typeof text !== "string" || text.length * letter <= width) return text;
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (longer.length * letter <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  };
  const columns = (names, width) => Array.isArray(names)
    ? Math.max(1, Math.floor(width / (40 + LETTER.axis * Math.max(...names.map(name => `${name}`.length)))))
    : 1;
  const narrowChannel = (name, channel, width) => {
    if (!isObject(channel) || !("field" in channel || "aggregate" in channel)) return channel;
    if (name === "x") return { ...channel, title: inLines(channel.title, width - 60, LETTER.axis) };
    const drawn = /^(color|fill|stroke|shape|strokeDash|size|opacity)$/.test(name);
    if (!drawn || channel.type === "quantitative" || channel.legend === null) return channel;
    const beside = columns(channel.scale?.domain, width);
    return { ...channel, legend: { ...channel.legend, columns: beside, labelLimit: width } };
  };
  const narrowed = (spec, width) => {
    const result = { ...spec };
    if (typeof spec.title === "string") result.title = inLines(spec.title, width - 10, LETTER.title);
    if (spec.layer) result.layer = spec.layer.map(one => narrowed(one, width));
    if (spec.encoding) {
      result.encoding = Object.fromEntries(Object.entries(spec.encoding).map(
        ([name, channel]) => [name, narrowChannel(name, channel, width)]));
    }
    return result;
  };
  const fitting = chart => {
    const width = chart.element.clientWidth;
    return chart.spec.width === "container" && width < NARROW
      ? narrowed(chart.spec, width) : chart.spec;
  };

  // One that is only a little wider than the page is drawn a little smaller: it need not
  // be scrolled, and its words can still be read.
  const LITTLE = 1.26;
  const shrink = element => {
    const drawing = element.querySelector("svg");
    const share = drawing ? drawing.getAttribute("width") / element.clientWidth : 0;
    element.classList.toggle("shrunk", share > 1 && share <= LITTLE);
  };

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
    // A chart's own font outranks the options'.
    const spec = merged(fitting(chart), { config: await letters() });
    const result = await (await loadVega())(chart.element, spec, options);
    chart.element.style.minHeight = "";
    chart.view = result.view;
    if (state) result.view.setState(state);
    await result.view.runAsync();
    shrink(chart.element);
    return result;
  }

  // One drawing at a time for each chart: two at once would both stay. One that failed
  // has said so, and does not keep the next from being tried.
  const show = chart => (chart.drawn = Promise.resolve(chart.drawn)
    .catch(() => {}).then(() => paint(chart)));

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

  // For printing, and for tests. Printing waits for no file: what a drawing needs is
  // fetched once somebody is there. Where that fails, the first chart to come near says so.
  const stirs = new Promise(done => {
    for (const sign of ["keydown", "pointermove", "scroll", "touchstart"]) {
      window.addEventListener(sign, done, { once: true, passive: true });
    }
  });
  Promise.all([loaded, stirs]).then(idle)
    .then(() => Promise.all([loadVega(), letters()])).catch(() => {});
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
