/* The record, unpacked: text in, steps and maps out. What page.js shows. */
"use strict";
(() => {
  const { ALL_ON, Tokenizer, Transformer, Words, unpack } = window.liveModel;
  const LONGEST = 60; // pieces: a map of more can no longer be read

  class Translator {
    constructor(record, tokenizer, model) {
      const { config } = record;
      this.config = config;
      this.examples = record.examples;
      this.tokenizer = tokenizer ?? new Tokenizer(record.pieces, config);
      this.words = new Words(record.followers);
      this.model = model ?? new Transformer(config, unpack(record));
    }

    /** The ids that the encoder reads: the pieces, and the end sign. */
    encode(text) {
      return [...this.tokenizer.encode(text), this.config.endId];
    }

    /** Translate; the result has labels for every axis, and the text. */
    translate(text, switches = ALL_ON) {
      const result = this.search(this.encode(text), switches);
      const label = (id) => this.tokenizer.label(id);
      return {
        ...result,
        text: this.textOf(result.steps),
        sourceLabels: result.source.map(label),
        readLabels: result.steps.map(({ read }) => label(read)),
        writtenLabels: result.steps.map(({ token }) => label(token)),
      };
    }

    /** The book's own model writes greedily. */
    search(source, switches) {
      return this.model.translate(source, switches);
    }

    textOf(steps) {
      return this.tokenizer.decode(steps.map(({ token }) => token));
    }

    /** The most probable next pieces of a step, with their probabilities. */
    candidates({ probabilities }, count) {
      return [...probabilities.entries()]
        .sort(([, a], [, b]) => b - a)
        .slice(0, count)
        .map(([id, probability]) => ({ label: this.tokenizer.label(id), probability }));
    }

    /** What to tell the reader about a sentence, if anything; whether it can be read, and
        the sentence as it is read. */
    judge(text) {
      const ids = this.tokenizer.encode(text);
      if (!ids.length) return { readable: false, notice: "Type a sentence, or choose one." };
      if (ids.length > LONGEST) {
        return {
          readable: false,
          notice:
            `That is ${ids.length} pieces; a map of more than ${LONGEST} cannot be read. ` +
            "Make it shorter.",
        };
      }
      const notices = [this.#strangeCharacters(text), this.#strangeWords(text), shape(text)];
      return { readable: true, sentence: text, notice: notices.filter(Boolean).join(" ") };
    }

    #strangeCharacters(text) {
      const strange = this.tokenizer.unknownCharacters(text);
      return strange.length
        ? `The model has no piece for ${strange.join(" ")} and reads “unknown” there.`
        : "";
    }

    #strangeWords(text) {
      const strange = this.words.unknown(text);
      if (!strange.length) return "";
      const pieces = (word) =>
        this.tokenizer.encode(word).map((id) => this.tokenizer.label(id)).join(" ");
      return (
        `The model does not know ${strange.map((word) => `“${word}”`).join(", ")}: no ` +
        `sentence of its training had ${strange.length > 1 ? "them" : "it"}. ` +
        `It reads ${strange.map(pieces).join(", ")} and will guess.`
      );
    }
  }

  const shape = (text) => {
    const trimmed = text.trim();
    if (/^\p{Lowercase}/u.test(trimmed)) {
      return "Every sentence of its training began with a capital letter; this one does not.";
    }
    return /[.?]$/.test(trimmed)
      ? ""
      : "Every sentence of its training ended in . or ?; this one does not.";
  };

  /** The model of everyday sentences, once it has come. It keeps four beginnings, and its
      maps show how the best one was written. */
  class EverydayTranslator extends Translator {
    constructor({ index, tokenizer, transformer }) {
      super({ config: index.config, examples: [], followers: {} }, tokenizer, transformer);
    }

    search(source, switches) {
      const { beamSearch } = window.liveModel;
      const { tokens, ended } = beamSearch(this.model, source, { switches });
      const chosen = ended ? [...tokens, this.config.endId] : tokens;
      return this.model.translate(source, switches, chosen);
    }

    /** What to say while a sentence is being typed that is almost too long. */
    room(text) {
      const { nearly, tidy } = window.liveModel.everyday;
      return nearly(this.encode(tidy(text)));
    }

    judge(text) {
      const { remarks, tidy, tooLong } = window.liveModel.everyday;
      const sentence = tidy(text);
      if (!sentence) return { readable: false, notice: "Type a sentence, or choose one." };
      const long = tooLong(this.encode(sentence));
      if (long) return { readable: false, notice: long };
      const notice = remarks(text, sentence, this).join(" ");
      return { readable: true, sentence, notice };
    }
  }

  Object.assign(window.liveModel, { EverydayTranslator, Translator });
})();
