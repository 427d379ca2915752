/* Whatever scrolls sideways can be reached, and so scrolled, by keyboard. The boxes are
   measured when they are laid out or change: first all of them, then all are marked, so
   that the page need not be laid out again in between. */
(() => {
  const boxes = "pre, div.math, [id^=altair-viz], .pst-scrollable-table-container, "
    + ".cell_output .output, .aiayn-scrolls";
  const measured = new ResizeObserver(entries => {
    const found = entries.map(({ target }) => [target, target.scrollWidth > target.clientWidth]);
    for (const [box, scrolls] of found) {
      if (scrolls) box.tabIndex = 0;
      else if (box.hasAttribute("tabindex")) box.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll(boxes)) measured.observe(box);
})();

/* Paper is white, and browsers print no backgrounds: a dark page is printed as a light
   one. Its charts follow the theme. */
addEventListener("beforeprint", () => {
  const page = document.documentElement.dataset;
  if (page.theme !== "dark") return;
  page.theme = "light";
  addEventListener("afterprint", () => { page.theme = "dark"; }, { once: true });
});

/* A link to a folded part, such as a claim, unfolds it. */
(() => {
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();

/* On a phone lines of code are folded. What is folded hangs below its line, further in
   than the line itself, so that it is not taken for a line of its own. */
(() => {
  const whole = line => line.split("<span").length === line.split("</span").length;
  for (const code of document.querySelectorAll("div.cell_input pre")) {
    const lines = code.innerHTML.replace(/\n$/, "").split("\n");
    if (!lines.every(whole)) continue;  // a text of several lines stays as it is
    code.innerHTML = lines.map(line => `<span class="code-line">${line}\n</span>`).join("");
    for (const line of code.children) {
      const indent = line.textContent.search(/\S|$/);
      line.style.setProperty("--hang", `${indent + 4}ch`);
    }
  }
})();

/* The search answers while one types. What it needs comes when its field is first used. */
addEventListener("focusin", ({ target }) => {
  if (window.bookSearch || !target.closest?.("form.bd-search")) return;
  window.bookSearch = {};
  const script = document.createElement("script");
  script.src = `${document.documentElement.dataset.content_root}_static/search.js`;
  document.head.append(script);
});
