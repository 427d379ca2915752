/* The search: Sphinx's index, and what search-pages.js knows of the pages, ranked for
   readers, while they type. A page is listed once, with what it is about and the sections
   that match best. */
"use strict";
(() => {
  const root = document.documentElement.dataset.content_root;
  const MOST = 12; // pages that are listed
  const SECTIONS = 2; // of a page
  const COMMON = 4; // a title of more sections says nothing
  const BEGUN = 0.8; // what a word is worth of which only the beginning was typed
  // Words of a question that say nothing of its subject, beside Sphinx's own.
  const EMPTY = new Set(
    ("about am an any can could did do does done from get give has have how i its me mean means my " +
      "one our out she should so some than them us use used what when where which who why " +
      "work works would you your").split(" "),
  );
  // How much a match is worth, by what it is a match of.
  const WORTH = { title: 10, phrase: 10, about: 7, question: 7, section: 6, term: 7, object: 8, text: 3 };
  const PLACES = [
    [/^notebooks\/\d/, 1],
    [/^notebooks\//, 0.9],
    [/^book\/teach\/(lessons|question)/, 0.4],
    [/^book\/(api|changelog|ledger)/, 0.65],
    [/^book\//, 0.8],
  ];
  const worthOf = (page) => PLACES.find(([pattern]) => pattern.test(page))?.[1] ?? 0.5;

  // ---- Words

  const plain = (text) =>
    text
      .replaceAll("√", " sqrt ")
      .replace(/([\p{Ll}])(\p{Lu})/gu, "$1 $2") // MultiHeadAttention
      .normalize("NFKD")
      .toLowerCase()
      .replace(/\p{M}/gu, "")
      .replace(/(\p{L}{3})iz(e\w*|ing|ations?)\b/gu, "$1is$2");
  const split = (text) => plain(text).match(/[\p{L}\p{N}_]+/gu) ?? [];
  let stemmer;
  const stem = (word) => (stemmer ??= new Stemmer()).stemWord(word);
  const says = (word) => !stopwords.has(word) && !EMPTY.has(word);

  /** The words that a query is about: all of them, if it has no others. */
  const asked = (text) => {
    const words = split(text);
    const kept = words.filter(says);
    return [...new Set(kept.length ? kept : words)];
  };

  // ---- The index

  const script = (name) =>
    new Promise((done, failed) => {
      const element = document.createElement("script");
      element.src = root + name;
      element.onload = done;
      element.onerror = () => failed(new Error(name));
      document.head.append(element);
    });

  let loading;
  const index = () => (loading ??= load());

  const load = async () => {
    let found;
    window.Search = { setIndex: (given) => (found = given) };
    await Promise.all(
      ["_static/language_data.js", "_static/search-pages.js", "searchindex.js"].map(script),
    );
    return { ...found, entries: entriesOf(found), count: found.docnames.length };
  };

  /** Everything that can be found by its name: {page, anchor, kind, text, words}. */
  const entriesOf = ({ docnames, titles, alltitles, indexentries, objects, objnames }) => {
    const entries = [];
    const add = (page, anchor, kind, text) => {
      const words = split(text);
      const kept = words.filter(says);
      const own = kept.length ? kept : words;
      entries.push({ page, anchor, kind, text, raw: own, words: own.map(stem) });
    };
    docnames.forEach((page, i) => {
      add(page, "", "title", titles[i].replace(/^\d+\w?\. /, ""));
      const { about = "", phrases = [] } = window.searchPages.pages[page] ?? {};
      if (about.length < 90) add(page, "", "about", about);
      for (const phrase of phrases) add(page, "", "phrase", phrase);
    });
    for (const [title, places] of Object.entries(alltitles)) {
      if (places.length > COMMON) continue; // "Exercises": every chapter has them
      for (const [i, anchor] of places) if (anchor) add(docnames[i], anchor, "section", title);
    }
    for (const [term, places] of Object.entries(indexentries)) {
      // The index has small letters; the anchor has the term's own: BLEU.
      const own = (anchor) => [...term].map((c, i) => (anchor[5 + i]?.toLowerCase() === c ? anchor[5 + i] : c)).join("");
      for (const [i, anchor] of places) add(docnames[i], anchor, "term", own(anchor));
    }
    for (const [text, page, anchor] of window.searchPages.questions) add(page, anchor, "question", text);
    for (const [prefix, own] of Object.entries(objects)) {
      for (const [i, kind, , anchor, name] of own) {
        const whole = prefix ? `${prefix}.${name}` : name;
        const place = { "": whole, "-": `${objnames[kind][1]}-${whole}` }[anchor] ?? anchor;
        add(docnames[i], place, "object", name);
      }
    }
    return entries;
  };

  // ---- Ranking

  /** Which pages hold a word in their text; the last word may still be unfinished. */
  const pagesWith = (word, unfinished, { terms, titleterms }) => {
    const found = new Set();
    for (const list of [terms, titleterms]) {
      const keys = unfinished && word.length > 2 ? Object.keys(list).filter((k) => k.startsWith(word)) : [];
      for (const key of [...keys, stem(word)]) {
        if (!Object.hasOwn(list, key)) continue;
        for (const page of [list[key]].flat()) found.add(page);
      }
    }
    return found;
  };

  /** The pages that answer a query, the best first: {page, score, sections}. */
  const rank = (query, known) => {
    const words = asked(query);
    if (!words.length) return [];
    const unfinished = /[\p{L}\p{N}]$/u.test(query);
    const last = split(query).at(-1);
    const texts = words.map((word) => pagesWith(word, unfinished && word === last, known));
    const rare = texts.map((pages) => Math.log(1 + known.count / (1 + pages.size)));
    const whole = rare.reduce((a, b) => a + b, 0);
    const stems = words.map(stem);
    const pages = new Map();
    known.docnames.forEach((page, i) => {
      const held = words.reduce((sum, _, w) => sum + (texts[w].has(i) ? rare[w] : 0), 0) / whole;
      pages.set(page, { page, best: 0, second: 0, text: WORTH.text * held ** 2, sections: [] });
    });
    for (const entry of known.entries) {
      const matched = new Set();
      let held = 0;
      words.forEach((word, w) => {
        const open = unfinished && word === last && word.length > 1;
        const same = entry.words.indexOf(stems[w]);
        const begun = open ? entry.raw.findIndex((other) => other.startsWith(word)) : -1;
        if (same < 0 && begun < 0) return;
        matched.add(same < 0 ? begun : same);
        held += same < 0 ? BEGUN * rare[w] : rare[w];
      });
      if (!held) continue;
      const share = matched.size / entry.words.length;
      const score = WORTH[entry.kind] * (held / whole) ** 2 * (0.5 + 0.5 * share);
      const found = pages.get(entry.page);
      if (!found) continue;
      if (score > found.best) [found.best, found.second] = [score, found.best];
      else if (score > found.second) found.second = score;
      if (entry.anchor && held / whole > 0.6) found.sections.push({ ...entry, score });
    }
    const scored = [...pages.values()].map(({ page, best, second, text, sections }) => ({
      page,
      score: worthOf(page) * (best + 0.2 * second + text),
      sections: sections.sort((a, b) => b.score - a.score),
    }));
    scored.sort((a, b) => b.score - a.score);
    return scored.filter(({ score }) => score > Math.max(0.5, scored[0].score / 8)).slice(0, MOST);
  };

  // ---- What is shown

  const make = (tag, text = "", attributes = {}) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.textContent = text;
    return element;
  };

  /** A text, with what was asked for in bold. */
  const marked = (text, words) => {
    const parts = text.split(/([\p{L}\p{M}\p{N}_]+)/u);
    const stems = words.map(stem);
    return parts.map((part) => {
      const own = split(part)[0];
      const hit = own && (stems.includes(stem(own)) || own.startsWith(words.at(-1)));
      return hit ? make("mark", part) : part;
    });
  };

  const item = ({ page, sections }, words, known) => {
    const line = make("li");
    const title = known.titles[known.docnames.indexOf(page)];
    const link = make("a", "", { href: `${root}${page}.html` });
    link.append(...marked(title, words));
    line.append(link, make("p", window.searchPages.pages[page]?.about ?? "", { className: "search-about" }));
    const places = new Map(sections.map((one) => [one.anchor, one]));
    const shown = [...places.values()].filter(({ text }) => text !== title).slice(0, SECTIONS);
    for (const { anchor, text } of shown) {
      const place = make("a", "", { href: `${root}${page}.html#${anchor}`, className: "search-place" });
      place.append(...marked(text, words));
      line.append(place);
    }
    return line;
  };

  const attach = (form) => {
    const field = form.querySelector("input");
    const status = make("p", "", { role: "status", className: "search-summary" });
    const list = make("ul", "", { className: "search" });
    const box = make("div", "", { className: "search-found" });
    box.append(status, list);
    form.after(box);
    let newest = 0;
    const show = async () => {
      const number = (newest += 1);
      const query = field.value.trim();
      if (!query) {
        status.textContent = "";
        return list.replaceChildren();
      }
      let known;
      try {
        known = await index();
      } catch {
        loading = undefined;
        status.textContent = "The index could not be loaded. Try once more.";
        return;
      }
      if (number !== newest) return; // more was typed meanwhile
      form.dataset.asked = query;
      const found = rank(query, known);
      const words = asked(query);
      list.replaceChildren(...found.map((one) => item(one, words, known)));
      const count = found.length === 1 ? "1 page" : `${found.length} pages`;
      const many = found.length === MOST ? `The ${MOST} pages that fit best` : `${count}, the best first`;
      status.textContent = found.length ? many : `Nothing is found for “${query}”. Try fewer or other words.`;
    };
    field.addEventListener("input", show);
    // A place in the page that is open is not behind the dialogue.
    list.addEventListener("click", ({ target }) => {
      if (target.closest("a")) document.getElementById("pst-search-dialog")?.close();
    });
    // The arrows lead through the results and back to the field.
    box.parentElement.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const places = [field, ...box.querySelectorAll("a")];
      const at = places.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      places[Math.max(0, Math.min(places.length - 1, at + step))].focus();
    });
    return show;
  };

  for (const form of document.querySelectorAll("form.bd-search")) {
    const show = attach(form);
    if (!form.closest(".bd-search-container")) {
      show(); // what was typed while this script came
      continue;
    }
    const field = form.querySelector("input");
    field.value = new URLSearchParams(location.search).get("q") ?? "";
    form.addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", () => {
      const address = new URL(location);
      address.searchParams.set("q", field.value);
      history.replaceState(null, "", address);
    });
    show();
  }
  window.bookSearch = { index, rank };
})();
