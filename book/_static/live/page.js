/* The page: what the reader types and switches, and what is drawn of it. Whatever a
   reader types is only ever set as text. */
"use strict";
(() => {
  const { EverydayTranslator, Heads, Translator, make, percent } = window.liveModel;
  const CANDIDATES = 4;
  const PACE = 240; // milliseconds a piece while it plays
  const FIRST_STEP = 6; // where the pronoun of the first sentence is written
  const find = (name) => document.getElementById(`live-${name}`);
  const stillPreferred = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const german = (text) => make("span", { text, lang: "de" });

  class Page {
    constructor(translator) {
      this.models = { grammar: translator };
      this.translator = translator;
      this.examples = new Map(translator.examples);
      this.switches = { scaled: true, positions: true, off: new Set() };
      this.heads = new Heads(() => this.#translate());
      this.timer = 0;
      this.#listen();
    }

    // What the reader does

    #listen() {
      find("ask").addEventListener("submit", (event) => {
        event.preventDefault();
        this.show(find("sentence").value, { play: true });
      });
      find("sentence").addEventListener("input", ({ target }) => {
        this.#suggest();
        if (!target.value.trim()) {
          find("notice").textContent = "";
          return this.#empty();
        }
        const room = this.translator.room?.(target.value);
        if (room || this.counted) find("notice").textContent = room ?? "";
        this.counted = Boolean(room);
      });
      find("models").addEventListener("change", ({ target }) => this.choose(target.value));
      for (const chip of find("examples").children) {
        chip.addEventListener("click", () => this.show(chip.textContent, { play: true }));
      }
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
    }

    /** Go on with this model; the larger one is fetched when it is first chosen. */
    async choose(name) {
      this.#pause();
      this.chosen = name;
      let typed;
      if (!this.models[name]) {
        find("notice").textContent = "";
        const before = find("sentence").value;
        try {
          const loaded = await window.liveModel.everyday.translator();
          this.models[name] ??= new EverydayTranslator(loaded);
        } catch {
          if (this.chosen !== name) return;
          find("notice").textContent =
            "The model could not be loaded. Choose it once more, or load the page again.";
          find("models").querySelector("[value=grammar]").checked = true;
          return;
        }
        if (this.chosen !== name) return; // the reader went back meanwhile
        if (find("sentence").value !== before) typed = find("sentence").value; // and wrote
      }
      this.translator = this.models[name];
      for (const chip of find("examples").children) chip.hidden = chip.dataset.liveOf !== name;
      this.switches.off.clear();
      this.heads.forget();
      this.show(typed ?? find("examples").querySelector(":not([hidden])").textContent);
    }

    /** Translate what was typed: from its first piece, as far as a step, or whole. */
    show(typed, { play = false, step = 0 } = {}) {
      find("sentence").value = typed;
      this.#suggest();
      const { readable, notice, sentence } = this.translator.judge(typed);
      find("notice").textContent = notice;
      if (!readable) return this.#empty();
      this.sentence = sentence;
      this.#translate();
      if (step) this.#goTo(step);
      if (play) this.#play();
    }

    /** Where there is no sentence, nothing is shown of an earlier one. */
    #empty() {
      this.#pause();
      this.sentence = undefined;
      find("model").classList.add("live-empty");
      for (const name of ["german", "later", "remark", "said"]) find(name).textContent = "";
    }

    /** Switch everything on again. */
    allOn() {
      this.switches = { scaled: true, positions: true, off: new Set() };
      find("scaled").checked = find("positions").checked = true;
      this.#translate();
    }

    #play() {
      this.#pause();
      if (stillPreferred()) return;
      if (this.step === this.result.steps.length) this.#goTo(1);
      find("play").textContent = "Pause";
      this.timer = setInterval(() => {
        if (this.step === this.result.steps.length) return this.#pause();
        this.#goTo(this.step + 1);
      }, PACE);
    }

    #pause() {
      clearInterval(this.timer);
      const played = this.timer;
      this.timer = 0;
      find("play").textContent = "Play";
      if (played) this.#goTo(this.step); // what was still to come is shown again
    }

    // What is computed

    get #allAreOn() {
      const { scaled, positions, off } = this.switches;
      return scaled && positions && !off.size;
    }

    #translate() {
      this.#pause();
      if (this.sentence === undefined) return;
      find("model").classList.remove("live-empty");
      this.result = this.translator.translate(this.sentence, this.switches);
      this.trained = this.#allAreOn ? this.result : this.translator.translate(this.sentence);
      find("step").max = this.result.steps.length;
      this.#drawTokens();
      this.#goTo(this.result.steps.length);
      const remarks = find("remark").cloneNode(true).childNodes;
      find("said").replaceChildren("German: ", german(this.result.text), " ", ...remarks);
    }

    // What is drawn

    /** Words to go on with after the text in the field. */
    #suggest() {
      const text = find("sentence").value;
      const chips = this.translator.words.suggest(text).map((suggestion) => {
        const chip = make("button", { text: suggestion.word, type: "button" });
        chip.addEventListener("click", (event) => this.#take(suggestion, event));
        return chip;
      });
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
      if (detail === 0) (find("next").firstElementChild ?? find("sentence")).focus();
      else if (pointerType === "mouse") find("sentence").focus();
    }

    #goTo(step) {
      this.step = step;
      const { steps, sourceLabels, writtenLabels } = this.result;
      const now = steps[step - 1];
      find("step").value = step;
      find("step").setAttribute("aria-valuetext", `${step} of ${steps.length}`);
      const written = this.translator.textOf(steps.slice(0, step));
      const { text } = this.result;
      const later = !this.timer && text.startsWith(written) ? text.slice(written.length) : "";
      find("german").textContent = written || (later ? "" : "…");
      find("later").textContent = later;
      find("step-text").replaceChildren(
        `Step ${step} of ${steps.length}: it has read the source, ${sourceLabels.length} ` +
          `pieces, and ${step - 1} of its own, and writes `,
        german(writtenLabels[step - 1]),
        ".",
      );
      find("candidates").replaceChildren(
        ...this.translator.candidates(now, CANDIDATES).map(candidate),
      );
      [...find("tokens").children].forEach((chip, i) => {
        chip.classList.toggle("live-later", i >= step);
        if (i === step - 1) chip.setAttribute("aria-current", "step");
        else chip.removeAttribute("aria-current");
      });
      this.#remark();
      this.heads.draw(this.result, step, this.switches.off);
    }

    /** What else could be said: the model's own words unharmed, or the grammar's. */
    #remark() {
      const done = this.step === this.result.steps.length;
      const right = this.translator === this.models.grammar && this.examples.get(this.sentence);
      const remarks = [];
      if (done && !this.result.ended) remarks.push("It found no end and was stopped. ");
      if (done && !this.#allAreOn) {
        const same = this.result.text === this.trained.text;
        const other = ["With everything on: ", german(this.trained.text)];
        remarks.push(...(same ? ["The same as with everything on."] : other));
      } else if (done && right) {
        const same = this.result.text === right;
        const other = ["✗ The grammar says: ", german(right)];
        remarks.push(...(same ? ["✓ That is the grammar’s translation."] : other));
      }
      find("remark").replaceChildren(...remarks);
    }

    #drawTokens() {
      const chips = this.result.writtenLabels.map((text, i) => {
        const chip = make("button", { text, type: "button", translate: "no", lang: "de" });
        chip.addEventListener("click", () => {
          this.#pause();
          this.#goTo(i + 1);
        });
        return chip;
      });
      find("tokens").replaceChildren(...chips);
    }
  }

  const candidate = ({ label, probability }) => {
    const item = make("li");
    item.append(make("span", { text: label, translate: "no", lang: "de" }));
    const bar = make("span", { className: "live-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", probability.toFixed(3));
    item.append(bar, make("span", { text: `${percent(probability)} %` }));
    return item;
  };

  const ALL = { scaled: true, positions: true, off: [] };

  /** An experiment: a button, and what the model writes with everything on and without
      one thing, computed when the button is pressed. */
  const offer = (box, translator) => {
    const { without, named, sentences } = box.dataset;
    const changed = { positions: { positions: false }, scale: { scaled: false } };
    const switched = changed[without] ?? { off: [without] };
    const write = (sentence, settings) =>
      translator.translate(sentence, { ...settings, off: new Set(settings.off) }).text;
    const run = make("button", { text: `Translate with and without ${named}`, type: "button" });
    const found = make("div", { role: "status" });
    run.addEventListener("click", () => {
      const rows = sentences.split("|").map((english) => ({
        english,
        on: write(english, ALL),
        off: write(english, { ...ALL, ...switched }),
      }));
      found.replaceChildren(compared(rows, named), make("p", { text: summary(rows, named) }));
    });
    box.append(run, found);
  };

  const compared = (rows, named) => {
    const table = make("table");
    const head = table.createTHead().insertRow();
    for (const text of ["English", "everything on", `without ${named}`]) {
      head.append(make("th", { text, scope: "col" }));
    }
    const body = table.createTBody();
    for (const { english, on, off } of rows) {
      const row = body.insertRow();
      row.append(make("th", { text: english, scope: "row", lang: "en" }));
      row.append(make("td", { text: on, lang: "de" }));
      const cell = make("td", { lang: "de" });
      const [before, after] = [on.split(" "), off.split(" ")];
      after.forEach((word, i) => {
        const same = before.length !== after.length || before[i] === word;
        cell.append(i ? " " : "", make(same ? "span" : "strong", { text: word }));
      });
      row.append(cell);
    }
    return table;
  };

  const summary = (rows, named) => {
    const kinds = (side) => new Set(rows.map((row) => row[side])).size;
    if (rows.length > 1 && kinds("off") === 1 && kinds("on") > 1) {
      const all = rows.length === 2 ? "both" : `all ${rows.length}`;
      return `Without ${named}, ${all} sentences are translated alike.`;
    }
    const count = rows.filter(({ on, off }) => on !== off).length;
    return `${count} of ${rows.length} translations are different without ${named}.`;
  };

  const start = () => {
    performance.mark("live-start");
    const translator = new Translator(window.liveModel.record);
    const page = new Page(translator);
    page.show(find("examples").firstElementChild.textContent, { step: FIRST_STEP });
    for (const box of document.querySelectorAll(".live-experiment")) offer(box, translator);
    find("translate").disabled = false;
    performance.mark("live-translated");
    Object.assign(window.liveModel, { translator, page });
  };

  if (find("model")) start();
})();
