/* Attention weights as pictures: a small one of each head, and one as a table in which
   every row and column has its token. */
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const FAINTEST = 0.02; // weights below are left out of a small map
  const SMALLEST_SHOWN = 0.005; // less than half a percent is no number in the table

  /** An element with a class and a text; text is never read as mark-up. */
  const make = (tag, { className = "", text = "", ...attributes } = {}) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, value);
    }
    return element;
  };

  /** Rows are queries from top to bottom, columns keys from left to right. */
  const smallMap = (rows, height, width) => {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    rows.forEach((row, y) =>
      row.forEach((weight, x) => {
        if (weight < FAINTEST) return;
        const cell = document.createElementNS(SVG, "rect");
        const place = { x, y, width: 1, height: 1, "fill-opacity": weight.toFixed(3) };
        for (const [name, value] of Object.entries(place)) cell.setAttribute(name, value);
        svg.append(cell);
      }),
    );
    return svg;
  };

  const percent = (share) => `${Math.round(100 * share)}`;

  /** The table of one head. current is the row that is being written, or none; the
      languages are those of the labels. */
  const largeMap = ({ rows, columns, languages, corner, weights, current }) => {
    const table = make("table", { className: "live-map" });
    const head = table.createTHead().insertRow();
    head.append(make("td", { className: "live-corner", text: corner }));
    for (const column of columns) {
      const cell = make("th", { scope: "col" });
      cell.append(make("span", { text: column, translate: "no", lang: languages.columns }));
      head.append(cell);
    }
    const body = table.createTBody();
    weights.forEach((row, i) => {
      const line = body.insertRow();
      if (i === current) line.className = "live-current";
      const label = make("th", { scope: "row", translate: "no", lang: languages.rows });
      const [read, written] = rows[i];
      if (written !== undefined) label.append(make("span", { text: `${read} → ` }));
      label.append(written ?? read);
      line.append(label);
      columns.forEach((_, j) => {
        const weight = row[j] ?? 0;
        const text = weight < SMALLEST_SHOWN ? "" : percent(weight);
        const cell = make("td", { text });
        cell.style.setProperty("--weight", weight.toFixed(3));
        if (j >= row.length) cell.className = "live-hidden";
        line.append(cell);
      });
    });
    return table;
  };

  Object.assign(window.liveModel, { make, smallMap, largeMap, percent });
})();
