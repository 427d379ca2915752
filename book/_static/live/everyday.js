/* The field of the landing page: the model comes once somebody types, and translates
   here. Whatever a reader types is only ever set as text. */
"use strict";
(() => {
  const form = document.getElementById("everyday");
  const find = (name) => document.getElementById(`everyday-${name}`);
  const { everyday } = window.liveModel;

  let newest = 0;
  const translate = async (typed, asked = true) => {
    const number = (newest += 1);
    const sentence = everyday.tidy(typed);
    find("german").textContent = "";
    find("notice").textContent = asked && !sentence ? "Type a sentence, or choose one." : "";
    if (!sentence) return;
    if (!everyday.transformer) find("notice").textContent = "The model is on its way.";
    let loaded;
    try {
      loaded = await everyday.translator();
    } catch {
      find("notice").textContent = "The model could not be loaded. Try once more, or load the page again.";
      return;
    }
    if (number !== newest) return; // another sentence was asked for meanwhile
    const { tokenizer, transformer } = loaded;
    const ids = [...tokenizer.encode(sentence), transformer.config.endId];
    find("notice").textContent = everyday.tooLong(ids);
    if (find("notice").textContent) return;
    const said = everyday.remarks(typed, sentence, loaded);
    const { tokens, ended } = window.liveModel.beamSearch(transformer, ids);
    if (!ended) said.push("It found no end and was stopped.");
    find("german").textContent = tokenizer.decode(tokens);
    find("notice").textContent = said.join(" ");
  };

  const field = find("sentence");
  let counted = false; // whether the notice is the count of pieces
  const count = ({ tokenizer }) => {
    const room = everyday.nearly([...tokenizer.encode(everyday.tidy(field.value)), 0]); // and its end
    if (room || counted) find("notice").textContent = room;
    counted = Boolean(room);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    translate(field.value);
  });
  field.addEventListener("input", () => {
    if (!field.value.trim()) translate("", false);
    else everyday.translator().then(count, () => {}); // on its way while the reader types
  });
  for (const chip of form.querySelectorAll(".everyday-chips button")) {
    chip.addEventListener("click", () => {
      field.value = chip.textContent;
      translate(field.value);
    });
  }
  everyday.translate = translate;
  form.querySelector("[type=submit]").disabled = false; // a click before would load the page again
})();
