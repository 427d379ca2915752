/* The model of everyday sentences: it comes, in parts, when somebody asks for it; and what
   is to be said of a sentence before it is translated. */
"use strict";
(() => {
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const CODE = ["arrays.js", "attention.js", "transformer.js", "tokenizer.js", "beam.js"];
  const LONGEST = 40; // pieces; its training had few longer sentences
  const NEARLY = 30; // pieces, from which on the page counts them
  const MANY_PIECES = 4; // a word of so many is hardly known
  // How a question begins: "do you", but not "do it"; "when is", but not "when I was".
  const ASKS = new RegExp(
    "^(who|whom|whose|what(?! an? )|where|why|how|which|is|are|am|was|were|does|did|can|could|would|has|" +
      "shall|should|(may|will)(?! (is|was|has|had)\\b)|when (is|are|am|was|were|do|does|did|can|could|will|would|have|has|shall|should)|" +
      "(do|have) (i|you|we|they)|[a-z]+n't (i|you|he|she|it|we|they|this|that|there))\\b",
    "i",
  );
  const GERMAN = /\b(ich|du|sie|wir|ist|nicht|und|der|das|ein|eine|wie|guten|danke|bitte)\b/i;
  // Names by their small letters. A word that may also be no name, such as "may", is left out.
  const CAPITALS = new Map(
    (
      "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February April June July " +
      "September October November December Christmas Easter English German French Spanish " +
      "Italian Russian Chinese Japanese American British Germany England France Spain Italy Russia " +
      "Austria Switzerland America Canada Japan Europe Berlin Munich Hamburg London Paris Boston USA NASA"
    )
      .split(" ")
      .map((word) => [word.toLowerCase(), word]),
  );
  const model = (window.liveModel = window.liveModel || {});
  model.everyday = { parts: [] };

  /** Load a script; a page that is opened as a file may load scripts, and nothing else. */
  const script = (name) =>
    new Promise((done, failed) => {
      const element = document.createElement("script");
      element.src = here + name;
      element.onload = done;
      element.onerror = () => {
        element.remove(); // so that the next try fetches it again
        failed(new Error(name));
      };
      document.head.append(element);
    });

  const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

  /** Undo the compression with which the build wrote the whole numbers. */
  const inflated = async (bytes) => {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Int8Array(await new Response(stream).arrayBuffer());
  };

  let loading;
  /** The model: fetched once, and only if it is asked for; the bar shows how far it is. */
  const translator = () =>
    (loading ??= load().catch((error) => {
      loading = undefined;
      document.querySelector("#everyday-progress, #live-progress").hidden = true;
      throw error;
    }));

  const load = async () => {
    const progress = document.querySelector("#everyday-progress, #live-progress");
    progress.hidden = false;
    const there = [...document.scripts].map(({ src }) => src.slice(here.length).split("?")[0]);
    for (const name of CODE) if (!there.includes(name)) await script(name);
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
    clean = clean.replace(/(?<![\p{L}\p{N}_'])i(?=\b(?!\.\p{L}))/gu, "I");
    clean = clean.replace(/\p{L}+/gu, (word) => CAPITALS.get(word) ?? word);
    clean = clean.replace(/^(["']?)(\p{L})/u, (_, mark, letter) => mark + letter.toUpperCase());
    if (!/[\p{L}\p{N}]/u.test(clean)) return ""; // there is nothing to translate
    if (/[.?!]["')]*$/.test(clean)) return clean;
    clean = clean.replace(/\s*[,;:]+$/, "");
    return clean + (ASKS.test(clean) ? "?" : ".");
  };

  /** Words that the model has to spell in many pieces. */
  const spelled = (sentence, tokenizer) =>
    [...new Set(sentence.match(/[\p{L}\p{M}]+/gu) ?? [])].filter(
      (word) => tokenizer.encode(word).length >= MANY_PIECES,
    );

  /** What to say about a sentence before it is translated. */
  const remarks = (typed, sentence, { tokenizer }) => {
    const said = [];
    if (sentence !== typed.trim()) said.push(`Read as: ${sentence}`);
    if (GERMAN.test(sentence)) said.push("It reads English only, and this looks like German.");
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

  /** What to say where a sentence is too long to be read, its end sign counted. */
  const tooLong = ({ length }) =>
    length > LONGEST
      ? `That is ${length} pieces, and the model reads at most ${LONGEST}: make it shorter.`
      : "";

  /** How much room is left, said before there is none. */
  const nearly = ({ length }) => (length > NEARLY ? `${length} of at most ${LONGEST} pieces` : "");

  Object.assign(model.everyday, { nearly, remarks, tidy, tooLong, translator });
})();
