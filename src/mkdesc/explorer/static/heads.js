// Heads: what turns a raw descriptor into a descriptor, stage by stage, as mkdesc's heads/head.py; and model files.

import { parametrizationDims, parseParametrization, project, unproject } from "./kernels.js";

/** Bytes of a base64 text. */
export const decodeBytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** The number that 16 bits of half precision stand for. */
function half(bits) {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

/** The numbers in the bytes of a tensor: F32 or F16, the lowest byte first. */
function tensorNumbers(bytes, dtype) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === "F32") return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => half(view.getUint16(2 * i, true)));
}

/**
 * A model for the page: {name, kind, method, parametrization, patch_size, stages, dims, linear}, of what Python sent or
 * of what a file says. Every affine stage gets its numbers; `linear` is {mean, matrix, dims} if a projection is all there
 * is to the head besides powers and norms, which is what patch maps can show; null if not.
 */
function withStages(about, operations, numbersOf) {
  const stages = operations.map((operation) => {
    if (operation.op !== "affine") return operation;
    const [rows, columns] = operation.dims;
    const numbers = (name, length) => (name === null ? new Float32Array(length) : numbersOf(name));
    return {
      op: "affine",
      rows,
      columns,
      matrix: numbers(operation.matrix, rows * columns),
      centre: numbers(operation.centre, rows),
      offset: numbers(operation.offset, columns),
    };
  });
  const affine = stages.filter(({ op }) => op === "affine");
  const linear = affine.length === 1 && stages.every(({ op }) => op !== "relu");
  const { matrix, centre: mean } = affine[0];
  const dims = affine.at(-1).columns;
  return { ...about, stages, dims, linear: linear ? { mean, matrix, dims } : null };
}

/** A model as Python sends it. */
export function decodeModel({ head, tensors, ...about }) {
  return withStages(about, head, (name) => tensorNumbers(decodeBytes(tensors[name].data), tensors[name].dtype));
}

const isCount = (value) => Number.isInteger(value) && value > 0;

/** Throw an Error unless operations make a head of `dims` numbers whose tensors are all there. */
function checkHead(operations, dims, header) {
  const expect = (good, what) => {
    if (!good) throw new Error(`its head is not one: ${what}`);
  };
  expect(Array.isArray(operations) && operations.length <= 64, "expected a list of operations");
  let now = dims;
  let count = 0;
  for (const operation of operations) {
    const { op } = operation ?? {};
    if (op === "power") expect(operation.exponent > 0 && operation.exponent <= 1, "power");
    else if (op === "relu") expect(Number.isInteger(operation.start) && operation.start >= 0 && operation.start < now, "relu");
    else if (op === "affine") {
      const [rows, columns] = Array.isArray(operation.dims) ? operation.dims : [];
      expect(rows === now && isCount(columns), `${rows} numbers follow ${now}`);
      const shapes = { matrix: [rows, columns], centre: [rows], offset: [columns] };
      for (const [field, shape] of Object.entries(shapes)) {
        const name = operation[field];
        if (name === null && field !== "matrix") continue;
        expect(typeof name === "string" && Object.hasOwn(header, name), `${field} is missing`);
        expect(JSON.stringify(header[name].shape) === JSON.stringify(shape), `shape of ${field}`);
      }
      now = columns;
      count += 1;
    } else expect(op === "l2", String(op));
  }
  expect(count > 0 && operations.at(-1).op === "l2", "expected a projection, and l2 in the end");
}

/** The bytes of a tensor of a safetensors file, checked to be in it. */
function tensorBytes({ dtype, shape, data_offsets: offsets }, body) {
  const width = { F32: 4, F16: 2 }[dtype];
  const [start, end] = Array.isArray(offsets) ? offsets : [];
  const length = shape.reduce((product, value) => product * value, width ?? NaN);
  if (!(start >= 0 && end - start === length && end <= body.length)) throw new Error("its tensors are not whole");
  return body.subarray(start, end);
}

/**
 * Read a model file of mkdesc, schema 2, in the browser itself: every size is checked, the fingerprint is not.
 * Throws an Error that says what is wrong.
 */
export function readModelFile(buffer, data) {
  const unknown = new Error("expected a model file of mkdesc (safetensors)");
  if (buffer.byteLength < 8) throw unknown;
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (!(length > 0 && length <= buffer.byteLength - 8)) throw unknown;
  let header, card;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    card = JSON.parse(header.__metadata__.mkdesc);
  } catch {
    throw unknown;
  }
  if (card?.schema !== 2) throw new Error("expected a model file of schema 2; `mkdesc explore` opens older ones");
  const { parametrization, patch_size: size, method } = card;
  const kernels = parseParametrization(String(parametrization), data);
  const known = Object.entries(data.preparations[kernels.preparation]).filter(([name]) => name !== "name");
  const differs = known.some(([name, value]) => card.preparation?.[name] !== value);
  if (differs) throw new Error("its patches are prepared in another way");
  if (!isCount(size) || size < data.patch_sizes[0] || size > data.patch_sizes[1]) {
    throw new Error(`expected patches of ${data.patch_sizes.join(" to ")} px, got ${size}`);
  }
  checkHead(card.head, parametrizationDims(kernels), header);
  const body = new Uint8Array(buffer, 8 + length);
  const about = { name: "", kind: "file", method, parametrization, patch_size: size };
  return withStages(about, card.head, (name) => {
    const numbers = tensorNumbers(tensorBytes(header[name], body), header[name].dtype);
    if (!numbers.every(Number.isFinite)) throw new Error("its tensors have NaN or infinity");
    return numbers;
  });
}

export const norm = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value ** 2, 0));

/** One stage, applied to a vector. */
function applied(stage, x) {
  if (stage.op === "power") return x.map((value) => Math.sign(value) * Math.abs(value) ** stage.exponent);
  if (stage.op === "relu") return x.map((value, i) => (i < stage.start ? value : Math.max(value, 0)));
  if (stage.op === "affine") {
    const centred = x.map((value, i) => value - stage.centre[i]);
    return project(stage.matrix, centred, stage.columns).map((value, j) => value + stage.offset[j]);
  }
  const length = norm(x) || 1;
  return x.map((value) => value / length);
}

/**
 * The descriptor of a raw one: `unit`, and `pull`, which says for another descriptor what the dot product with it is in
 * terms of the raw one: raw . forward + the sum of `constant`. All stages but projections multiply every number by a
 * factor, and these factors are taken as they are; as in Python's visual/inspection.py.
 */
export function applyHead(raw, stages) {
  const points = [raw];
  for (const stage of stages) points.push(applied(stage, points.at(-1)));
  const pull = (other) => {
    let forward = other;
    let constant = new Float64Array(other.length);
    for (let s = stages.length - 1; s >= 0; s--) {
      const stage = stages[s];
      const [x, y] = [points[s], points[s + 1]];
      if (stage.op === "affine") {
        const back = unproject(stage.matrix, forward, stage.rows);
        let rest = constant.reduce((a, b) => a + b, 0);
        forward.forEach((value, j) => (rest += stage.offset[j] * value));
        constant = back.map((value, i) => rest / stage.rows - stage.centre[i] * value);
        forward = back;
      } else {
        forward = forward.map((value, i) => (x[i] ? (value * y[i]) / x[i] : 0));
      }
    }
    return { forward, constant };
  };
  return { unit: points.at(-1), pull };
}
