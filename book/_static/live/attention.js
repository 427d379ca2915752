/* §3.2: multi-head attention. A position may look at all keys that it is given, so the
   causal mask is simply what is not there yet. With rotary positions, queries and
   keys are rotated (aiayn.model.rotary). */
"use strict";
(() => {
  const { linear, sinusoids, softmax } = window.liveModel;

  class MultiHeadAttention {
    /** The projections under this prefix; place is its name for the switches. */
    constructor(parameters, prefix, place, heads, rotary = false) {
      const take = (name) => parameters[`${prefix}.${name}_projection.weight`];
      [this.query, this.key, this.value, this.output] =
        ["query", "key", "value", "output"].map(take);
      this.place = place;
      this.heads = heads;
      this.rotary = rotary;
    }

    /** What each x answers to, and what it has to give. */
    keysAndValues(xs, positions = []) {
      const keys = linear(this.key, xs);
      const values = linear(this.value, xs);
      return xs.map((_, i) => ({ key: this.#rotated(positions[i], keys[i]), value: values[i] }));
    }

    /** The outputs, and each head's weights: xs[i] looks at memories[i]. */
    attend(xs, memories, switches, positions = []) {
      const queries = linear(this.query, xs);
      const contexts = xs.map(() => new Float32Array(this.value.rows));
      const weights = xs.map((_, i) => {
        const query = this.#rotated(positions[i], queries[i]);
        return Array.from({ length: this.heads }, (_, head) => {
          const found = this.#weights(query, memories[i], head, switches.scaled);
          if (!switches.off.has(`${this.place}/${head}`)) {
            this.#mean(found, memories[i], head, contexts[i]);
          } // a head that is off hands on zeros
          return found;
        });
      });
      return { outputs: linear(this.output, contexts), weights };
    }

    /** A query or key of every head, rotated by the angles of its position: entry i of a
        head together with the entry half a head after it. */
    #rotated(position, vector) {
      if (!this.rotary || !position) return vector;
      const width = vector.length / this.heads;
      const half = width / 2;
      const angles = sinusoids(position, width);
      const rotated = new Float32Array(vector.length);
      for (let start = 0; start < vector.length; start += width) {
        for (let i = 0; i < half; i += 1) {
          const [sin, cos] = [angles[2 * i], angles[2 * i + 1]];
          const [first, second] = [vector[start + i], vector[start + half + i]];
          rotated[start + i] = first * cos - second * sin;
          rotated[start + half + i] = first * sin + second * cos;
        }
      }
      return rotated;
    }

    /** Equation (1) up to the softmax: q · k / √d_k for every key. */
    #weights(query, memory, head, scaled) {
      const width = this.query.rows / this.heads;
      const start = head * width;
      const divisor = scaled ? Math.sqrt(width) : 1;
      const scores = new Float32Array(memory.length);
      memory.forEach(({ key }, position) => {
        let sum = 0;
        for (let i = start; i < start + width; i += 1) sum += query[i] * key[i];
        scores[position] = sum / divisor;
      });
      return softmax(scores);
    }

    /** The mean of the values, into the head's part of the context. */
    #mean(weights, memory, head, context) {
      const width = this.value.rows / this.heads;
      memory.forEach(({ value }, position) => {
        for (let i = head * width; i < (head + 1) * width; i += 1) {
          context[i] += weights[position] * value[i];
        }
      });
    }
  }

  window.liveModel.MultiHeadAttention = MultiHeadAttention;
})();
