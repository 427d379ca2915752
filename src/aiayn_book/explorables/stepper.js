enliven("stepper", (root, { read, written, candidates, maps }) => {
  const control = name => root.querySelector(`[name=${name}]`);
  const [back, next, slider, layer, head] =
    ["back", "next", "step", "layer", "head"].map(control);
  const percent = share => Math.floor(share * 100 + 0.5);

  const say = step => {
    const word = written[step - 1];
    const found = candidates[step - 1].find(([token]) => token === word);
    const status = root.querySelector("[role=status]");
    const [reads, writes] = all(status, "b");
    status.firstChild.data = `Step ${step} of ${written.length}. Reads: `;
    reads.textContent = read.slice(0, step).join(" ");
    writes.textContent = word;
    status.lastChild.data = found ? ` (${number(100 * found[1], 1)} %).` : ".";
  };
  const weigh = step => all(root, ".chances tr").forEach((row, rank) => {
    const [word, share] = candidates[step - 1][rank];
    row.children[0].textContent = word;
    row.children[1].textContent = `${number(100 * share, 1)} %`;
    row.children[2].firstElementChild.style.setProperty("--share", share);
  });
  const look = (map, step, layers) => {
    const heads = layers[layer.value];
    const chosen = head.value === "0" ? heads : [heads[head.value - 1]];
    const own = map.dataset.own === "1";
    all(map, "thead th").forEach((th, j) => th.classList.toggle("later", own && j >= step));
    all(map, "tbody tr").forEach((row, i) => {
      row.classList.toggle("later", i >= step);
      row.classList.toggle("now", i === step - 1);
      all(row, "td > span").forEach((cell, j) => {
        const share = chosen.reduce((sum, table) => sum + table[i][j], 0) / chosen.length;
        cell.textContent = percent(share) || "";
        cell.style.setProperty("--share", share);
      });
    });
  };
  const draw = () => {
    const step = Number(slider.value);
    slider.nextElementSibling.value = step;
    slider.setAttribute("aria-valuetext", `${step}: writes ${written[step - 1]}`);
    // Not disabled: that would take the focus away from who has just pressed it.
    back.setAttribute("aria-disabled", step === 1);
    next.setAttribute("aria-disabled", step === written.length);
    say(step);
    weigh(step);
    all(root, ".map").forEach((map, n) => look(map, step, maps[n]));
  };
  const move = by => {
    slider.value = Number(slider.value) + by;
    draw();
  };
  back.addEventListener("click", () => move(-1));
  next.addEventListener("click", () => move(1));
  for (const input of [slider, layer, head]) input.addEventListener("input", draw);
  draw();
});
