/* §5.1: byte-pair encoding with the pieces that sentencepiece learned. A piece's id is
   its rank: of all neighbours that form a piece, the one of lowest id is merged first. */
"use strict";
(() => {
  const SPACE = "▁";
  const UNKNOWN_AS = "⁇";
  // The white space of Python's re, control characters, and the mark itself.
  const GAPS =
    /[\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u2581]+/g;

  /** What aiayn.data.tokenizer.normalise does. */
  const normalise = (text) =>
    text
      .replace(/\p{Surrogate}/gu, "\ufffd")
      .normalize("NFC")
      .replace(GAPS, " ")
      .replace(/^ | $/g, "");

  class Tokenizer {
    constructor(pieces, { specials, unknownId }) {
      this.pieces = pieces;
      this.unknownId = unknownId;
      this.specials = specials;
      this.ids = new Map(pieces.map((piece, id) => [piece, id]).slice(specials));
    }

    /** The ids of a text's pieces; a run of unknown characters is one unknown. */
    encode(text) {
      const clean = normalise(text);
      if (!clean) return [];
      const ids = this.#merge([...(SPACE + clean.replaceAll(" ", SPACE))]).map(
        (piece) => this.ids.get(piece) ?? this.unknownId,
      );
      return ids.filter((id, i) => id !== this.unknownId || ids[i - 1] !== id);
    }

    /** The characters that no piece has, each once. */
    unknownCharacters(text) {
      const characters = [...normalise(text).replaceAll(" ", "")];
      return [...new Set(characters)].filter((character) => !this.ids.has(character));
    }

    /** Merge the best pair of neighbours, the leftmost of equals, while there is one. */
    #merge(symbols) {
      const rank = (i) => this.ids.get(symbols[i] + symbols[i + 1]) ?? Infinity;
      for (;;) {
        let best = Infinity;
        let at = -1;
        for (let i = 0; i + 1 < symbols.length; i += 1) {
          const found = rank(i);
          if (found < best) [best, at] = [found, i];
        }
        if (at < 0) return symbols;
        symbols.splice(at, 2, symbols[at] + symbols[at + 1]);
      }
    }

    /** The text of a sequence of ids, special tokens left out. */
    decode(ids) {
      const texts = ids.map((id) => {
        if (id === this.unknownId) return UNKNOWN_AS;
        return id < this.specials ? "" : this.pieces[id];
      });
      return normalise(texts.join("").replaceAll(SPACE, " "));
    }

    /** A piece as the page shows it: "dog", "·s" for one that goes on a word. */
    label(id) {
      const piece = this.pieces[id];
      if (piece.startsWith(SPACE)) return piece.slice(1) || "␣";
      return id >= this.specials && /^\p{Letter}/u.test(piece) ? `·${piece}` : piece;
    }
  }

  Object.assign(window.liveModel, { Tokenizer, normalise });
})();
