// The page: what is shown follows from one state, piece by piece.

import {
  formatParametrization,
  looksAt,
  mapFeatures,
  parametrizationDims,
  parseParametrization,
  patchMap,
  shapeFeatures,
} from "./kernels.js";
import { cutSquare, pixelShares, rawDescription, similarity, whiten } from "./patches.js";
import {
  PRESETS,
  SHAPE_NAMES,
  defaultState,
  readState,
  shapeDerivatives,
  shapeLevel,
  sphereDerivatives,
  writeState,
} from "./state.js";
import {
  SHAPE_DIRECTIONS,
  SIZE,
  distinctKernels,
  drawCurves,
  drawLook,
  drawMap,
  drawPatch,
  drawShapes,
  saveMap,
  savePatches,
} from "./views.js";
import { PhotoView, decodeBytes, decodeGray, readLocalImage } from "./photo.js";
import { element, showComposer, slider } from "./composer.js";

const $ = (id) => document.getElementById(id);
const LABELS = {
  polar: "Polar, relative angle: φ ρ θ̃",
  "polar-absolute": "Polar, absolute angle: φ ρ θ",
  cartesian: "Cartesian: x y θ",
  "cartesian-relative": "Cartesian, relative angle: x y θ̃",
  "polar+cartesian": "Polar + cartesian (the paper)",
  extended: "Extended: gradient, intensity, shape",
  "standard: x(8,2)*y(8,2)*intensity(2)": "Intensity planes alone",
  "standard: x(8,2)*y(8,2)*shape": "Shape planes alone",
};
const METHODS = { lw: "learned (lw)", gda: "learned (gda)", pca: "PCA", pcawt: "PCA, attenuated", pcaws: "PCA, shrunk" };

let data;
let state;
let photo;
let served;
const sources = new Map(); // what patches are cut from, by name
const memo = {};

/** Run `make` again only if what it depends on has changed. */
function piece(name, dependencies, make) {
  const key = JSON.stringify(dependencies);
  if (memo[name]?.key !== key) memo[name] = { key, value: make() };
  return memo[name].value;
}

let scheduled = false;
let saving = 0;

/** Show the state in the next frame. */
function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    show();
  });
}

/** Change the state, show it, and note it in the address once things are at rest. */
function update(changes) {
  Object.assign(state, changes);
  redraw();
  clearTimeout(saving);
  saving = setTimeout(() => {
    const hash = writeState(state);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }, 200);
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

/** The short name of a parametrization if it has one. */
function alias(text) {
  return Object.keys(data.named).find((name) => data.named[name] === text) ?? text;
}

const modelOf = (name) => data.models.find((model) => model.name === name) ?? null;
const radians = (degrees) => (degrees * Math.PI) / 180;

function look(who) {
  return {
    theta: radians(state[`${who}t`]),
    intensity: state[`${who}z`],
    shape: shapeDerivatives(state[`${who}s`], state[`${who}d`]),
  };
}

/** Choose a parametrization; a whitening that was learned on another one is switched off. */
function chooseKernel(text, more = {}) {
  const kernel = alias(text);
  const model = modelOf(state.w);
  const fits = model && alias(model.parametrization) === kernel;
  update({ k: kernel, w: fits ? state.w : "", ...more });
}

function chooseWhitening(name) {
  const model = modelOf(name);
  update(model ? { w: name, k: alias(model.parametrization) } : { w: "" });
}

function readParametrization() {
  try {
    const parametrization = parseParametrization(state.k, data);
    complain("");
    return parametrization;
  } catch (error) {
    complain(`Parametrization: ${error.message}.`);
    state.k = memo.kernel?.value ? alias(formatParametrization(memo.kernel.value)) : "polar";
    return parseParametrization(state.k, data);
  }
}

function show() {
  const parametrization = piece("kernel", [state.k], readParametrization);
  const model = modelOf(state.w);
  if (state.w && (!model || alias(model.parametrization) !== state.k)) {
    complain(model ? "" : `There is no whitening ${state.w} here; it may come from a file.`);
    state.w = "";
  }
  showChoices(parametrization);
  showMap(parametrization);
  showKernels(parametrization);
  showPatches(parametrization);
  document.body.dataset.ready = "true";
}

function showChoices(parametrization) {
  piece("presets", [state.see], () => {
    for (const button of $("presets").children) {
      button.setAttribute("aria-pressed", String(button.dataset.id === state.see));
    }
    $("lesson").textContent = PRESETS.find(({ id }) => id === state.see)?.text ?? "";
  });
  piece("selects", [state.k, state.w, data.models.length], () => {
    const kernel = $("kernel");
    kernel.replaceChildren(
      ...Object.entries(LABELS).map(([value, text]) => element("option", { value, text })),
    );
    if (!(state.k in LABELS)) {
      kernel.append(element("option", { value: state.k, text: "Your own (below)" }));
    }
    kernel.value = state.k;
    const option = (m) => element("option", { value: m.name, text: modelLabel(m) });
    const fitting = data.models.filter((m) => alias(m.parametrization) === state.k);
    const others = data.models.filter((m) => !fitting.includes(m));
    const groups = [element("option", { value: "", text: "none" })];
    if (fitting.length) {
      groups.push(element("optgroup", { label: "For these kernels" }, ...fitting.map(option)));
    }
    groups.push(element("optgroup", { label: "With their own kernels" }, ...others.map(option)));
    $("whitening").replaceChildren(...groups);
    $("whitening").value = state.w;
    $("whitening-note").textContent = whiteningNote(modelOf(state.w));
  });
  piece("looks", [parametrization.parts.map((part) => part.map(({ name }) => name))], () => {
    const uses = usesOf(parametrization);
    for (const who of ["p", "q"]) $(`look-${who}`).replaceChildren(...lookControls(who, uses));
    $("look-note").textContent = uses.gradient
      ? "Angles point from bright to dark, clockwise from the right, as the arrows do."
      : "";
    memo.pictures = undefined;
    memo.lookValues = undefined;
  });
  piece("lookValues", ["p", "q"].map(lookKey), () => {
    for (const input of document.querySelectorAll("[data-state]")) {
      const value = String(state[input.dataset.state]);
      if (input.value !== value) {
        input.value = value;
        const output = input.parentElement.querySelector("output");
        if (output) output.textContent = input.dataset.suffix ? value + input.dataset.suffix : value;
      }
    }
  });
  piece("pictures", ["p", "q"].map(lookKey), () => {
    for (const who of ["p", "q"]) {
      const canvas = $(`look-${who}`).querySelector("canvas");
      drawLook(canvas, look(who), usesOf(parametrization));
    }
  });
}

const lookKey = (who) => ["t", "z", "s", "d"].map((name) => state[who + name]);

function modelLabel(model) {
  const method = METHODS[model.method] ?? model.method;
  return `${model.name}: ${method}, ${model.dims} dimensions`;
}

function whiteningNote(model) {
  if (!model) return "";
  const bent = model.power !== 1 || model.square_root;
  return bent
    ? "The map shows the linear part of this whitening: a power or root acts on the sum over a whole patch, not on a pixel. The patches below get all of it."
    : "The map shows φ(p)ᵀAAᵀφ(q) with the mean taken off: how a pixel pair counts after the projection A.";
}

function usesOf({ parts }) {
  const any = (...names) => parts.some((part) => names.some((name) => looksAt(part, name)));
  return {
    gradient: any("theta", "relative_theta"),
    intensity: any("intensity"),
    shape: any("shape"),
  };
}

/** The picture and the controls of what a pixel looks like. */
function lookControls(who, uses) {
  const rows = element("div", { className: "rows" });
  const add = (name, text, range, suffix) => {
    const label = slider(
      text,
      { ...range, value: state[name], label: `${text} of ${who}` },
      (value) => `${value}${suffix}`,
      (value) => update({ [name]: value }),
    );
    Object.assign(label.querySelector("input").dataset, { state: name, suffix });
    rows.append(label);
  };
  if (uses.gradient) add(`${who}t`, "angle θ", { min: -180, max: 180, step: 2.5 }, "°");
  if (uses.intensity) add(`${who}z`, "intensity", { min: -0.95, max: 0.95, step: 0.05 }, "");
  if (uses.shape) {
    const select = element(
      "select",
      { ariaLabel: `shape of ${who}` },
      ...SHAPE_NAMES.map((name) => element("option", { value: name, text: name })),
    );
    select.dataset.state = `${who}s`;
    select.value = state[`${who}s`];
    select.addEventListener("change", () => update({ [`${who}s`]: select.value }));
    rows.append(element("label", {}, element("span", { textContent: "shape" }), select));
    add(`${who}d`, "direction", { min: 0, max: 180, step: 5 }, "°");
  }
  if (!rows.children.length) rows.append(element("span", { className: "hint", textContent: "position alone" }));
  const picture = element("canvas", { className: "look-picture", role: "img" });
  picture.setAttribute("aria-label", `what ${who} looks like`);
  return [picture, rows];
}

function currentMap() {
  return memo.map.value;
}

function showMap(parametrization) {
  const qLook = lookKey("q");
  const features = piece("features", [state.k, qLook], () =>
    mapFeatures(parametrization, look("q"), SIZE, data),
  );
  const { x, y } = state;
  piece("map", [state.k, qLook, lookKey("p"), state.w, x, y], () => {
    const values = patchMap(parametrization, y, x, look("p"), features, SIZE, modelOf(state.w), data);
    drawMap($("map"), values);
    const top = values.indexOf(Math.max(...values));
    const best = [top % SIZE, Math.floor(top / SIZE)];
    const at = ([column, row]) =>
      `translate(${(100 * column) / (SIZE - 1)}cqw, ${(100 * row) / (SIZE - 1)}cqh)`;
    $("cross").style.transform = at([x, y]);
    $("best").style.transform = at(best);
    const round = (value) => value.toPrecision(3);
    $("lowest").textContent = round(Math.min(...values));
    $("highest").textContent = round(values[top]);
    const place = `column ${x}, row ${y}`;
    $("reading").textContent =
      `p: ${place}; most similar: column ${best[0]}, row ${best[1]} (${round(values[top])})`;
    $("pad").setAttribute("aria-valuenow", String(Math.round(y) * SIZE + Math.round(x)));
    $("pad").setAttribute("aria-valuetext", place);
    $("python").textContent = pythonLine();
    return { values, best };
  });
}

function pythonLine() {
  const parts = [`(${state.y}, ${state.x})`, JSON.stringify(state.k)];
  const uses = usesOf(memo.kernel.value);
  const number = (value) => String(Number(value.toFixed(4)));
  for (const who of ["p", "q"]) {
    const { theta, intensity, shape } = look(who);
    if (uses.gradient && theta) parts.push(`${who}_theta=${number(theta)}`);
    if (uses.intensity) parts.push(`${who}_intensity=${number(intensity)}`);
    if (uses.shape) parts.push(`${who}_shape=(${shape.map(number).join(", ")})`);
  }
  const model = modelOf(state.w);
  if (model) parts.push(`whitening=${JSON.stringify(model.kind === "file" ? "FILE" : model.name)}`);
  return `mkdesc.patch_map(${parts.join(", ")})`;
}

function showKernels(parametrization) {
  piece("composer", [state.k], () => {
    showComposer($("composer"), parametrization, (next) =>
      chooseKernel(formatParametrization(next)),
    );
    const kernels = distinctKernels(parametrization);
    $("curves").hidden = $("curves-note").hidden = kernels.length === 0;
    if (kernels.length) drawCurves($("curves"), kernels);
    const dims = parametrizationDims(parametrization);
    $("dims").textContent = `A descriptor of ${dims} numbers: ${formatParametrization(parametrization)}`;
  });
  const { shape } = usesOf(parametrization);
  $("shape-view").hidden = !shape;
  if (shape) {
    piece("shapes", [state.ps, state.pd, state.qs, state.qd, $("shape-map").clientWidth], () => {
      const [width, height] = [41, 33];
      const [first, last] = SHAPE_DIRECTIONS;
      const p = shapeFeatures(...shapeDerivatives(state.ps, state.pd), data);
      const values = Float64Array.from({ length: width * height }, (_, i) => {
        const level = -1 + (2 * Math.floor(i / width)) / (height - 1);
        const direction = first + ((last - first) * (i % width)) / (width - 1);
        const derivatives = sphereDerivatives(level, direction);
        return similarity(p, shapeFeatures(...derivatives, data));
      });
      const place = (who) => ({ direction: state[`${who}d`], level: shapeLevel(state[`${who}s`]) });
      drawShapes($("shape-map"), values, width, place("p"), place("q"));
    });
  }
}

/** What a patch is cut from, by the name in the state; the first patch if it is not known. */
function sourceOf(slot) {
  const name = state[slot];
  if (!sources.has(name)) {
    const [kind, frame] = name.split("@");
    const numbers = (frame ?? "").split(",").map(Number);
    const good = numbers.length === 3 && numbers.every(Number.isFinite) && numbers[2] > 0;
    if (kind === "photo" && photo.image && good && numbers[2] <= 2048) {
      const [x, y, side] = numbers;
      sources.set(name, cutSource(photo.image, { x, y, side }));
    } else {
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

/** Patches as they are compared: A as it is, B turned and shifted. */
function patchOf(slot) {
  const moved = slot === "b" ? state : { rot: 0, dx: 0, dy: 0 };
  const middle = data.source_size / 2;
  return piece(`patch ${slot}`, [state[slot], moved.rot, moved.dx, moved.dy], () => {
    const source = sourceOf(slot);
    raws[slot].clear();
    const frame = { x: middle - moved.dx, y: middle - moved.dy, side: SIZE };
    return cutSquare(source, { ...frame, angle: radians(-moved.rot) }, SIZE);
  });
}

const raws = { a: new Map(), b: new Map() }; // raw descriptions of the patches, by parametrization

function rawOf(slot, kernel) {
  const patch = patchOf(slot);
  if (!raws[slot].has(kernel)) {
    raws[slot].set(kernel, rawDescription(patch, parseParametrization(kernel, data), data));
  }
  return raws[slot].get(kernel);
}

/** Similarity of the patches and the shares of their pixels, under the current choice. */
function compare(kernel, model) {
  const [a, b] = [rawOf("a", kernel), rawOf("b", kernel)];
  const [x, y] = [whiten(a, model), whiten(b, model)];
  const shares = () => [pixelShares(a, x, y, model), pixelShares(b, y, x, model)];
  return { score: similarity(x.unit, y.unit), shares };
}

let tabulating = 0;

function showPatches() {
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
    tabulating = setTimeout(() => {
      piece("choices", [key, state.k, state.w, data.models.length], tabulate);
      document.body.dataset.tabulated = JSON.stringify(key);
    }, 150);
  }
}

function tabulate() {
  const choices = Object.keys(data.named).map((kernel) => ({ kernel, model: null }));
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
  return model.kind === "model" ? `model ${model.name}` : model.name;
}

const others = new Map(); // raw descriptors of the bundled patches, by parametrization

/** Describe the bundled patches one by one, when there is time. */
function describeOthers(kernels, patches) {
  const [kernel, ...rest] = kernels;
  if (!kernel) return;
  if (!others.has(kernel)) others.set(kernel, []);
  const done = others.get(kernel);
  const { name } = patches[done.length];
  const frame = { x: data.source_size / 2, y: data.source_size / 2, side: SIZE };
  const patch = cutSquare(sources.get(name), frame, SIZE);
  const { raw, scale } = rawDescription(patch, parseParametrization(kernel, data), data);
  done.push({ name, raw, scale });
  const next = done.length < patches.length ? kernels : rest;
  if (next === rest) {
    memo.choices = undefined;
    redraw();
  }
  setTimeout(() => describeOthers(next, patches), 30);
}

/** Mean similarity of patch A to the bundled patches that are neither A nor B; null: not yet. */
function similarityToOthers(kernel, model) {
  const done = others.get(kernel);
  if (done?.length !== data.patches.length) return null;
  const { unit } = whiten(rawOf("a", kernel), model);
  const different = done.filter(({ name }) => name !== state.a && name !== state.b);
  const scores = different.map((other) => similarity(unit, whiten(other, model).unit));
  return scores.reduce((a, b) => a + b, 0) / scores.length;
}

function sourceLabel(name) {
  const bundled = data.patches.find((patch) => patch.name === name);
  if (bundled) return bundled.label;
  return name.startsWith("photo@") ? `Cut at ${name.slice(6)}` : name;
}

/** Send a file to the server; an Error with its one line if it is refused. */
async function send(where, file) {
  const answer = await fetch(where, { method: "POST", body: file });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

async function openImage(file) {
  const image = served ? decodeGray(await send("api/image", file)) : await readLocalImage(file);
  if (image.width === image.height && image.width <= 128) {
    const side = image.width;
    const name = file.name.slice(0, 60);
    sources.set(name, cutSource(image, { x: side / 2, y: side / 2, side }));
    raws[chosenSlot()].clear();
    memo[`patch ${chosenSlot()}`] = undefined;
    memo.comparison = memo.choices = undefined;
    update({ [chosenSlot()]: name });
    return;
  }
  // Squares of the photo before are gone with it.
  for (const name of sources.keys()) if (name.startsWith("photo@")) sources.delete(name);
  memo["patch selects"] = undefined;
  showPhoto(image);
  update({});
}

async function openModel(file) {
  const models = await send("api/model", file);
  for (const model of models) {
    const own = file.name.replace(/\.safetensors$/, "").slice(0, 60);
    const name = models.length > 1 ? `${own} ${model.name}` : own;
    const taken = data.models.findIndex((other) => other.name === name);
    if (taken >= 0 && data.models[taken].kind !== "file") throw new Error(`${name} is the name of a bundled one`);
    if (taken >= 0) data.models.splice(taken, 1);
    data.models.push(decodeModel({ ...model, name }));
  }
  memo.selects = memo.choices = memo.map = memo.comparison = undefined;
  chooseWhitening(data.models.at(-models.length).name);
}

function decodeModel(model) {
  const numbers = (text) => new Float32Array(decodeBytes(text).buffer);
  return { ...model, mean: numbers(model.mean), matrix: numbers(model.matrix) };
}

const chosenSlot = () => document.querySelector("[name=slot]:checked").value;

function showPhoto(image) {
  $("photo-view").hidden = !image;
  $("photo-hint").textContent = image
    ? "Click where to cut, or move the square with the arrow keys and press Enter. A small square image becomes a patch itself."
    : "Open a photo to cut patches from it; a small square image becomes a patch itself.";
  if (image) photo.show(image);
}

function listen() {
  for (const { id, title, state: shown, goto } of PRESETS) {
    const button = element("button", { type: "button", textContent: title });
    button.dataset.id = id;
    button.addEventListener("click", () => {
      const { a, b } = state;
      update({ ...defaultState(), a, b, ...shown, see: id });
      if (goto) $(goto).scrollIntoView({ behavior: "smooth" });
    });
    $("presets").append(button);
  }
  $("kernel").addEventListener("change", (event) => chooseKernel(event.target.value));
  $("whitening").addEventListener("change", (event) => chooseWhitening(event.target.value));
  for (const slot of ["a", "b"]) {
    $(`patch-${slot}`).addEventListener("change", (event) => update({ [slot]: event.target.value }));
  }
  for (const name of ["rot", "dx", "dy"]) {
    $(name).addEventListener("input", () => update({ [name]: Number($(name).value) }));
  }
  $("shares").addEventListener("change", redraw);
  const pad = $("pad");
  const follow = (event) => {
    const box = pad.getBoundingClientRect();
    const pixel = (part) => Math.round(Math.min(Math.max(part, 0), 1) * (SIZE - 1) * 2) / 2;
    update({
      x: pixel((event.clientX - box.left) / box.width),
      y: pixel((event.clientY - box.top) / box.height),
    });
  };
  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    follow(event);
  });
  pad.addEventListener("pointermove", (event) => {
    if (pad.hasPointerCapture(event.pointerId)) follow(event);
  });
  pad.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 8 : 1;
    const limit = (value) => Math.min(Math.max(value, 0), SIZE - 1);
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (event.key === "Home") update({ x: (SIZE - 1) / 2, y: (SIZE - 1) / 2 });
    else if (move) update({ x: limit(state.x + step * move[0]), y: limit(state.y + step * move[1]) });
    else return;
    event.preventDefault();
  });
  const file = (id, kind, open) =>
    $(id).addEventListener("change", async (event) => {
      const [chosen] = event.target.files;
      if (!chosen) return;
      complain("");
      const most = data.most_bytes[kind];
      try {
        if (chosen.size > most) throw new Error(`too large: at most ${most / 1e6} MB`);
        await open(chosen);
      } catch (error) {
        complain(`${chosen.name}: ${error.message}`);
      }
      event.target.value = "";
    });
  file("image-file", "image", openImage);
  file("model-file", "model", openModel);
  $("side").addEventListener("input", () => photo.place({ side: Number($("side").value) }));
  const where = () => `${state.k}${state.w ? `, ${state.w}` : ""}`;
  $("save-map").addEventListener("click", () => {
    const { values, best } = currentMap();
    const kernels = distinctKernels(memo.kernel.value);
    const angles = `θ of p ${state.pt}°, of q ${state.qt}°`;
    saveMap(values, state, best, kernels, `Patch map: ${where()}; ${angles}`);
  });
  $("save-patches").addEventListener("click", () => {
    const { score, shares, largest } = memo.comparison.value;
    const patches = [patchOf("a"), patchOf("b")];
    savePatches(patches, shares, largest, `Similarity ${score.toFixed(3)}: ${where()}`);
  });
  addEventListener("hashchange", () => {
    Object.assign(state, readState(location.hash));
    state.k = alias(state.k);
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const name of ["map", "composer", "shapes"]) memo[name] = undefined;
    redraw();
  });
}

async function begin() {
  const inline = $("data");
  served = !inline;
  data = inline ? JSON.parse(inline.textContent) : await (await fetch("data.json")).json();
  data.models = data.models.map(decodeModel);
  for (const patch of data.patches) sources.set(patch.name, decodeGray(patch));
  $("version").textContent = data.version;
  $("model-label").hidden = !served; // the server checks model files
  $("shares").checked = true;
  photo = new PhotoView($("photo"), ({ x, y, side }) => {
    update({ [chosenSlot()]: `photo@${x},${y},${side}` });
  });
  $("side").value = "72";
  showPhoto(data.photo && decodeGray(data.photo));
  state = readState(location.hash);
  state.k = alias(state.k);
  $("compose").open = !matchMedia("(max-width: 34rem)").matches;
  listen();
  show();
  setTimeout(() => describeOthers(Object.keys(data.named), data.patches), 1000);
}

begin().catch((error) => complain(`The page could not start: ${error.message}`));
