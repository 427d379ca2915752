/* The landing page: a note on the block of Figure 1 that is pointed at, and the map of
   attention redrawn for another sentence or head. Without this script the links, the
   list and the first map are there all the same. */
(() => {
  const figure = document.querySelector(".figure-one");
  const note = document.querySelector(".figure-note");
  const blocks = [...document.querySelectorAll(".figure-one .block")];

  function tell(name) {
    const item = document.getElementById(`block-${name}`);
    if (!item) return;
    note.dataset.block = name;
    note.querySelector(".figure-note-text").innerHTML = item.innerHTML;
    for (const block of blocks) block.classList.toggle("current", block.dataset.block === name);
  }

  // A finger cannot point without pressing: the first touch tells, the second follows.
  let touched = null;
  for (const block of blocks) {
    const name = block.dataset.block;
    block.addEventListener("pointerenter", event => {
      if (event.pointerType === "mouse") tell(name);
    });
    block.addEventListener("focus", () => tell(name));
    block.addEventListener("pointerdown", event => {
      touched = event.pointerType === "mouse" ? null : { name, again: note.matches('.told') && note.dataset.block === name };
    });
    block.addEventListener("click", event => {
      if (touched && touched.name === name && !touched.again) {
        event.preventDefault();
        tell(name);
        note.classList.add("told");
      }
      touched = null;
    });
  }
  if (figure && note) {
    tell(note.dataset.block);
    if (matchMedia("(hover: none)").matches) {
      note.querySelector(".figure-hint").textContent = "Touch a block twice to open its chapter.";
    }
  }

  for (const map of document.querySelectorAll(".live-attention")) {
    const sentences = JSON.parse(map.querySelector("script").textContent);
    const [sentence, view] = map.querySelectorAll("select");
    const box = map.querySelector("table");
    const words = map.querySelector(".live-attention-words");
    const made = (tag, ...children) => {
      const element = document.createElement(tag);
      element.append(...children);
      return element;
    };
    const german = (tag, word) => Object.assign(made(tag, word), { lang: "de" });
    const pair = () => sentences[sentence.value];

    function row(word, shares) {
      const button = german("button", word);
      button.type = "button";
      const head = made("th", button);
      head.scope = "row";
      const cells = shares.map(share => {
        const cell = made("td", made("span", String(Math.round(share))));
        cell.style.setProperty("--w", (share / 100).toFixed(2));
        cell.classList.toggle("nothing", share < 1);
        return cell;
      });
      return made("tr", head, ...cells);
    }

    function draw() {
      const { source, target, views } = pair();
      const heads = source.map(word => {
        const head = made("th", made("span", word));
        head.scope = "col";
        return head;
      });
      box.tHead.replaceChildren(made("tr", made("td"), ...heads));
      box.tBodies[0].replaceChildren(...target.map((word, i) => row(word, views[view.value][i])));
    }

    // Which row is pointed at: its words in the heading grow as dark as their weights.
    function look(number) {
      const { source, target, views } = pair();
      const shares = views[view.value][number];
      const most = shares.map((share, i) => [share, source[i]]).sort((a, b) => b[0] - a[0]);
      const named = most.slice(0, 3).filter(([share]) => share >= 5);
      const list = named.map(([share, word]) => `${word} ${Math.round(share)} %`).join(", ");
      words.replaceChildren(
        "To write “", german("span", target[number]), `”, it looked at ${list}.`);
      [...box.tBodies[0].rows].forEach((r, i) => r.classList.toggle("looking", i === number));
      [...box.tHead.rows[0].cells].slice(1).forEach((cell, i) => {
        cell.style.setProperty("--w", (shares[i] / 100).toFixed(2));
        cell.classList.add("seen");
      });
    }

    const rowOf = target => {
      const found = target.closest("tbody tr");
      return found ? [...box.tBodies[0].rows].indexOf(found) : -1;
    };
    for (const type of ["pointerover", "focusin", "click"]) {
      box.addEventListener(type, event => {
        const number = rowOf(event.target);
        if (number >= 0) look(number);
      });
    }
    for (const menu of [sentence, view]) {
      menu.addEventListener("change", () => {
        draw();
        look(1);
      });
    }
    look(1);
  }
})();
