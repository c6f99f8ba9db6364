// Two patches: what they are cut from, where they agree, and how similar they are.

import { SIZE } from "./constants.js";
import { parseParametrization } from "./kernels.js";
import { cutSquare, pixelShares, rawDescription, similarity, whiten } from "./patches.js";
import { drawPatch } from "./views.js";
import { decodeGray } from "./photo.js";
import { element } from "./composer.js";
import {
  $,
  LABELS,
  alias,
  atRest,
  complain,
  data,
  forget,
  memo,
  modelOf,
  piece,
  radians,
  redraw,
  state,
  update,
} from "./store.js";

const sources = new Map(); // what patches are cut from, by name
let photograph = null; // what squares are cut from

/** Begin with the bundled patches, and later describe them for the table. */
export function beginPatches() {
  for (const patch of data.patches) sources.set(patch.name, decodeGray(patch));
  const raw = Object.keys(data.named).map((kernel) => ({ kernel, size: sizeFor(kernel, null) }));
  const models = data.models.map((model) => ({ kernel: alias(model.parametrization), size: model.patch_size }));
  const choices = new Map([...raw, ...models].map((one) => [`${one.size} ${one.kernel}`, one]));
  setTimeout(() => describeOthers([...choices.values()], data.patches), 1000);
}

/** Cut squares from another photo, those that are shown too. */
export function changePhotograph(image) {
  for (const name of sources.keys()) if (name.startsWith("photo@")) sources.delete(name);
  photograph = image;
  forget("patch a", "patch b", "comparison", "choices", "patch selects");
}

/** Take a small square image as a patch. */
export function addPatch(name, image) {
  const side = image.width;
  sources.set(name, cutSource(image, { x: side / 2, y: side / 2, side }));
  forget("patch a", "patch b", "comparison", "choices", "patch selects");
}

/** What a patch is cut from, by the name in the state; the first patch if it is not known. */
function sourceOf(slot) {
  const name = state[slot];
  if (!sources.has(name)) {
    const [kind, frame] = name.split("@");
    const numbers = (frame ?? "").split(",").map(Number);
    const good = numbers.length === 3 && numbers.every(Number.isFinite) && numbers[2] > 0;
    if (kind === "photo" && photograph && good && numbers[2] <= 2048) {
      const [x, y, side] = numbers;
      sources.set(name, cutSource(photograph, { x, y, side }));
    } else {
      if (name) complain(`Patch ${slot.toUpperCase()}: ${name} is not here; it may come from a file.`);
      state[slot] = sources.has("eye") ? "eye" : "corner";
    }
  }
  return sources.get(state[slot]);
}

/** A patch with a margin around it, so that it can be turned and shifted. */
function cutSource(image, { x, y, side }) {
  const size = data.source_size;
  const pixels = cutSquare(image, { x, y, side: (side * size) / SIZE }, size);
  return { width: size, height: size, pixels };
}

/** A patch as it is compared, A as it is, B turned and shifted, at a number of pixels. */
function cut(slot, size) {
  const moved = slot === "b" ? state : { rot: 0, dx: 0, dy: 0 };
  const middle = data.source_size / 2;
  const frame = { x: middle - moved.dx, y: middle - moved.dy, side: SIZE };
  return cutSquare(sourceOf(slot), { ...frame, angle: radians(-moved.rot) }, size);
}

/** Patches as they are shown. */
export function patchOf(slot) {
  const moved = slot === "b" ? [state.rot, state.dx, state.dy] : [];
  return piece(`patch ${slot}`, [state[slot], ...moved], () => {
    raws[slot].clear();
    return cut(slot, SIZE);
  });
}

/** The side in pixels of the patches that a model, or kernels alone, describe. */
function sizeFor(kernel, model) {
  if (model) return model.patch_size;
  const { side } = data.preparations[parseParametrization(kernel, data).preparation];
  return side && SIZE % side ? side : SIZE;
}

const raws = { a: new Map(), b: new Map() }; // raw descriptions of the patches, by size and kernels

function rawOf(slot, kernel, size) {
  const shown = patchOf(slot);
  const key = `${size} ${kernel}`;
  if (!raws[slot].has(key)) {
    const patch = size === SIZE ? shown : cut(slot, size);
    raws[slot].set(key, rawDescription(patch, parseParametrization(kernel, data), data));
  }
  return raws[slot].get(key);
}

/** Similarity of the patches and the shares of their pixels, under the current choice. */
function compare(kernel, model) {
  const size = sizeFor(kernel, model);
  const [a, b] = [rawOf("a", kernel, size), rawOf("b", kernel, size)];
  const [x, y] = [whiten(a, model), whiten(b, model)];
  const shares = () => [pixelShares(a, x, y), pixelShares(b, y, x)];
  return { score: similarity(x.unit, y.unit), shares };
}

let tabulating = 0;

export function showPatches() {
  const patches = [patchOf("a"), patchOf("b")];
  const key = [state.a, state.b, state.rot, state.dx, state.dy];
  const shown = $("shares").checked;
  piece("patch selects", [sources.size, state.a, state.b], () => {
    for (const slot of ["a", "b"]) {
      const names = [...sources.keys()];
      const options = names.map((value) => element("option", { value, text: sourceLabel(value) }));
      $(`patch-${slot}`).replaceChildren(...options);
      $(`patch-${slot}`).value = state[slot];
    }
  });
  piece("comparison", [key, state.k, state.w, shown], () => {
    const { score, shares } = compare(state.k, modelOf(state.w));
    const [first, second] = shares();
    const largest = Math.max(...first.map(Math.abs), ...second.map(Math.abs)) || 1;
    drawPatch($("canvas-a"), patches[0], shown && first, largest);
    drawPatch($("canvas-b"), patches[1], shown && second, largest);
    $("canvas-a").setAttribute("aria-label", `Patch A: ${sourceLabel(state.a)}`);
    $("canvas-b").setAttribute("aria-label", `Patch B: ${sourceLabel(state.b)}`);
    $("score").replaceChildren("Similarity ", element("b", { textContent: score.toFixed(3) }));
    return { score, shares: [first, second], largest };
  });
  for (const name of ["rot", "dx", "dy"]) {
    $(name).value = String(state[name]);
    $(name).nextElementSibling.textContent = `${state[name]}${name === "rot" ? "°" : " px"}`;
  }
  // All choices at once take longer than a frame: they follow when things are at rest.
  if (memo.choices?.key !== JSON.stringify([key, state.k, state.w, data.models.length])) {
    clearTimeout(tabulating);
    tabulating = atRest(() => {
      piece("choices", [key, state.k, state.w, data.models.length], tabulate);
      document.body.dataset.tabulated = JSON.stringify(key);
    }, 150);
  }
}

function tabulate() {
  const named = Object.keys(LABELS).filter((kernel) => kernel in data.named);
  const choices = named.map((kernel) => ({ kernel, model: null }));
  for (const model of data.models) choices.push({ kernel: alias(model.parametrization), model });
  if (!choices.some(({ kernel, model }) => kernel === state.k && !model)) {
    choices.push({ kernel: state.k, model: null });
  }
  const rows = choices.map(({ kernel, model }) => {
    const { score } = compare(kernel, model);
    const button = element("button", { type: "button", textContent: choiceLabel(kernel, model) });
    button.addEventListener("click", () => update({ k: kernel, w: model?.name ?? "" }));
    const bar = element("div", { className: score < 0 ? "negative" : "" });
    bar.style.width = `${100 * Math.min(1, Math.abs(score))}%`;
    const track = element("span", {}, bar);
    const usual = similarityToOthers(kernel, model);
    if (usual !== null) {
      const notch = element("i", { title: `to other patches: ${usual.toFixed(3)}` });
      notch.style.left = `${100 * Math.max(0, usual)}%`;
      track.append(notch);
    }
    const current = kernel === state.k && (model?.name ?? "") === state.w;
    return element(
      "tr",
      { ariaCurrent: String(current) },
      element("th", { scope: "row" }, button),
      element("td", { className: "track" }, track),
      element("td", { className: "number", textContent: score.toFixed(3) }),
    );
  });
  $("choices").tBodies[0].replaceChildren(...rows);
}

function choiceLabel(kernel, model) {
  if (!model) return `${kernel in data.named ? kernel : "your own"}, raw`;
  const name = model.kind === "model" ? `model ${model.name}` : model.name;
  return model.patch_size === SIZE ? name : `${name} (${model.patch_size} px)`;
}

const others = new Map(); // raw descriptors of the bundled patches, by size and kernels

/** Describe the bundled patches one by one, when there is time. */
function describeOthers(choices, patches) {
  const [choice, ...rest] = choices;
  if (!choice) return;
  const { kernel, size } = choice;
  const key = `${size} ${kernel}`;
  if (!others.has(key)) others.set(key, []);
  const done = others.get(key);
  const { name } = patches[done.length];
  const frame = { x: data.source_size / 2, y: data.source_size / 2, side: SIZE };
  const patch = cutSquare(sources.get(name), frame, size);
  const { raw } = rawDescription(patch, parseParametrization(kernel, data), data);
  done.push({ name, raw });
  const next = done.length < patches.length ? choices : rest;
  if (next === rest) {
    forget("choices");
    redraw();
  }
  setTimeout(() => describeOthers(next, patches), 30);
}

/** Mean similarity of patch A to the bundled patches that are neither A nor B; null: not yet. */
function similarityToOthers(kernel, model) {
  const size = sizeFor(kernel, model);
  const done = others.get(`${size} ${kernel}`);
  if (done?.length !== data.patches.length) return null;
  const { unit } = whiten(rawOf("a", kernel, size), model);
  const different = done.filter(({ name }) => name !== state.a && name !== state.b);
  const scores = different.map((other) => similarity(unit, whiten(other, model).unit));
  return scores.reduce((a, b) => a + b, 0) / scores.length;
}

function sourceLabel(name) {
  const bundled = data.patches.find((patch) => patch.name === name);
  if (bundled) return bundled.label;
  return name.startsWith("photo@") ? `Cut at ${name.slice(6)}` : name;
}
