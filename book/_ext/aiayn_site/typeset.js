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

// A formula in a line of text may be broken where TeX would break it: behind a relation
// or a comma that no bracket holds, and a long piece behind an operator as well.
const { REL, BIN, OPEN, CLOSE, PUNCT } = parts.core.MmlTree.MmlNode.TEXCLASS;
const LONG = 12; // characters, a good third of a phone's line
const length = nodes => nodes.reduce((sum, node) => // ½ is a text, for want of a glyph
  sum + (/^(mjx-c|#text)$/.test(adaptor.kind(node)) ? 1 : length(adaptor.childNodes(node))), 0);

function pieces(nodes, classes) {
  const found = [[]];
  let depth = 0;
  nodes.forEach((node, i) => {
    const piece = found[found.length - 1];
    piece.push(node);
    if (classes[i] === OPEN) depth += 1;
    if (classes[i] === CLOSE) depth -= 1;
    const ends = depth === 0 && [REL, PUNCT].includes(classes[i])
      || classes[i] === BIN && length(piece) >= LONG;
    if (ends && i + 1 < nodes.length) found.push([]);
  });
  return found;
}

function makeBreakable(container, root) {
  const [math] = adaptor.childNodes(container);
  const nodes = [...adaptor.childNodes(math)];
  const classes = root.childNodes[0].childNodes.map(node => node.texClass);
  if (nodes.length !== classes.length || length(nodes) <= LONG) return;
  const found = pieces(nodes, classes);
  if (found.length === 1) return;
  nodes.forEach(node => adaptor.remove(node));
  found.forEach((piece, i) => {
    if (i > 0) adaptor.append(math, adaptor.node("wbr"));
    adaptor.append(math, adaptor.node("mjx-piece", {}, piece));
  });
}

function typeset(tex, display) {
  options.InputJax.reset();
  const container = paper.convert(tex, { display });
  const root = paper.convert(tex, { display, end: parts.core.MathItem.STATE.CONVERT });
  if (!display) makeBreakable(container, root);
  return adaptor.outerHTML(container)
    .replace("<mjx-math", '<mjx-math aria-hidden="true"')
    .replace(/<\/mjx-container>$/, `<mjx-assistive-mml>${read(root)}</mjx-assistive-mml></mjx-container>`);
}

const styles = () => adaptor.textContent(options.OutputJax.styleSheet(paper));
