// Typesets one formula after another in V8, where there is no page; see formulas.py.
// The components of MathJax have been run before it and have left their parts in
// MathJax._; nothing of this runs in a reader's browser.
const parts = MathJax._;
const adaptor = parts.adaptors.liteAdaptor.liteAdaptor();
parts.handlers.html_ts.RegisterHTMLHandler(adaptor);
const font = new parts.output.chtml.fonts.tex_ts.TeXFont({ fontURL: FONTS, adaptiveCSS: false });
// Fails aloud: neither errors nor unknown commands are shown as if they were formulas.
const packages = ["base", "ams", "newcommand", "color", "boldsymbol", "cancel", "unicode"];
const options = {
  InputJax: new parts.input.tex_ts.TeX({
    packages,
    formatError: (_, error) => { throw new Error(error.message); },
  }),
  OutputJax: new parts.output.chtml_ts.CHTML({ font, adaptiveCSS: false, matchFontHeight: false }),
};
const paper = parts.mathjax.mathjax.document("", options);
const mathml = new parts.core.MmlTree.SerializedMmlVisitor.SerializedMmlVisitor();

// What a screen reader reads: the formula as MathML, which is there but not seen.
const read = root => mathml.visitTree(root).replace(/\n\s*| id="[^"]*"/g, "");

function typeset(tex, display) {
  options.InputJax.reset();
  const shown = adaptor.outerHTML(paper.convert(tex, { display }));
  const root = paper.convert(tex, { display, end: parts.core.MathItem.STATE.CONVERT });
  return shown
    .replace("<mjx-math", '<mjx-math aria-hidden="true"')
    .replace(/<\/mjx-container>$/, `<mjx-assistive-mml>${read(root)}</mjx-assistive-mml></mjx-container>`);
}

const styles = () => adaptor.textContent(options.OutputJax.styleSheet(paper));
