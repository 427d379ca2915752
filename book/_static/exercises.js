/* The page of all exercises: three menus above the table choose which rows are shown.
   Without this script the whole table stands there. */
(() => {
  const table = document.querySelector("table.exercise-list");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const cell = (row, place) => row.cells[place].textContent.trim();
  const fields = [
    { label: "Kind", of: (row) => cell(row, 1), any: "all kinds" },
    { label: "Difficulty", of: (row) => cell(row, 2), any: "any" },
    { label: "Chapter", of: (row) => cell(row, 0).split(".")[0], any: "all chapters" },
  ];
  const form = document.createElement("form");
  form.className = "exercise-filter";
  form.setAttribute("aria-label", "Choose exercises");
  const shown = document.createElement("output");

  const choose = () => {
    let count = 0;
    let minutes = 0;
    for (const row of rows) {
      row.hidden = fields.some(({ menu, of }) => menu.value && of(row) !== menu.value);
      if (row.hidden) continue;
      count += 1;
      minutes += Number(cell(row, 4));
    }
    shown.textContent = `${count} shown, ${minutes} minutes`;
  };

  for (const field of fields) {
    const label = document.createElement("label");
    field.menu = document.createElement("select");
    field.menu.add(new Option(field.any, ""));
    for (const value of new Set(rows.map(field.of))) field.menu.add(new Option(value, value));
    field.menu.addEventListener("change", choose);
    label.append(field.label, field.menu);
    form.append(label);
  }
  form.append(shown);
  form.addEventListener("submit", (event) => event.preventDefault());
  const box = table.closest(".pst-scrollable-table-container") ?? table;
  box.before(form);
  choose();
})();
