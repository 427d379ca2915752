enliven("lookup", (root, { directions, values, scale, unit }) => {
  const [angle, length] = all(root, "input");
  const [query] = all(root, "g.query"), [label] = all(root, ".of-query");
  const put = (element, name, value) => element.setAttribute(name, value.toFixed?.(2) ?? value);

  const draw = () => {
    const [turn, size] = [angle, length].map(input => Number(input.value));
    const scores = directions.map(key => size * Math.cos((turn - key) * Math.PI / 180));
    const parts = scores.map(score => Math.exp(score));
    const weights = parts.map(part => part / parts.reduce((a, b) => a + b));
    const answer = [0, 1].map(i => weights.reduce((sum, w, j) => sum + w * values[j][i], 0));
    angle.nextElementSibling.value = `${turn}°`;
    length.nextElementSibling.value = number(size);
    put(query, "transform", `rotate(${-turn})`);
    put(query.firstElementChild, "x2", scale * size);
    put(query.lastElementChild, "transform", `translate(${scale * size})`);
    put(label, "x", scale * (size + 0.6) * Math.cos(turn * Math.PI / 180));
    put(label, "y", -scale * (size + 0.6) * Math.sin(turn * Math.PI / 180));
    all(root, "circle").forEach((point, i) => {
      put(point, "r", 4 + 14 * Math.sqrt(weights[i]));
    });
    const [x, y] = answer.map(part => part * unit);
    put(root.querySelector(".answer"), "transform", `translate(${x} ${-y})`);
    all(root, "tbody tr").forEach((row, i) => {
      const cells = all(row, "td");
      cells[0].textContent = number(scores[i]);
      cells[1].textContent = number(weights[i], 3);
      cells[2].firstElementChild.style.setProperty("--share", weights[i]);
    });
    root.querySelector("[role=status]").textContent =
      `The answer is the point (${number(answer[0])}, ${number(answer[1])}).`;
  };
  for (const input of [angle, length]) input.addEventListener("input", draw);
});
