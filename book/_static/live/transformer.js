/* Figure 1: the encoder, the decoder, and greedy search with a cache. Post-norm and tied
   embeddings, as the paper has them; positions as sinusoids or rotary. It computes what
   aiayn.model.Transformer computes; tests/site/test_live_model.py and test_everyday.py
   hold the two together. */
"use strict";
(() => {
  const { linear, addAndNorm, softmax, sinusoids, MultiHeadAttention } = window.liveModel;

  /** Everything on: the model as it was trained. */
  const ALL_ON = { scaled: true, positions: true, off: new Set() };

  /** One layer of either stack. */
  class Layer {
    constructor(parameters, stack, number, { heads, rotary }) {
      const prefix = `${stack}.layers.${number}`;
      const attention = (name, place, rotates) =>
        new MultiHeadAttention(parameters, `${prefix}.${name}`, `${place}/${number}`, heads, rotates);
      const norm = (name) => ({
        weight: parameters[`${prefix}.${name}_residual.norm.weight`],
        bias: parameters[`${prefix}.${name}_residual.norm.bias`],
      });
      this.self = attention("self_attention", stack, rotary);
      this.selfNorm = norm("self_attention");
      if (stack === "decoder") {
        this.cross = attention("cross_attention", "cross", false);
        this.crossNorm = norm("cross_attention");
      }
      const part = (name, what) => parameters[`${prefix}.feed_forward.${name}.${what}`];
      this.feedForward = (xs) => {
        const hidden = linear(part("inner", "weight"), xs, part("inner", "bias"));
        const positive = hidden.map((h) => h.map((value) => Math.max(0, value)));
        return linear(part("outer", "weight"), positive, part("outer", "bias"));
      };
      this.feedForwardNorm = norm("feed_forward");
    }
  }

  class Transformer {
    constructor(config, parameters) {
      this.config = config;
      this.embedding = parameters["embeddings.shared.weight"];
      const stack = (name, layers) =>
        Array.from({ length: layers }, (_, i) => new Layer(parameters, name, i, config));
      this.encoder = stack("encoder", config.encoderLayers);
      this.decoder = stack("decoder", config.decoderLayers);
    }

    /** §3.4 and §3.5: the token's row times √d_model, plus its position; with rotary
        positions nothing is added. */
    embed(token, position, switches) {
      const width = this.embedding.columns;
      const row = this.embedding.numbers.subarray(token * width, (token + 1) * width);
      const added = switches.positions && !this.config.rotary;
      const place = added ? sinusoids(position, width) : new Float32Array(width);
      return row.map((value, i) => Math.fround(value * Math.sqrt(width)) + place[i]);
    }

    /** The memory, and weights[layer][head][query][key]. */
    encode(tokens, switches = ALL_ON) {
      let states = tokens.map((token, i) => this.embed(token, i, switches));
      const positions = tokens.map((_, i) => (switches.positions ? i : 0));
      const weights = this.encoder.map((layer) => {
        const memory = layer.self.keysAndValues(states, positions);
        const self = layer.self.attend(states, states.map(() => memory), switches, positions);
        states = addAndNorm(states, self.outputs, layer.selfNorm);
        states = addAndNorm(states, layer.feedForward(states), layer.feedForwardNorm);
        return byHead(self.weights);
      });
      return { memory: states, weights };
    }

    /** What the decoder keeps while it writes: projected once, or once a token. */
    start(memory) {
      return this.decoder.map((layer) => ({
        written: [],
        source: layer.cross.keysAndValues(memory),
      }));
    }

    /** Read one more token: the logits of the next, and what each head looked at. */
    step(token, position, caches, switches = ALL_ON) {
      const { states, decoder, cross } = this.read([token], position, [caches], switches);
      const first = (weights) => weights.map(([one]) => one);
      return { logits: this.logits(states)[0], decoder: first(decoder), cross: first(cross) };
    }

    /** The logits that follow these states of the last layer. */
    logits(states) {
      return linear(this.embedding, states);
    }

    /** Read one more token of each of several outputs, which stand at the same position
        and have a cache each: the last layer's states, and what each head looked at, by
        layer and output. */
    read(tokens, position, caches, switches = ALL_ON) {
      let states = tokens.map((token) => this.embed(token, position, switches));
      const positions = tokens.map(() => (switches.positions ? position : 0));
      const looked = { decoder: [], cross: [] };
      this.decoder.forEach((layer, i) => {
        const own = caches.map((cache) => cache[i]);
        const found = layer.self.keysAndValues(states, positions);
        own.forEach(({ written }, k) => written.push(found[k]));
        const written = own.map((cache) => cache.written);
        const self = layer.self.attend(states, written, switches, positions);
        states = addAndNorm(states, self.outputs, layer.selfNorm);
        const source = own.map((cache) => cache.source);
        const cross = layer.cross.attend(states, source, switches);
        states = addAndNorm(states, cross.outputs, layer.crossNorm);
        states = addAndNorm(states, layer.feedForward(states), layer.feedForwardNorm);
        looked.decoder.push(self.weights);
        looked.cross.push(cross.weights);
      });
      return { states, ...looked };
    }

    /** Greedy search: the most probable token, until the end sign or the limit; or the
        tokens that another search has chosen.

        Each step says what was read and written, how sure the model was, and the
        logits; maps hold the weights of every layer and head, a row for each query. */
    translate(source, switches = ALL_ON, chosen = undefined) {
      const { startId, endId, extraLength } = this.config;
      const { memory, weights } = this.encode(source, switches);
      const caches = this.start(memory);
      const steps = [];
      const limit = source.length + extraLength;
      let token = startId;
      let ended = false;
      while (!ended) {
        const { logits, decoder, cross } = this.step(token, steps.length, caches, switches);
        const best = chosen ? chosen[steps.length] : this.#mostProbable(logits);
        if (best === undefined) break; // a search that found no end
        ended = best === endId;
        if (!ended && steps.length + 1 === limit) break; // only the end may stand there
        const probabilities = softmax(logits);
        steps.push({ read: token, token: best, logits, probabilities, decoder, cross });
        token = best;
      }
      const maps = { encoder: weights };
      for (const use of ["decoder", "cross"]) {
        maps[use] = this.decoder.map((_, layer) => byHead(steps.map((s) => s[use][layer])));
      }
      return { source, steps, maps, ended };
    }

    /** Padding and the start sign are never written: training has no such label. */
    #mostProbable(logits) {
      const { padId, startId } = this.config;
      let best = this.config.endId;
      logits.forEach((logit, token) => {
        if (token !== padId && token !== startId && logit > logits[best]) best = token;
      });
      return best;
    }
  }

  /** [query][head] to [head][query]. */
  const byHead = (rows) => rows[0].map((_, head) => rows.map((row) => row[head]));

  Object.assign(window.liveModel, { ALL_ON, Transformer });
})();
