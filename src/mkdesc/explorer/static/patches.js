// Patches: cutting and preparing them, their gradients, descriptors, similarity, and where it comes
// from. The same as mkdesc's preparation.py, gradients.py, compute/reference.py and
// visual/inspection.py.

import { SIZE } from "./constants.js";
import {
  attributeAngles,
  coordinate,
  dotRows,
  featureMaps,
  isWeighted,
  parametrizationDims,
  shapeFeatures,
} from "./kernels.js";
import { applyHead, norm } from "./heads.js";

/**
 * Cut a square out of a gray image {width, height, pixels}: bilinear, averaged where a pixel of the
 * patch is longer than one of the image; beyond the border its nearest pixel goes on.
 * The frame is {x, y: centre, side: in image pixels, angle: radians, clockwise}.
 */
export function cutSquare(image, { x, y, side, angle = 0 }, size) {
  const step = side / size;
  const samples = Math.max(1, Math.ceil(step - 1e-9));
  const [c, s] = [Math.cos(angle) * step, Math.sin(angle) * step];
  const out = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = 0;
      for (let k = 0; k < samples * samples; k++) {
        const u = j + ((k % samples) + 0.5) / samples - size / 2;
        const v = i + (Math.floor(k / samples) + 0.5) / samples - size / 2;
        sum += bilinear(image, x - 0.5 + c * u - s * v, y - 0.5 + s * u + c * v);
      }
      out[i * size + j] = sum / samples ** 2;
    }
  }
  return out;
}

function bilinear({ width, height, pixels }, x, y) {
  const cx = Math.min(Math.max(x, 0), width - 1);
  const cy = Math.min(Math.max(y, 0), height - 1);
  const [left, top] = [Math.floor(cx), Math.floor(cy)];
  const [right, low] = [Math.min(left + 1, width - 1), Math.min(top + 1, height - 1)];
  const [fx, fy] = [cx - left, cy - top];
  const upper = (1 - fx) * pixels[top * width + left] + fx * pixels[top * width + right];
  const lower = (1 - fx) * pixels[low * width + left] + fx * pixels[low * width + right];
  return (1 - fy) * upper + fy * lower;
}

const clamp = (i, size) => Math.min(Math.max(i, 0), size - 1);

/** Means over squares that bring a side of `size` to `side`. */
function reduced(patch, size, side) {
  const factor = size / side;
  const out = new Float64Array(side * side);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      const index = Math.floor(i / factor) * side + Math.floor(j / factor);
      out[index] += patch[i * size + j] / factor ** 2;
    }
  }
  return out;
}

/** Smooth along rows and transpose; twice is a two-dimensional smoothing. */
function smoothTransposed(image, size, taps) {
  const out = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = taps[0] * image[i * size + j];
      for (let k = 1; k < taps.length; k++) {
        const pair = image[i * size + clamp(j - k, size)] + image[i * size + clamp(j + k, size)];
        sum += taps[k] * pair;
      }
      out[j * size + i] = sum;
    }
  }
  return out;
}

/** Prepare a patch of gray values 0 .. 255; returns {image, size, scale still to be applied}. */
function preparePatch(patch, preparation) {
  const full = Math.sqrt(patch.length);
  const size = preparation.side ?? full;
  const sigma = preparation.side ? preparation.sigma : (preparation.sigma * full) / SIZE;
  const half = Array.from({ length: preparation.reach + 1 }, (_, k) =>
    Math.exp(-(k ** 2) / (2 * sigma ** 2)),
  );
  const total = 2 * half.reduce((a, b) => a + b) - half[0];
  const taps = half.map((tap) => tap / total);
  let image = size === full ? patch : reduced(patch, full, size);
  image = smoothTransposed(smoothTransposed(image, size, taps), size, taps);
  if (!preparation.standardise) return { image, size, scale: 1 / 255 };
  const mean = image.reduce((a, b) => a + b) / image.length;
  const deviation = Math.sqrt(image.reduce((a, b) => a + (b - mean) ** 2, 0) / image.length);
  const factor = 1 / (deviation + 255 * preparation.softening);
  return { image: image.map((value) => (value - mean) * factor), size, scale: 1 };
}

/** All that kernels look at in the pixels of a patch, and the weights of gradients and window. */
function pixelValues(patch, preparation, data) {
  const { image, size, scale } = preparePatch(patch, preparation);
  const at = (i, j) => image[clamp(i, size) * size + clamp(j, size)];
  const count = size * size;
  const [xs, ys, thetas] = [[], [], []];
  const weight = new Float64Array(count);
  const window = new Float64Array(count).fill(1);
  const intensity = new Float64Array(count);
  const shape = new Float64Array(9 * count);
  for (let n = 0; n < count; n++) {
    const [i, j] = [Math.floor(n / size), n % size];
    const gx = scale * (at(i, j - 1) - at(i, j + 1));
    const gy = scale * (at(i - 1, j) - at(i + 1, j));
    xs.push(coordinate(j, size));
    ys.push(coordinate(i, size));
    thetas.push(Math.hypot(gx, gy) > preparation.flat ? Math.atan2(gy, gx) : 0);
    const magnitude = Math.sqrt(gx ** 2 + gy ** 2 + preparation.epsilon_square);
    weight[n] = Math.sqrt(magnitude + preparation.epsilon);
    if (preparation.window) window[n] = Math.exp(-(xs[n] ** 2 + ys[n] ** 2) / 2);
    const here = at(i, j);
    intensity[n] = here / (1 + Math.abs(here));
    const xx = at(i, j - 1) - 2 * here + at(i, j + 1);
    const yy = at(i - 1, j) - 2 * here + at(i + 1, j);
    const diagonal = at(i - 1, j - 1) + at(i + 1, j + 1);
    const xy = (diagonal - at(i - 1, j + 1) - at(i + 1, j - 1)) / 4;
    shape.set(shapeFeatures(xx + yy, xx - yy, 2 * xy, data), 9 * n);
  }
  const values = { ...attributeAngles(xs, ys, thetas, data), intensity, shape };
  return { values, size, weight, window };
}

/**
 * What a patch is under a parametrization before any whitening: features of its pixels, weighted
 * (pixels x D), their normalised sum `raw`, `scale`, by which the sum became `raw`, and for every
 * product the `weights` of pixels and where its numbers `end`.
 */
export function rawDescription(patch, parametrization, data) {
  const preparation = data.preparations[parametrization.preparation];
  const { values, size, weight, window } = pixelValues(patch, preparation, data);
  const gradient = weight.map((value, i) => value * window[i]);
  const weights = parametrization.products.map((part) => (isWeighted(part) ? gradient : window));
  const features = featureMaps(parametrization, values, size * size, weights);
  const dims = parametrizationDims(parametrization);
  const raw = new Float64Array(dims);
  for (let i = 0; i < features.length; i += dims) {
    for (let d = 0; d < dims; d++) raw[d] += features[i + d];
  }
  const scale = new Float64Array(dims).fill(1);
  const normalise = (start, end) => {
    const length = norm(raw.subarray(start, end)) || 1;
    for (let d = start; d < end; d++) {
      raw[d] /= length;
      scale[d] /= length;
    }
  };
  const ends = parametrization.products.map((_, i) =>
    parametrizationDims({ products: parametrization.products.slice(0, i + 1) }),
  );
  if (!preparation.joint) ends.forEach((end, i) => normalise(ends[i - 1] ?? 0, end));
  normalise(0, dims);
  return { features, raw, scale, weights, ends };
}

/** The descriptor of a raw description under a model, or under none: see heads.js. */
export const whiten = ({ raw }, model) => applyHead(raw, model ? model.stages : []);

export const similarity = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/**
 * The share of every pixel of the first patch in the similarity of two; they add up to it. What
 * the mean of the whitening takes away is shared out by the weights of pixels, product by product.
 */
export function pixelShares(raw, described, other) {
  const { forward, constant } = described.pull(other.unit);
  const shares = dotRows(raw.features, forward.map((value, d) => value * raw.scale[d]));
  raw.weights.forEach((weights, i) => {
    const total = constant.subarray(raw.ends[i - 1] ?? 0, raw.ends[i]).reduce((a, b) => a + b, 0);
    const each = total / weights.reduce((a, b) => a + b);
    weights.forEach((weight, n) => (shares[n] += each * weight));
  });
  return shares;
}
