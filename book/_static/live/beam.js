/* §6.1: beam search with a length penalty, as aiayn.inference.beam_search has it. */
"use strict";
(() => {
  /** What a total log-probability is divided by (Wu et al., 2016). */
  const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  /** Log-probabilities of the next token. Padding and the start sign are never written. */
  const logProbabilities = (logits, { padId, startId }) => {
    let greatest = -Infinity;
    for (const logit of logits) if (logit > greatest) greatest = logit;
    let sum = 0;
    for (const logit of logits) sum += Math.exp(logit - greatest);
    const found = Float64Array.from(logits, (logit) => logit - greatest - Math.log(sum));
    found[padId] = found[startId] = -Infinity;
    return found;
  };

  /** The places of the greatest numbers, the greatest first, equals in their order. */
  const greatest = (numbers, count) => {
    const found = [];
    for (let place = 0; place < numbers.length; place += 1) {
      if (found.length === count && numbers[place] <= numbers[found[count - 1]]) continue;
      let at = found.length;
      while (at && numbers[place] > numbers[found[at - 1]]) at -= 1;
      found.splice(at, 0, place);
      if (found.length > count) found.pop();
    }
    return found;
  };

  /** Each beginning with the tokens that follow it most probably, the best first. */
  const extensions = (beam, scores, count) => {
    const found = beam.flatMap((parent, i) =>
      greatest(scores[i], count).map((token) => ({
        parent,
        token,
        total: parent.total + scores[i][token],
      })),
    );
    return found.sort((a, b) => b.total - a.total).slice(0, count);
  };

  /** The best finished output, {tokens, ended}; without its end where none was found. */
  const beamSearch = (model, source, { switches } = {}) => {
    const { startId, endId, extraLength, beamSize: size, lengthPenalty: alpha } = model.config;
    const limit = source.length + extraLength;
    const caches = model.start(model.encode(source, switches).memory);
    let beam = [{ tokens: [], total: 0, caches }];
    const finished = [];
    for (let length = 1; ; length += 1) {
      const states = beam.map(
        ({ tokens, caches: own }) =>
          model.read(tokens.at(-1) ?? startId, length - 1, own, switches).state,
      );
      const scores = model.logits(states).map((l) => logProbabilities(l, model.config));
      const next = extensions(beam, scores, 2 * size);
      const penalty = lengthPenalty(length, alpha);
      for (const { parent, token, total } of next.slice(0, size)) {
        if (token === endId) finished.push({ tokens: parent.tokens, score: total / penalty });
      }
      finished.sort((a, b) => b.score - a.score);
      const going = next.filter(({ token }) => token !== endId).slice(0, size);
      const best = finished[0]?.score ?? -Infinity;
      const done =
        length >= limit ||
        best >= going[0].total / lengthPenalty(limit, alpha) ||
        (finished.length >= size && best >= going[0].total / penalty);
      if (done) {
        const { tokens } = finished[0] ?? going[0].parent;
        return { tokens, ended: finished.length > 0 };
      }
      beam = going.map(({ parent, token, total }) => ({
        tokens: [...parent.tokens, token],
        total,
        caches: parent.caches.map(({ written, source: read }) => ({
          written: [...written],
          source: read,
        })),
      }));
    }
  };

  window.liveModel.beamSearch = beamSearch;
})();
