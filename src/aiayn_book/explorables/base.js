// A number as the Python side writes it: a true minus sign, and no minus zero.
const number = (value, digits = 2) => {
  const text = value.toFixed(digits).replace("-", "−");
  return /[1-9]/.test(text) ? text : text.replace("−", "");
};
const short = (value, digits = 2) => {
  const text = number(value, digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};
const all = (root, selector) => [...root.querySelectorAll(selector)];

// Bring to life every figure of a kind that nobody has yet. One that cannot be stays as
// Python drew it, without its controls, and keeps no other from it.
const enliven = (kind, bring) => {
  for (const root of all(document, `.aiayn-explorable[data-kind="${kind}"]:not([data-live])`)) {
    try {
      bring(root, JSON.parse(root.dataset.numbers));
      root.dataset.live = "";
    } catch (error) {
      console.error(error);
    }
  }
};

// A table of buttons is one tab stop; the arrow keys, Home and End choose within it.
const roam = (table, choose) => {
  const rows = all(table, "tr").map(row => all(row, "button")).filter(row => row.length);
  const press = button => {
    for (const other of rows.flat()) {
      other.tabIndex = other === button ? 0 : -1;
      other.setAttribute("aria-pressed", other === button);
    }
    choose(button);
  };
  rows.forEach((row, i) => row.forEach((button, j) => {
    button.addEventListener("click", () => press(button));
    button.addEventListener("keydown", event => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;  // the browser's own
      const [down, right] = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
        Home: [0, -j], End: [0, row.length - 1 - j],
      }[event.key] || [];
      if (down === undefined) return;
      event.preventDefault();
      event.stopPropagation();  // or a slide around it would page
      const next = rows[i + down]?.[j + right];
      if (!next) return;
      press(next);
      next.focus();
    });
  }));
  table.querySelector("[aria-pressed=true]").tabIndex = 0;
};
