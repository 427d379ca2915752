/* Starts the deck. Figures become as large as their slide lets them; whatever else does
   not fit is made as small as it must be. */
(() => {
  const LARGEST = 2;
  const TALL = 0.6; // height to width
  const frame = () => new Promise(requestAnimationFrame);

  // A figure takes the room that its title and its caption leave.
  const enlarge = (content, width, height) => {
    const figure = content.querySelector(":scope > .outputs");
    const numbered = figure.querySelector(".aiayn-figure"); // it brings its caption
    const drawing = numbered ?? figure.querySelector("svg, canvas, img, .aiayn") ?? figure;
    figure.style.zoom = 1;
    const own = { width: Math.max(drawing.getBoundingClientRect().width, 1), height: figure.scrollHeight };
    own.width /= content.getBoundingClientRect().width / content.offsetWidth; // the deck's scale
    // A tall figure has its caption beside it.
    const beside = !numbered && own.height > TALL * own.width;
    content.classList.toggle("beside", beside);
    const others = beside ? figure.offsetTop : content.scrollHeight - figure.offsetHeight;
    const room = { width: beside ? 0.7 * width : width, height: height - others - 8 };
    const zoom = Math.min(LARGEST, room.width / own.width, room.height / own.height);
    figure.style.zoom = zoom;
    content.dataset.zoom = zoom.toFixed(3);
  };

  const fit = () => {
    for (const content of document.querySelectorAll(".slides .content")) {
      const section = content.closest("section");
      const style = getComputedStyle(section);
      const width = section.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      const height = section.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
      content.style.transform = "";
      if (section.matches(".figure")) enlarge(content, width, height);
      const scale = Math.min(1, width / content.scrollWidth, height / content.scrollHeight);
      content.dataset.scale = scale.toFixed(3);
      if (scale < 1) content.style.transform = `scale(${scale})`;
    }
  };

  const started = Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
    transition: "none", viewDistance: 1000, mobileViewDistance: 1000, plugins: [RevealNotes],
    // In a figure's menu the arrow keys choose; the deck knows text fields and sliders only.
    keyboardCondition: event => !event.target.closest("select"),
  });

  const drawn = async () => {
    const waiting = () => [...document.querySelectorAll("[id^=altair-viz]")]
      .some(chart => !chart.querySelector("svg, canvas"));
    for (let turn = 0; turn < 600 && waiting(); turn++) await frame();
  };

  window.slidesFitted = (async () => {
    await started;
    await new Promise(done => (document.readyState === "complete" ? done() : addEventListener("load", done)));
    await (window.MathJax?.startup?.promise ?? Promise.resolve());
    await document.fonts.ready;
    await drawn();
    await frame();
    fit();
    document.documentElement.dataset.fitted = "yes";
  })();
})();
