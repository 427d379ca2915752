/* The field of the landing page: the model comes, in parts, once somebody types, and
   translates here. Whatever a reader types is only ever set as text. */
"use strict";
(() => {
  const form = document.getElementById("everyday");
  if (!form) return;
  const find = (name) => document.getElementById(`everyday-${name}`);
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const CODE = ["arrays.js", "attention.js", "transformer.js", "tokenizer.js", "beam.js"];
  const LONGEST = 40; // pieces; its training had few longer sentences
  const MANY_PIECES = 4; // a word of so many is hardly known
  const model = (window.liveModel = window.liveModel || {});
  model.everyday = { parts: [] };

  /** Load a script; a page that is opened as a file may load scripts, and nothing else. */
  const script = (name) =>
    new Promise((done, failed) => {
      const element = document.createElement("script");
      element.src = here + name;
      element.onload = done;
      element.onerror = () => failed(new Error(name));
      document.head.append(element);
    });

  const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

  /** Undo the compression with which the build wrote the whole numbers. */
  const inflated = async (bytes) => {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Int8Array(await new Response(stream).arrayBuffer());
  };

  let loading;
  /** The translator: fetched once, and only if it is asked for. */
  const translator = () => (loading ??= load().catch((error) => ((loading = undefined), Promise.reject(error))));

  const load = async () => {
    const progress = find("progress");
    progress.hidden = false;
    for (const name of CODE) await script(name);
    await script("everyday/index.js");
    const { index, parts } = model.everyday;
    for (let part = parts.length; part < index.parts; part += 1) {
      await script(`everyday/${part}.js`);
      progress.value = (part + 1) / index.parts;
    }
    const bytes = parts.map(decoded);
    const whole = new Uint8Array(bytes.reduce((sum, part) => sum + part.length, 0));
    bytes.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
    const numbers = await inflated(whole);
    progress.hidden = true;
    const { Tokenizer, Transformer, unpackNumbers } = model;
    const tokenizer = new Tokenizer(index.pieces, index.config);
    const floats = new Float32Array(decoded(index.floats).buffer);
    const transformer = new Transformer(index.config, unpackNumbers(index.parameters, numbers, floats));
    return Object.assign(model.everyday, { tokenizer, transformer });
  };

  /** A sentence as the training texts are written: quotation marks, capitals, a full stop. */
  const tidy = (text) => {
    let clean = text
      .replace(/[\u2018\u2019\u00b4`]/g, "'")
      .replace(/[\u201c\u201d\u201e\u00ab\u00bb]/g, '"')
      .replace(/\u2026/g, "...")
      .replace(/\s+/g, " ")
      .trim();
    if (/\p{L}{2}/u.test(clean) && clean === clean.toUpperCase()) clean = clean.toLowerCase();
    clean = clean.replace(/\bi(?=\b(?!\.\p{L}))/gu, "I");
    clean = clean.replace(/^(["']?)(\p{L})/u, (_, mark, letter) => mark + letter.toUpperCase());
    if (!clean || /[.?!]["']?$/.test(clean)) return clean;
    const asks = /^(who|what|where|when|why|how|which|whose|is|are|am|do|does|did|can|could|will|would|have|has|may|shall|should)\b/i;
    return clean + (asks.test(clean) ? "?" : ".");
  };

  /** Words that the model has to spell in many pieces. */
  const spelled = (sentence, tokenizer) =>
    [...new Set(sentence.match(/[\p{L}\p{M}']+/gu) ?? [])].filter(
      (word) => tokenizer.encode(word).length >= MANY_PIECES,
    );

  /** What to say about a sentence before it is translated. */
  const remarks = (typed, sentence, { tokenizer }) => {
    const said = [];
    if (sentence !== typed.trim()) said.push(`Read as: ${sentence}`);
    const strange = spelled(sentence, tokenizer);
    if (strange.length) {
      said.push(
        `It hardly knows ${strange.map((word) => `“${word}”`).join(", ")}, and spells ` +
          `${strange.length > 1 ? "them" : "it"} in pieces.`,
      );
    }
    const unknown = tokenizer.unknownCharacters(sentence);
    if (unknown.length) said.push(`It has no piece for ${unknown.join(" ")}.`);
    return said;
  };

  let newest = 0;
  const translate = async (typed) => {
    const number = (newest += 1);
    const sentence = tidy(typed);
    find("german").textContent = "";
    find("notice").textContent = "";
    if (!sentence) return;
    let loaded;
    try {
      loaded = await translator();
    } catch {
      find("progress").hidden = true;
      find("notice").textContent = "The model could not be loaded. Try once more, or load the page again.";
      return;
    }
    if (number !== newest) return; // another sentence was asked for meanwhile
    const { tokenizer, transformer } = loaded;
    const ids = [...tokenizer.encode(sentence), transformer.config.endId];
    if (ids.length > LONGEST) {
      find("notice").textContent =
        `That is ${ids.length} pieces, and the model reads at most ${LONGEST}: make it shorter.`;
      return;
    }
    const said = remarks(typed, sentence, loaded);
    const { tokens, ended } = model.beamSearch(transformer, ids);
    if (!ended) said.push("It found no end and was stopped.");
    find("german").textContent = tokenizer.decode(tokens);
    find("notice").textContent = said.join(" ");
  };

  const field = find("sentence");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    translate(field.value);
  });
  field.addEventListener("input", () => {
    if (!field.value.trim()) translate("");
    else translator().catch(() => {}); // it is on its way while the reader types
  });
  for (const chip of form.querySelectorAll(".everyday-chips button")) {
    chip.addEventListener("click", () => {
      field.value = chip.textContent;
      translate(field.value);
    });
  }
  Object.assign(model.everyday, { tidy, translator, translate });
})();
