enliven("softmax", (root, { scores }) => {
  const [power, exponent] = all(root, "input");
  const softmax = row => {
    const top = Math.max(...row);
    const exponentials = row.map(score => Math.exp(score - top));
    const sum = exponentials.reduce((a, b) => a + b);
    return exponentials.map(part => part / sum);
  };
  const size = p => Math.hypot(
    ...p.flatMap((a, i) => p.map((b, j) => (i === j ? a : 0) - a * b)));
  const paper = softmax(scores);

  const draw = () => {
    const [n, a] = [Number(power.value), Number(exponent.value)];
    const divided = scores.map(score => score * 2 ** (n * (0.5 - a)));
    const yours = softmax(divided);
    power.nextElementSibling.value = n;
    power.setAttribute("aria-valuetext", `${n}: dₖ = ${2 ** n}`);
    exponent.nextElementSibling.value = a.toFixed(1);
    all(root, "tbody tr").forEach((row, i) => {
      const cells = all(row, "td");
      cells[0].textContent = number(scores[i] * 2 ** (n / 2));
      cells[1].textContent = number(divided[i]);
      cells[2].textContent = number(yours[i], 3);
      cells[3].firstElementChild.style.setProperty("--share", yours[i]);
    });
    root.querySelector("[role=status]").textContent =
      `dₖ = ${2 ** n}, divided by ${short(2 ** (n * a))}. `
      + `Largest weight ${number(Math.max(...yours), 3)}; with the paper’s root `
      + `${number(Math.max(...paper), 3)}. Size of the softmax’s Jacobian `
      + `${number(size(yours), 3)}; with the root ${number(size(paper), 3)}.`;
  };
  for (const input of [power, exponent]) input.addEventListener("input", draw);
  draw();  // what is seen stays; the slider gets its value in words
});
