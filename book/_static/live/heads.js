/* The heads of one kind of attention: small maps to choose from, each with its switch,
   and the chosen one enlarged. */
"use strict";
(() => {
  const { largeMap, make, smallMap } = window.liveModel;
  const NAMES = {
    encoder: "Encoder self-attention",
    decoder: "Decoder self-attention",
    cross: "Cross-attention",
  };
  const find = (name) => document.getElementById(`live-${name}`);

  class Heads {
    /** switched is called when a head has been put into the set of those that are off,
        or taken out of it. */
    constructor(switched) {
      this.switched = switched;
      this.use = "cross";
      this.layer = 1;
      this.head = 1;
      find("uses").addEventListener("change", ({ target }) => {
        this.use = target.value; // its layers may be fewer
        this.layer = Math.min(this.layer, this.result.maps[this.use].length - 1);
        this.#draw();
      });
      const map = find("map"); // on a phone it is wider than the screen
      new ResizeObserver(() => {
        find("map-hint").hidden = map.scrollWidth <= map.clientWidth;
      }).observe(find("map"));
    }

    /** Another model may have other heads. */
    forget() {
      this.placed = undefined;
      [this.layer, this.head] = [1, 1];
    }

    /** Show a translation as far as this step. */
    draw(result, step, off) {
      Object.assign(this, { result, step, off });
      this.#draw();
    }

    #draw() {
      const total = Object.values(this.result.maps).flat(2).length;
      find("heads-on").textContent = this.off.size
        ? `${total - this.off.size} of ${total} heads are on`
        : `all ${total} heads are on`;
      if (this.placed !== this.use) this.#place();
      this.result.maps[this.use].forEach((heads, layer) =>
        heads.forEach((weights, head) => this.#show(weights, layer, head)),
      );
      this.#drawLarge();
    }

    /** A button and a switch for each head of this kind. They stay while steps go by: what
        is replaced between press and release hears no click. */
    #place() {
      const rows = this.result.maps[this.use].map((heads, layer) => {
        const row = make("div", { className: "live-layer", role: "group" });
        row.setAttribute("aria-label", `Layer ${layer + 1}`);
        row.append(make("span", { text: `Layer ${layer + 1}` }));
        heads.forEach((_, head) => {
          const place = `${this.use}/${layer}/${head}`;
          const box = make("div", { className: "live-head", "data-live-head": place });
          box.append(this.#button(layer, head), this.#switch(head, place));
          row.append(box);
        });
        return row;
      });
      find("heads").replaceChildren(...rows);
      this.placed = this.use;
    }

    #button(layer, head) {
      const button = make("button", { type: "button" });
      button.setAttribute("aria-label", `Enlarge layer ${layer + 1}, head ${head + 1}`);
      button.addEventListener("click", () => {
        [this.layer, this.head] = [layer, head];
        this.#draw();
      });
      return button;
    }

    #switch(head, place) {
      const label = make("label");
      const on = make("input", { type: "checkbox", autocomplete: "off" });
      on.addEventListener("change", () => {
        if (on.checked) this.off.delete(place);
        else this.off.add(place);
        this.switched();
      });
      label.append(on, ` head ${head + 1}`);
      return label;
    }

    #show(weights, layer, head) {
      const place = `${this.use}/${layer}/${head}`;
      const box = document.querySelector(`[data-live-head="${place}"]`);
      const off = this.off.has(place);
      box.classList.toggle("live-off", off);
      box.querySelector("input").checked = !off;
      const button = box.querySelector("button");
      button.setAttribute("aria-pressed", layer === this.layer && head === this.head);
      button.replaceChildren(
        smallMap(this.#seen(weights), weights.length, this.#columns().length),
      );
    }

    /** The rows that exist at this step. */
    #seen(weights) {
      return this.use === "encoder" ? weights : weights.slice(0, this.step);
    }

    /** The tokens that are looked at: the source's, or those that were written. */
    #columns() {
      const { sourceLabels, readLabels } = this.result;
      return this.use === "decoder" ? readLabels.slice(0, this.step) : sourceLabels;
    }

    /** The row that is being written, and where it looks most, lie inside the box. */
    #bringIntoView(map, table) {
      if (map.scrollWidth <= map.clientWidth) return;
      const cells = [...(table.querySelector(".live-current")?.cells ?? [])].slice(1);
      const weight = (cell) => Number(cell.style.getPropertyValue("--weight"));
      const most = cells.reduce((a, b) => (weight(b) > weight(a) ? b : a), cells[0]);
      if (most) map.scrollLeft = most.offsetLeft - map.clientWidth / 2;
    }

    #drawLarge() {
      const { maps, sourceLabels, readLabels, writtenLabels } = this.result;
      const reads = this.use === "encoder";
      const off = this.off.has(`${this.use}/${this.layer}/${this.head}`);
      find("map-title").textContent =
        `${NAMES[this.use]}, layer ${this.layer + 1}, head ${this.head + 1}: ` +
        "where each row looks, in percent." +
        (off ? " This head is off: what it found is not handed on." : "");
      const table = largeMap({
        rows: reads
          ? sourceLabels.map((label) => [label])
          : readLabels.map((label, i) => [label, writtenLabels[i]]),
        columns: this.#columns(),
        languages: { rows: reads ? "en" : "de", columns: this.use === "decoder" ? "de" : "en" },
        corner: reads ? "query ↓ key →" : "reads → writes",
        weights: this.#seen(maps[this.use][this.layer][this.head]),
        current: reads ? -1 : this.step - 1,
      });
      const map = find("map");
      map.replaceChildren(table);
      find("map-hint").hidden = map.scrollWidth <= map.clientWidth;
      this.#bringIntoView(map, table);
    }
  }

  window.liveModel.Heads = Heads;
})();
