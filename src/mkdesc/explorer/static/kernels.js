// The kernels: the same mathematics as mkdesc's kernels.py, parametrization.py and
// visual/patchmaps.py, so that a page without a server can compute them. Constants and tables come
// from Python with the page's data; the tests compare every function with Python's.

import { ANGULAR, EXPLICIT, MOST_FREQUENCIES } from "./constants.js";

/** The exact von Mises kernel of an angle difference. */
export function vonMises(kappa, delta) {
  const lowest = Math.expm1(-2 * kappa);
  return (Math.expm1(kappa * (Math.cos(delta) - 1)) - lowest) / -lowest;
}

/** Fourier coefficients a_0 .. a_n of a von Mises kernel, by the trapezoidal rule. */
export function coefficients(kappa, n) {
  const reach = Math.min(Math.PI, 12 / Math.sqrt(kappa));
  const samples = 128 + 4 * n;
  const step = (2 * reach) / samples;
  const a = new Float64Array(n + 1);
  for (let i = 0; i < samples; i++) {
    const delta = -reach + i * step;
    const value = (vonMises(kappa, delta) * step) / Math.PI;
    for (let k = 0; k <= n; k++) a[k] += value * Math.cos(k * delta);
  }
  a[0] /= 2;
  return a.map((value) => Math.max(value, 0));
}

/** The truncated series of coefficients at an angle difference. */
export function truncated(a, delta) {
  return a.reduce((sum, value, k) => sum + value * Math.cos(k * delta), 0);
}

const KERNEL = /^\s*(\w+)\s*(?:\(([^()]*)\))?\s*$/;

/**
 * Read a parametrization from the text that Python reads and writes.
 * Returns {preparation, products: [[{name, kappa, n}, ...], ...]}; throws an Error that says what is
 * wrong.
 */
export function parseParametrization(text, data) {
  let rest = named(text, data) ?? text;
  let preparation = "paper";
  if (rest.includes(":")) {
    [preparation, rest] = rest.split(":", 2).map((part) => part.trim());
    if (!Object.hasOwn(data.preparations, preparation)) {
      throw new Error(`unknown preparation ${preparation}`);
    }
  }
  const products = rest.split(/\+(?![^(]*\))/).flatMap((part) => {
    const known = named(part, data);
    if (!known) return [part.split("*").map((factor) => parseFactor(factor, data))];
    const inner = parseParametrization(known, data);
    if (inner.preparation !== preparation) throw new Error(`${part.trim()} cannot be added here`);
    return inner.products;
  });
  const parametrization = { preparation, products };
  checkParametrization(parametrization, data);
  return parametrization;
}

/** The text that a name stands for, if it is one. */
function named(name, data) {
  return Object.hasOwn(data.named, name.trim()) ? data.named[name.trim()] : undefined;
}

function parseFactor(text, data) {
  const [, name, inside] = KERNEL.exec(text) ?? [];
  const numbers = inside === undefined ? [] : inside.split(",").map(Number);
  if (name === "shape" && numbers.length === 0) return { name };
  if (name === "intensity" && (inside === "1" || inside === "2")) return { name, n: numbers[0] };
  const known = Object.hasOwn(data.attributes, name ?? "") || ANGULAR.includes(name);
  const [kappa, n] = numbers;
  if (!known || numbers.length !== 2) throw new Error(`cannot read ${text.trim() || "nothing"}`);
  if (!(kappa > 0 && kappa <= 1000)) throw new Error(`${name}: kappa must be in (0, 1000]`);
  if (!Number.isInteger(n) || n < 0 || n > MOST_FREQUENCIES) {
    throw new Error(`${name}: N must be a whole number from 0 to ${MOST_FREQUENCIES}`);
  }
  return { name, kappa, n };
}

/** Throw an Error if products do not make sense; the rules are those of Python. */
function checkParametrization({ preparation, products }, data) {
  for (const part of products) {
    const names = part.map((factor) => factor.name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice) throw new Error(`${twice} is there twice in one product`);
    const explicit = names.filter((name) => EXPLICIT.includes(name)).length;
    const angular = names.some((name) => ANGULAR.includes(name));
    if (explicit + angular > 2) {
      throw new Error("at most two of intensity, shape and gradient angle in one product");
    }
    if (explicit && !data.preparations[preparation].standardise) {
      throw new Error("intensity and shape need the preparation 'standard'");
    }
  }
  const dims = parametrizationDims({ products });
  if (dims > data.most_dims) {
    throw new Error(`${dims} numbers per descriptor, at most ${data.most_dims}`);
  }
}

const factorText = ({ name, kappa, n }) =>
  name === "shape" ? name : name === "intensity" ? `${name}(${n})` : `${name}(${kappa},${n})`;

/** The text of a parametrization, as Python writes it. */
export function formatParametrization({ preparation, products }) {
  const text = products.map((part) => part.map(factorText).join("*")).join(" + ");
  return preparation === "paper" ? text : `${preparation}: ${text}`;
}

const factorDims = ({ name, n }) => (name === "shape" ? 9 : name === "intensity" ? n : 2 * n + 1);
const partDims = (part) => part.reduce((dims, factor) => dims * factorDims(factor), 1);

/** Length of the raw descriptor. */
export function parametrizationDims({ products }) {
  return products.reduce((sum, part) => sum + partDims(part), 0);
}

/** Whether a product looks at an attribute of this name. */
export const looksAt = (part, name) => part.some((factor) => factor.name === name);

/** Whether pixels of a product are weighted by their gradients. */
export const isWeighted = (part) =>
  part.some(({ name }) => ANGULAR.includes(name)) ||
  !part.some(({ name }) => EXPLICIT.includes(name));

/** What the response of each product is multiplied by when they are added up; as in Python. */
function partScales({ preparation, products }, data) {
  if (products.length === 1 || data.preparations[preparation].joint) return products.map(() => 1);
  const self = (part) =>
    part
      .filter(({ kappa }) => kappa)
      .reduce((value, { kappa, n }) => value * truncated(coefficients(kappa, n), 0), 1);
  return products.map((part) => 1 / products.length / self(part));
}

/**
 * Positions and what follows from them, for pixels at (x, y) in [-1, 1] with gradient angles.
 * The result has one array per attribute, as angles; intensity and shape are the caller's.
 */
export function attributeAngles(xs, ys, thetas, data) {
  const { x, y, rho, phi } = data.attributes;
  const values = { x: [], y: [], rho: [], phi: [], theta: thetas, relative_theta: [] };
  for (let i = 0; i < xs.length; i++) {
    const angle = Math.atan2(ys[i], xs[i]);
    values.x.push(x * xs[i]);
    values.y.push(y * ys[i]);
    values.rho.push((rho * Math.hypot(xs[i], ys[i])) / Math.SQRT2);
    values.phi.push(phi * angle);
    values.relative_theta.push(thetas[i] - angle);
  }
  return values;
}

/** The coordinate in [-1, 1] of pixel i (fractions allowed) of a side of `size` pixels. */
export const coordinate = (i, size) => (2 * i - (size - 1)) / (size - 1);

/** The nine features of second derivatives (l, d, e): strength times polynomials of direction. */
export function shapeFeatures(blob, ridge, saddle, data) {
  const strength = Math.sqrt(blob ** 2 + ridge ** 2 + saddle ** 2 + data.shape_epsilon);
  const [l, d, e] = [blob / strength, ridge / strength, saddle / strength];
  const polynomials = [1, l, d, e, l * l - 1 / 3, l * d, l * e, d * d - e * e, d * e];
  return polynomials.map((value) => Math.sqrt(strength) * value);
}

/** A function (values, i, out) that writes the features of pixel i under one factor. */
function featureWriter({ name, kappa, n }) {
  if (name === "shape") {
    return (values, i, out) => out.set(values.shape.slice(9 * i, 9 * i + 9));
  }
  if (name === "intensity") {
    return (values, i, out) => {
      out[0] = values.intensity[i];
      if (n > 1) out[1] = Math.abs(values.intensity[i]);
    };
  }
  const root = coefficients(kappa, n).map(Math.sqrt);
  return (values, i, out) => {
    const angle = values[name][i];
    out[0] = root[0];
    for (let k = 1; k <= n; k++) {
      out[k] = root[k] * Math.cos(k * angle);
      out[n + k] = root[k] * Math.sin(k * angle);
    }
  };
}

/** Factors in the order of the feature map: explicit, angular, then positions. */
function orderedFactors(part) {
  const rank = ({ name }) => (EXPLICIT.includes(name) ? 0 : ANGULAR.includes(name) ? 1 : 2);
  return [0, 1, 2].flatMap((wanted) => part.filter((factor) => rank(factor) === wanted));
}

/**
 * Feature maps of `count` pixels, a Float32Array of count x dims. Every product's features are
 * multiplied by its entry in `scales` (numbers, or arrays of one number per pixel).
 */
export function featureMaps({ products }, values, count, scales) {
  const dims = parametrizationDims({ products });
  const out = new Float32Array(count * dims);
  let start = 0;
  products.forEach((part, index) => {
    const factors = orderedFactors(part);
    const writers = factors.map(featureWriter);
    const buffers = factors.map((factor) => new Float64Array(factorDims(factor)));
    const size = partDims(part);
    const scale = scales[index];
    let [now, next] = [new Float64Array(size), new Float64Array(size)];
    for (let i = 0; i < count; i++) {
      now[0] = typeof scale === "number" ? scale : scale[i];
      let length = 1;
      for (let f = 0; f < factors.length; f++) {
        const features = buffers[f];
        writers[f](values, i, features);
        for (let a = 0; a < length; a++) {
          for (let b = 0; b < features.length; b++) {
            next[a * features.length + b] = now[a] * features[b];
          }
        }
        length *= features.length;
        [now, next] = [next, now];
      }
      const row = i * dims + start;
      for (let d = 0; d < size; d++) out[row + d] = now[d];
    }
    start += size;
  });
  return out;
}

/** A^T x for a matrix A of D rows and d columns, row by row. */
export function project(matrix, x, columns) {
  const y = new Float64Array(columns);
  for (let i = 0; i < x.length; i++) {
    const row = i * columns;
    for (let j = 0; j < columns; j++) y[j] += x[i] * matrix[row + j];
  }
  return y;
}

/** A y for the same matrix. */
export function unproject(matrix, y, rows) {
  const x = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    const row = i * y.length;
    for (let j = 0; j < y.length; j++) x[i] += matrix[row + j] * y[j];
  }
  return x;
}

/** Dot products of the rows of a (count x D) array with a vector of D numbers. */
export function dotRows(rows, vector) {
  const dims = vector.length;
  const out = new Float64Array(rows.length / dims);
  for (let i = 0, start = 0; i < out.length; i++, start += dims) {
    let sum = 0;
    for (let d = 0; d < dims; d++) sum += rows[start + d] * vector[d];
    out[i] = sum;
  }
  return out;
}

/**
 * Features of a pixel q at every position of a patch of `size` x `size`, row by row; the part of a
 * patch map that stays while p moves.
 * `look` is {theta, intensity, shape: [l, d, e]}.
 */
export function mapFeatures(parametrization, look, size, data) {
  const xs = Array.from({ length: size * size }, (_, i) => coordinate(i % size, size));
  const ys = xs.map((_, i) => coordinate(Math.floor(i / size), size));
  return placedFeatures(parametrization, look, xs, ys, data);
}

/** Features of a pixel that looks like `look`, at positions xs, ys in [-1, 1]. */
function placedFeatures(parametrization, look, xs, ys, data) {
  const values = attributeAngles(xs, ys, xs.map(() => look.theta), data);
  const shape = shapeFeatures(...look.shape, data);
  values.intensity = xs.map(() => look.intensity);
  values.shape = xs.flatMap(() => shape);
  const scales = partScales(parametrization, data).map(Math.sqrt);
  return featureMaps(parametrization, values, xs.length, scales);
}

/**
 * The patch map of a pixel p at (row, column): its similarity to q at every position.
 * `whitening` is null or {mean, matrix, dims}: the paper's formula without its constant term.
 */
export function patchMap(parametrization, row, column, look, features, size, whitening, data) {
  const [x, y] = [coordinate(column, size), coordinate(row, size)];
  const p = placedFeatures(parametrization, look, [x], [y], data);
  if (!whitening) return dotRows(features, p);
  const { mean, matrix, dims } = whitening;
  const here = project(matrix, p, dims);
  const middle = project(matrix, mean, dims);
  const shift = here.reduce((sum, value, j) => sum + value * middle[j], 0);
  const direction = unproject(matrix, here.map((value, j) => value - middle[j]), p.length);
  return dotRows(features, direction).map((value) => value - shift);
}
