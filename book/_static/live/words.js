/* Which words the model has met in training, and which of them may come next. */
"use strict";
(() => {
  const SUGGESTIONS = 8;
  const ATTACHED = new Set([",", ".", "?", "'s"]);
  const TOKEN = /'s(?![\p{L}])|[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu;

  const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
  const small = (word) => word.charAt(0).toLowerCase() + word.slice(1);

  class Words {
    /** followers: each known word, with those that follow it, the most frequent first. */
    constructor(followers) {
      this.followers = new Map(
        Object.entries(followers).map(([word, next]) => [word, next.split(" ")]),
      );
    }

    /** The word as the list has it: one that begins a sentence has a capital there. */
    entry(word, first) {
      if (word && this.followers.has(word)) return word;
      const begins = first && word && word === capital(word);
      return begins && this.followers.has(small(word)) ? small(word) : undefined;
    }

    /** The words of a sentence, punctuation apart. */
    split(text) {
      return text.match(TOKEN) ?? [];
    }

    /** The words of letters that were never seen in training, each once. */
    unknown(text) {
      const strange = this.split(text).filter(
        (word, i) => /\p{L}/u.test(word) && !this.entry(word, i === 0),
      );
      return [...new Set(strange)];
    }

    /** Words to go on with: those that complete the last one, or those that follow. */
    suggest(text) {
      const words = this.split(text);
      const typing = /[\p{L}\p{M}]$/u.test(text) ? words.pop() : "";
      const first = words.length === 0;
      const before = first ? "" : (this.entry(words.at(-1), words.length === 1) ?? "");
      const likely = first || before ? (this.followers.get(before) ?? []) : [];
      const fits = (word) => small(word).startsWith(small(typing)) && word !== typing;
      const completing = typing ? [...this.followers.keys()].filter((word) => word) : [];
      const found = [...new Set([...likely, ...completing])].filter(fits);
      const known = typing && this.entry(typing, first);
      const next = known ? this.followers.get(known) : [];
      return [
        ...found.map((word) => ({ word: first ? capital(word) : word, completes: true })),
        ...next.map((word) => ({ word, completes: false })),
      ].slice(0, SUGGESTIONS);
    }

    /** The text with a suggestion taken. */
    take(text, { word, completes }) {
      const kept = completes ? text.replace(/[\p{L}\p{M}]+$/u, "") : text;
      const trimmed = kept.trimEnd();
      return trimmed && !ATTACHED.has(word) ? `${trimmed} ${word}` : trimmed + word;
    }
  }

  window.liveModel.Words = Words;
})();
