enliven("walk", (root, { says, makers }) => {
  const relight = () => {
    for (const cell of all(root, "[data-part]")) cell.classList.remove("lit");
    for (const { dataset } of all(root, "button[aria-pressed=true]")) {
      const [row, column] = makers[dataset.part];
      const made = `[data-part="${row}"][data-row="${dataset.row}"],`
        + `[data-part="${column}"][data-column="${dataset.column}"]`;
      for (const cell of all(root, made)) cell.classList.add("lit");
    }
  };
  for (const product of all(root, ".aiayn-product")) {
    roam(product, ({ dataset }) => {
      product.querySelector("[role=status]").innerHTML =
        says[dataset.part][dataset.row][dataset.column];
      relight();
    });
  }
});
