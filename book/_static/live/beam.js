/* §6.1: beam search with a length penalty, as aiayn.inference.beam_search has it. */
"use strict";
(() => {
  /** What a total log-probability is divided by (Wu et al., 2016). */
  const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  /** log Σ exp(logit), without an overflow. */
  const logSumExp = (logits) => {
    const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
    return most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
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

  /** Each beginning with the tokens that follow it most probably, the best first. Padding
      and the start sign are never written: their logits are overwritten. */
  const extensions = (beam, logits, count, { padId, startId }) => {
    const found = beam.flatMap((parent, i) => {
      const logSum = logSumExp(logits[i]);
      logits[i][padId] = logits[i][startId] = -Infinity;
      return greatest(logits[i], count).map((token) => {
        return { parent, token, total: parent.total + logits[i][token] - logSum };
      });
    });
    return found.sort((a, b) => b.total - a.total).slice(0, count);
  };

  /** The best finished output, {tokens, ended}; without its end where none was found. */
  const beamSearch = (model, source, { switches } = {}) => {
    const { startId, endId, extraLength, beamSize: size, lengthPenalty: alpha } = model.config;
    const limit = source.length + extraLength;
    const started = model.start(model.encode(source, switches).memory);
    let beam = [{ tokens: [], total: 0, caches: started }];
    const finished = [];
    for (let length = 1; ; length += 1) {
      const last = beam.map(({ tokens }) => tokens.at(-1) ?? startId);
      const caches = beam.map((one) => one.caches);
      const { states } = model.read(last, length - 1, caches, switches);
      const next = extensions(beam, model.logits(states), 2 * size, model.config);
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
