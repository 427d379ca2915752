enliven("masks", (root, { scores, rules, queries, keys }) => {
  const boxes = all(root, "input");
  const names = rules.map(([name]) => name), masks = new Map(rules);
  const sum = row => row.reduce((a, b) => a + b, 0);
  let at = root.querySelector("[aria-pressed=true]");

  const draw = () => {
    const active = names.filter((_, n) => boxes[n].checked);
    const may = (i, j) => active.every(name => masks.get(name)[i][j]);
    const left = scores.map((row, i) =>
      row.map((score, j) => (may(i, j) ? Math.exp(score) : 0)));
    for (const button of all(root, "td button")) {
      const { row: i, column: j } = button.dataset;
      const weight = left[i][j] / (sum(left[i]) || 1);
      button.textContent = may(i, j) ? number(weight, 3) : "×";
      button.style.setProperty("--share", weight);
    }
    const { row: i, column: j } = at.dataset;
    const total = sum(left[i]);
    const shares = left[i].filter((_, k) => may(i, k));
    let says = `${queries[i]} → ${keys[j]}: `;
    if (may(i, j)) {
      says += `permitted. Of its row ${shares.map(x => short(x)).join(" + ")} = ${short(total)}`
        + ` it has ${short(left[i][j])}: weight ${number(left[i][j] / total, 3)}.`;
    } else {
      const why = active.filter(name => !masks.get(name)[i][j]).join(" and ");
      says += `forbidden (${why}). Score −∞, and e to that is 0: weight 0.`;
    }
    if (!shares.length) says += " This row may attend to nothing, and gets zeros.";
    const count = sum(scores.map((row, i) => row.filter((_, j) => may(i, j)).length));
    root.querySelector("[role=status]").textContent =
      `${says} Permitted pairs: ${count} of ${queries.length * keys.length}.`;
  };
  for (const box of boxes) box.addEventListener("change", draw);
  roam(root.querySelector("table"), button => { at = button; draw(); });
});
