// The ledger's two filters, by verdict and by section. Without this script all is shown.
(() => {
  const summary = document.querySelector("ul.ledger-summary");
  if (!summary) return;

  const tables = [...document.querySelectorAll("table.ledger")];
  const sections = tables.map((table) => table.closest("section"));
  const titles = sections.map((section) => {
    const heading = section.querySelector("h1, h2, h3").cloneNode(true);
    heading.querySelector(".headerlink")?.remove();
    return heading.textContent.trim();
  });
  const rows = tables.map((table) => [...table.querySelectorAll("tbody tr")]);
  const verdicts = [...summary.querySelectorAll(".verdict")].map((v) => v.textContent);

  const menu = (label, choices) => {
    const select = document.createElement("select");
    select.append(new Option("all", ""), ...choices.map((c) => new Option(c, c)));
    const box = document.createElement("label");
    box.append(label, " ", select);
    select.addEventListener("change", () => {
      show();
      remember();
    });
    return { box, select };
  };
  const verdict = menu("Verdict", verdicts);
  const section = menu("Section", titles);
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.append(verdict.box, section.box, status);
  form.addEventListener("submit", (event) => event.preventDefault());
  summary.after(form);

  function show() {
    let shown = 0;
    rows.forEach((group, number) => {
      const wanted = !section.select.value || section.select.value === titles[number];
      let here = 0;
      for (const row of group) {
        const own = row.querySelector(".verdict").textContent;
        row.hidden = !wanted || (verdict.select.value && verdict.select.value !== own);
        here += !row.hidden;
      }
      sections[number].hidden = !here;
      shown += here;
    });
    const all = rows.flat().length;
    status.textContent = shown === all ? `All ${all} claims` : `${shown} of ${all} claims`;
  }

  // The filters stand in the address, so that a view can be linked to.
  const menus = { verdict: verdict.select, section: section.select };
  function remember() {
    const address = new URL(location);
    for (const [name, { value }] of Object.entries(menus)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(null, "", address);
  }
  for (const [name, select] of Object.entries(menus)) {
    const asked = new URLSearchParams(location.search).get(name);
    // A verdict may be asked for without the sign before it.
    const found = [...select.options].find(({ value }) => asked && (value === asked || value.replace(/^\S+ /, "") === asked));
    if (found) select.value = found.value;
  }

  // A link to a claim must not lead to a row that a filter hides.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[hidden]")) return;
    verdict.select.value = section.select.value = "";
    show();
    target.scrollIntoView();
  });
  show();
})();
