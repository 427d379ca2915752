/* The page: what the reader types and switches, and what is drawn of it. Whatever a
   reader types is only ever set as text. */
"use strict";
(() => {
  const { Heads, Translator, make, percent } = window.liveModel;
  const CANDIDATES = 4;
  const PACE = 240; // milliseconds a piece while it plays
  const find = (name) => document.getElementById(`live-${name}`);
  const stillPreferred = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const german = (text) => make("span", { text, lang: "de" });

  class Page {
    constructor(translator) {
      this.translator = translator;
      this.examples = new Map(translator.examples);
      this.switches = { scaled: true, positions: true, off: new Set() };
      this.heads = new Heads(() => this.#translate());
      this.timer = 0;
      for (const text of this.examples.keys()) {
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
      if (play) this.#play();
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
      const remarks = find("remark").cloneNode(true).childNodes;
      find("said").replaceChildren("German: ", german(this.result.text), " ", ...remarks);
    }

    // What is drawn

    /** What belongs to the text in the field: words to go on with, its place in the menu. */
    #suggest() {
      const text = find("sentence").value;
      find("example").value = this.examples.has(text) ? text : "";
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
      const right = this.examples.get(this.sentence);
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

  const start = () => {
    performance.mark("live-start");
    const translator = new Translator(window.liveModel.record);
    const page = new Page(translator);
    page.show(translator.examples[0][0]);
    find("translate").disabled = false;
    performance.mark("live-translated");
    Object.assign(window.liveModel, { translator, page });
  };

  if (find("model")) start();
})();
