/* The landing page: a note on the block of Figure 1 that is pointed at, and the switch of
   the head above it. Without this script the links and the list are there all the same. */
(() => {
  const figure = document.querySelector(".figure-one");
  const note = document.querySelector(".figure-note");
  const blocks = [...document.querySelectorAll(".figure-one .block")];

  function tell(name) {
    const item = document.getElementById(`block-${name}`);
    if (!item) return;
    note.dataset.block = name;
    note.querySelector(".figure-note-text").innerHTML = item.innerHTML;
    for (const block of blocks) block.classList.toggle("current", block.dataset.block === name);
  }

  // A finger cannot point without pressing: the first touch tells, the second follows.
  let touched = null;
  for (const block of blocks) {
    const name = block.dataset.block;
    block.addEventListener("pointerenter", event => {
      if (event.pointerType === "mouse") tell(name);
    });
    block.addEventListener("focus", () => tell(name));
    block.addEventListener("pointerdown", event => {
      touched = event.pointerType === "mouse" ? null : { name, again: note.matches('.told') && note.dataset.block === name };
    });
    block.addEventListener("click", event => {
      if (touched && touched.name === name && !touched.again) {
        event.preventDefault();
        tell(name);
        note.classList.add("told");
      }
      touched = null;
    });
  }
  if (figure && note) {
    tell(note.dataset.block);
    if (matchMedia("(hover: none)").matches) {
      note.querySelector(".figure-hint").textContent = "Touch a block twice to open its chapter.";
    }
  }

  // The head that the first figure shows, switched off and on again.
  const hero = document.querySelector(".hero");
  const button = hero?.querySelector(".hero-switch");
  button?.addEventListener("click", () => {
    const off = hero.toggleAttribute("data-off");
    button.setAttribute("aria-pressed", off);
    button.textContent = off ? "Switch it on again" : "Switch off this head";
  });
})();
