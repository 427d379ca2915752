enliven("positions", (root, { table }) => {
  const [position, ahead] = all(root, "input");
  const hand = (clock, name, [x, y]) => {
    const line = clock.querySelector(`line.${name}`);
    line.setAttribute("x2", x);
    line.setAttribute("y2", -y);
  };
  const angle = (now, then) => {
    const turn = Math.atan2(...then) - Math.atan2(...now);
    return number(((Math.floor(turn * 1800 / Math.PI + 0.5) + 3600) % 3600) / 10, 1);
  };

  const draw = () => {
    const here = Number(position.value), there = here + Number(ahead.value);
    position.nextElementSibling.value = here;
    ahead.nextElementSibling.value = ahead.value;
    all(root, ".clock").forEach((clock, i) => {
      const [now, then] = [here, there].map(p => table[p].slice(2 * i, 2 * i + 2));
      hand(clock, "now", now);
      hand(clock, "then", then);
      clock.querySelector(".tip").textContent = now.map(x => number(x)).join(", ");
      clock.querySelector(".turn").textContent = `${angle(now, then)}° between`;
    });
    for (const [name, place] of [["now", here], ["then", there]]) {
      root.querySelector(`.stripes .${name}`).style
        .setProperty("--at", (place + 0.5) / table.length);
    }
    const product = table[here].reduce((sum, x, i) => sum + x * table[there][i], 0);
    root.querySelector("[role=status]").textContent =
      `PE(${here}) · PE(${there}) = ${number(product)}. The solid hands stand at position `
      + `${here}, the dashed ones at ${there}.`;
  };
  for (const input of [position, ahead]) input.addEventListener("input", draw);
});
