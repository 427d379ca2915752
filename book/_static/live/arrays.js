/* The arithmetic of the forward pass, on Float32Arrays. A matrix is {numbers, rows,
   columns}, its rows one after another, as torch stores a Linear's weight. */
"use strict";
window.liveModel = window.liveModel || {};
(() => {
  const EPSILON = 1e-5; // torch's LayerNorm adds it to the variance

  /** W x + b. Four sums side by side: a processor need not wait for one addition before
      it begins the next. */
  const linearOfOne = ({ numbers, rows, columns }, x, bias) => {
    const y = new Float32Array(rows);
    const whole = columns - (columns % 4);
    for (let row = 0, start = 0; row < rows; row += 1, start += columns) {
      let [a, b, c, d] = [bias ? bias[row] : 0, 0, 0, 0];
      let i = 0;
      for (; i < whole; i += 4) {
        a += numbers[start + i] * x[i];
        b += numbers[start + i + 1] * x[i + 1];
        c += numbers[start + i + 2] * x[i + 2];
        d += numbers[start + i + 3] * x[i + 3];
      }
      for (; i < columns; i += 1) a += numbers[start + i] * x[i];
      y[row] = a + b + c + d;
    }
    return y;
  };

  /** W x + b for two to four x and two rows of W at a time: each number that is read from
      memory, which takes longer than to multiply, is used for all of them. */
  const linearOfSome = ({ numbers, rows, columns }, xs, bias) => {
    // The first entry of each x, then the second of each; doubles, as all sums are.
    const mixed = new Float64Array(4 * columns);
    xs.forEach((x, k) => x.forEach((value, i) => (mixed[4 * i + k] = value)));
    const [p, q, r, s] = Array.from({ length: 4 }, () => new Float32Array(rows));
    for (let row = 0; row < rows; row += 2) {
      const below = row + 1 < rows ? columns : 0; // a last row alone is computed twice
      // Single variables: arrays here would take more time than the sums.
      let a = 0, b = 0, c = 0, d = 0; // of the upper row
      let e = 0, f = 0, g = 0, h = 0; // of the lower row
      for (let i = 0, at = row * columns; i < 4 * columns; i += 4, at += 1) {
        const upper = numbers[at];
        const lower = numbers[at + below];
        const w = mixed[i];
        const x = mixed[i + 1];
        const y = mixed[i + 2];
        const z = mixed[i + 3];
        a += upper * w;
        b += upper * x;
        c += upper * y;
        d += upper * z;
        e += lower * w;
        f += lower * x;
        g += lower * y;
        h += lower * z;
      }
      p[row] = a;
      q[row] = b;
      r[row] = c;
      s[row] = d;
      p[row + 1] = e; // without a lower row, nothing happens
      q[row + 1] = f;
      r[row + 1] = g;
      s[row + 1] = h;
    }
    const ys = [p, q, r, s].slice(0, xs.length);
    return bias ? ys.map((y) => y.map((value, i) => value + bias[i])) : ys;
  };

  /** W x + b for each x. */
  const linear = (matrix, xs, bias) => {
    const ys = [];
    for (let i = 0; i < xs.length; i += 4) {
      const some = xs.slice(i, i + 4);
      if (some.length > 1) ys.push(...linearOfSome(matrix, some, bias));
      else ys.push(linearOfOne(matrix, some[0], bias));
    }
    return ys;
  };

  /** LayerNorm(x + update) for each x, the "Add & Norm" of Figure 1. */
  const addAndNorm = (xs, updates, { weight, bias }) =>
    xs.map((x, place) => {
      const total = x.map((value, i) => value + updates[place][i]);
      const mean = total.reduce((sum, value) => sum + value, 0) / x.length;
      const variance = total.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
      const shrink = 1 / Math.sqrt(variance + EPSILON);
      return total.map((value, i) => (value - mean) * shrink * weight[i] + bias[i]);
    });

  /** Weights that sum to one. */
  const softmax = (scores) => {
    const greatest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const powers = scores.map((score) => Math.exp(score - greatest));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  };

  /** §3.5: sines and cosines of one position, in turn. */
  const sinusoids = (position, width) =>
    Float32Array.from({ length: width }, (_, i) => {
      const angle = position / 10000 ** ((i - (i % 2)) / width);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });

  const bytes = (base64) => {
    const text = atob(base64);
    const found = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) found[i] = text.charCodeAt(i);
    return found;
  };

  /** The record's parameters by name: vectors as they are, matrices times their scales. */
  const unpackNumbers = (parameters, whole, exact) => {
    const found = {};
    let wholeAt = 0;
    let exactAt = 0;
    for (const { name, shape } of parameters) {
      const [rows, columns] = shape;
      const factors = exact.subarray(exactAt, (exactAt += rows));
      if (columns === undefined) {
        found[name] = factors;
        continue;
      }
      const values = new Float32Array(rows * columns);
      for (let row = 0, i = 0; row < rows; row += 1) {
        for (const end = i + columns; i < end; i += 1, wholeAt += 1) {
          values[i] = whole[wholeAt] * factors[row];
        }
      }
      found[name] = { numbers: values, rows, columns };
    }
    return found;
  };

  const unpack = ({ parameters, numbers, floats }) =>
    unpackNumbers(
      parameters,
      new Int8Array(bytes(numbers).buffer),
      new Float32Array(bytes(floats).buffer),
    );

  Object.assign(window.liveModel, {
    linear,
    addAndNorm,
    softmax,
    sinusoids,
    unpack,
    unpackNumbers,
  });
})();
