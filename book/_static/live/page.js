/* The page: what the reader types and switches, and what is drawn of it. Whatever a
   reader types is only ever set as text. */
"use strict";
(() => {
  const { Translator, largeMap, make, percent, smallMap } = window.liveModel;
  const CANDIDATES = 4;
  const PACE = 240; // milliseconds a piece while it plays
  const USES = {
    encoder: { rows: "sourceLabels", columns: "sourceLabels", corner: "query ↓ key →" },
    decoder: { rows: "readLabels", columns: "readLabels", corner: "reads → writes" },
    cross: { rows: "readLabels", columns: "sourceLabels", corner: "reads → writes" },
  };
  const NAMES = {
    encoder: "Encoder self-attention",
    decoder: "Decoder self-attention",
    cross: "Cross-attention",
  };
  const find = (name) => document.getElementById(`live-${name}`);
  const stillPreferred = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  class Page {
    constructor(translator) {
      this.translator = translator;
      this.switches = { scaled: true, positions: true, off: new Set() };
      this.use = "cross";
      this.layer = 0;
      this.head = 0;
      this.timer = 0;
      for (const [text] of translator.examples) {
        find("example").append(make("option", { text, value: text }));
      }
      this.#listen();
    }

    // What the reader does

    #listen() {
      find("ask").addEventListener("submit", (event) => {
        event.preventDefault();
        this.show(find("sentence").value, { play: true });
      });
      find("sentence").addEventListener("input", () => this.#suggest());
      find("example").addEventListener("change", ({ target }) => {
        if (target.value) this.show(target.value, { play: true });
      });
      find("step").addEventListener("input", ({ target }) => {
        this.#pause();
        this.#goTo(Number(target.value));
      });
      find("play").addEventListener("click", () => (this.timer ? this.#pause() : this.#play()));
      for (const name of ["scaled", "positions"]) {
        find(name).addEventListener("change", ({ target }) => {
          this.switches[name] = target.checked;
          this.#translate();
        });
      }
      find("all-on").addEventListener("click", () => this.allOn());
      find("uses").addEventListener("change", ({ target }) => {
        this.use = target.value;
        this.#drawMaps();
      });
      for (const button of document.querySelectorAll("[data-live-sentence]")) {
        button.addEventListener("click", () => {
          this.show(button.dataset.liveSentence, { play: true });
          find("model").focus();
        });
      }
    }

    /** Translate this sentence, from its first piece or at once. */
    show(sentence, { play = false } = {}) {
      find("sentence").value = sentence;
      this.#suggest();
      const { readable, notice } = this.translator.judge(sentence);
      find("notice").textContent = notice;
      if (!readable) return;
      this.sentence = sentence;
      this.#translate();
      if (play && !stillPreferred()) this.#play();
    }

    /** Switch everything on again. */
    allOn() {
      this.switches = { scaled: true, positions: true, off: new Set() };
      find("scaled").checked = find("positions").checked = true;
      this.#translate();
    }

    #play() {
      this.#pause();
      if (stillPreferred()) return this.#goTo(this.result.steps.length);
      if (this.step === this.result.steps.length) this.#goTo(1);
      find("play").textContent = "Pause";
      this.timer = setInterval(() => {
        if (this.step === this.result.steps.length) return this.#pause();
        this.#goTo(this.step + 1);
      }, PACE);
    }

    #pause() {
      clearInterval(this.timer);
      this.timer = 0;
      find("play").textContent = "Play";
    }

    // What is computed

    get #allAreOn() {
      const { scaled, positions, off } = this.switches;
      return scaled && positions && !off.size;
    }

    #translate() {
      this.#pause();
      if (this.sentence === undefined) return;
      this.result = this.translator.translate(this.sentence, this.switches);
      this.trained = this.#allAreOn ? this.result : this.translator.translate(this.sentence);
      find("step").max = this.result.steps.length;
      this.#drawTokens();
      this.#goTo(this.result.steps.length);
    }

    // What is drawn

    #suggest() {
      const text = find("sentence").value;
      const chips = this.translator.words.suggest(text).map((suggestion) => {
        const chip = make("button", { text: suggestion.word, type: "button" });
        chip.addEventListener("click", (event) => this.#take(suggestion, event));
        return chip;
      });
      if (!chips.length) {
        const fresh = make("button", { text: "New sentence", type: "button" });
        fresh.addEventListener("click", (event) => {
          find("sentence").value = "";
          this.#suggest();
          this.#moveOn(event);
        });
        chips.push(fresh);
      }
      find("next").replaceChildren(...chips);
    }

    #take(suggestion, event) {
      const field = find("sentence");
      field.value = this.translator.words.take(field.value, suggestion);
      this.#suggest();
      this.#moveOn(event);
    }

    /** By keyboard one goes on choosing; a finger wants no keyboard on the screen. */
    #moveOn({ detail, pointerType }) {
      if (detail === 0) find("next").firstElementChild.focus();
      else if (pointerType === "mouse") find("sentence").focus();
    }

    #goTo(step) {
      this.step = step;
      const { steps, sourceLabels, writtenLabels } = this.result;
      const now = steps[step - 1];
      find("step").value = step;
      find("step").setAttribute("aria-valuetext", `${step} of ${steps.length}`);
      find("german").textContent = this.translator.textOf(steps.slice(0, step)) || "…";
      find("step-text").textContent =
        `Step ${step} of ${steps.length}: it has read the source, ${sourceLabels.length} ` +
        `pieces, and ${step - 1} of its own, and writes ${writtenLabels[step - 1]}.`;
      find("candidates").replaceChildren(
        ...this.translator.candidates(now, CANDIDATES).map(candidate),
      );
      [...find("tokens").children].forEach((chip, i) => {
        chip.classList.toggle("live-later", i >= step);
        if (i === step - 1) chip.setAttribute("aria-current", "step");
        else chip.removeAttribute("aria-current");
      });
      this.#remark();
      this.#drawMaps();
    }

    /** What else could be said: the model's own words unharmed, or the grammar's. */
    #remark() {
      const done = this.step === this.result.steps.length;
      const right = new Map(this.translator.examples).get(this.sentence);
      const remarks = [];
      if (done && !this.result.ended) remarks.push("It found no end and was stopped.");
      if (done && !this.#allAreOn) {
        const same = this.result.text === this.trained.text;
        remarks.push(same ? "The same as with everything on." : `With everything on: ${this.trained.text}`);
      } else if (done && right) {
        const same = this.result.text === right;
        remarks.push(same ? "✓ That is the grammar’s translation." : `✗ The grammar says: ${right}`);
      }
      find("remark").textContent = remarks.join(" ");
    }

    #drawTokens() {
      const chips = this.result.writtenLabels.map((text, i) => {
        const chip = make("button", { text, type: "button", translate: "no" });
        chip.addEventListener("click", () => {
          this.#pause();
          this.#goTo(i + 1);
        });
        return chip;
      });
      find("tokens").replaceChildren(...chips);
    }

    #drawMaps() {
      const { off } = this.switches;
      const layers = this.result.maps[this.use];
      const total = Object.values(this.result.maps).flat(2).length;
      find("heads-on").textContent = off.size
        ? `${total - off.size} of ${total} heads are on`
        : `all ${total} heads are on`;
      const focused = document.activeElement?.dataset?.liveFocus;
      find("heads").replaceChildren(...layers.map((found, layer) => this.#row(found, layer)));
      if (focused) document.querySelector(`[data-live-focus="${focused}"]`)?.focus();
      this.#drawLarge();
    }

    /** One layer: its heads as small maps, each with its switch. */
    #row(heads, layer) {
      const row = make("div", { className: "live-layer", role: "group" });
      row.setAttribute("aria-label", `Layer ${layer + 1}`);
      row.append(make("span", { text: `Layer ${layer + 1}` }));
      heads.forEach((weights, head) => row.append(this.#small(weights, layer, head)));
      return row;
    }

    #small(weights, layer, head) {
      const place = `${this.use}/${layer}/${head}`;
      const chosen = layer === this.layer && head === this.head;
      const box = make("div", { className: "live-head" });
      const button = make("button", { type: "button", "aria-pressed": chosen });
      button.setAttribute("aria-label", `Enlarge layer ${layer + 1}, head ${head + 1}`);
      button.dataset.liveFocus = `map/${place}`;
      button.append(smallMap(this.#seen(weights), weights.length, this.#columns().length));
      button.addEventListener("click", () => {
        [this.layer, this.head] = [layer, head];
        this.#drawMaps();
      });
      const label = make("label");
      const on = make("input", { type: "checkbox" });
      on.checked = !this.switches.off.has(place);
      on.dataset.liveFocus = `on/${place}`;
      on.addEventListener("change", () => {
        if (on.checked) this.switches.off.delete(place);
        else this.switches.off.add(place);
        this.#translate();
      });
      label.append(on, ` head ${head + 1}`);
      box.classList.toggle("live-off", !on.checked);
      box.append(button, label);
      return box;
    }

    /** The rows that exist at this step. */
    #seen(weights) {
      return this.use === "encoder" ? weights : weights.slice(0, this.step);
    }

    #columns() {
      const labels = this.result[USES[this.use].columns];
      return this.use === "decoder" ? labels.slice(0, this.step) : labels;
    }

    #drawLarge() {
      const { rows, corner } = USES[this.use];
      const weights = this.result.maps[this.use][this.layer][this.head];
      const own = this.use === "encoder";
      const labels = this.result[rows].map((label, i) =>
        own ? [label] : [label, this.result.writtenLabels[i]],
      );
      const off = this.switches.off.has(`${this.use}/${this.layer}/${this.head}`);
      find("map-title").textContent =
        `${NAMES[this.use]}, layer ${this.layer + 1}, head ${this.head + 1}: ` +
        `what each row’s position looks at, in percent.` +
        (off ? " This head is off: what it found is not handed on." : "");
      find("map").replaceChildren(
        largeMap({
          rows: labels,
          columns: this.#columns(),
          corner,
          weights: this.#seen(weights),
          current: own ? -1 : this.step - 1,
        }),
      );
    }
  }

  const candidate = ({ label, probability }) => {
    const item = make("li");
    item.append(make("span", { text: label, translate: "no" }));
    const bar = make("span", { className: "live-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", probability.toFixed(3));
    item.append(bar, make("span", { text: `${percent(probability)} %` }));
    return item;
  };

  const start = () => {
    performance.mark("live-start");
    const translator = new Translator(window.liveModel.record);
    const page = new Page(translator);
    page.show(translator.examples[0][0]);
    performance.mark("live-translated");
    Object.assign(window.liveModel, { translator, page });
  };

  if (find("model")) start();
})();
