// One pixel: its patch map, and the kernels, whitening and looks that make it.

import { SIZE } from "./constants.js";
import {
  formatParametrization,
  looksAt,
  mapFeatures,
  parametrizationDims,
  patchMap,
  shapeFeatures,
} from "./kernels.js";
import { similarity } from "./patches.js";
import { SHAPE_NAMES, shapeDerivatives, shapeLevel, sphereDerivatives } from "./state.js";
import {
  SHAPE_DIRECTIONS,
  distinctKernels,
  drawCurves,
  drawLook,
  drawMap,
  drawShapes,
  rangeOf,
} from "./views.js";
import { element, showComposer, slider } from "./composer.js";
import {
  $,
  LABELS,
  alias,
  data,
  forget,
  memo,
  modelOf,
  piece,
  radians,
  state,
  update,
} from "./store.js";

const METHODS = {
  lw: "learned (lw)",
  gda: "learned (gda)",
  pca: "PCA",
  pcawt: "PCA, attenuated",
  pcaws: "PCA, shrunk",
};

function look(who) {
  return {
    theta: radians(state[`${who}t`]),
    intensity: state[`${who}z`],
    shape: shapeDerivatives(state[`${who}s`], state[`${who}d`]),
  };
}

/** Choose a parametrization; a whitening that was learned on another one is switched off. */
export function chooseKernel(text, more = {}) {
  const kernel = alias(text);
  const model = modelOf(state.w);
  const fits = model && alias(model.parametrization) === kernel;
  update({ k: kernel, w: fits ? state.w : "", ...more });
}

/** Choose a whitening, and the parametrization that it was learned on. */
export function chooseWhitening(name) {
  const model = modelOf(name);
  update(model ? { w: name, k: alias(model.parametrization) } : { w: "" });
}

export function showChoices(parametrization) {
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
  piece("looks", [parametrization.products.map((part) => part.map(({ name }) => name))], () => {
    const uses = usesOf(parametrization);
    for (const who of ["p", "q"]) $(`look-${who}`).replaceChildren(...lookControls(who, uses));
    $("look-note").textContent = uses.gradient
      ? "Angles point from bright to dark, clockwise from the right, as the arrows do."
      : "";
    forget("pictures", "lookValues");
  });
  piece("lookValues", ["p", "q"].map(lookKey), () => {
    /** @type {NodeListOf<HTMLInputElement>} */
    const inputs = document.querySelectorAll("[data-state]");
    for (const input of inputs) {
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
  const method = METHODS[model.method] ?? model.method ?? (model.linear ? "trained" : "trained, a hidden layer");
  return `${model.name}: ${method}, ${model.dims} dimensions`;
}

function whiteningNote(model) {
  if (!model) return "";
  if (!model.linear) {
    return "This model has a hidden layer, in which what a pixel adds depends on all others: the map shows its kernels without it. The patches below get all of it.";
  }
  const bent = model.stages.some(({ op }) => op === "power");
  return bent
    ? "The map shows the linear part of this whitening: a power or root acts on the sum over a whole patch, not on a pixel. The patches below get all of it."
    : "The map shows φ(p)ᵀAAᵀφ(q) with the mean taken off: how a pixel pair counts after the projection A.";
}

function usesOf({ products }) {
  const any = (...names) => products.some((part) => names.some((name) => looksAt(part, name)));
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

export function showMap(parametrization) {
  const qLook = lookKey("q");
  const features = piece("features", [state.k, qLook], () =>
    mapFeatures(parametrization, look("q"), SIZE, data),
  );
  const { x, y } = state;
  piece("map", [state.k, qLook, lookKey("p"), state.w, x, y], () => {
    const values = patchMap(parametrization, y, x, look("p"), features, SIZE, modelOf(state.w)?.linear ?? null, data);
    drawMap($("map"), values);
    const top = values.indexOf(Math.max(...values));
    const best = [top % SIZE, Math.floor(top / SIZE)];
    const at = (column, row) =>
      `translate(${(100 * column) / (SIZE - 1)}cqw, ${(100 * row) / (SIZE - 1)}cqh)`;
    $("cross").style.transform = at(x, y);
    $("best").style.transform = at(best[0], best[1]);
    const round = (value) => String(Number(value.toPrecision(3)));
    const [lowest, highest] = rangeOf(values);
    $("lowest").textContent = round(lowest);
    $("zero").hidden = !(lowest < 0 && highest > 0);
    $("zero").style.left = `${(-100 * lowest) / (highest - lowest)}%`;
    $("highest").textContent = round(values[top]);
    const place = `column ${x}, row ${y}`;
    $("reading").textContent =
      `p: ${place}; most similar: column ${best[0]}, row ${best[1]} (${round(values[top])})`;
    $("pad").setAttribute("aria-valuemax", String(SIZE * SIZE - 1));
    $("pad").setAttribute("aria-valuenow", String(Math.round(y) * SIZE + Math.round(x)));
    $("pad").setAttribute("aria-valuetext", place);
    $("python").textContent = pythonLine();
    return { values, best };
  });
}

function pythonLine() {
  const options = [`(${state.y}, ${state.x})`, JSON.stringify(state.k)];
  const uses = usesOf(memo.kernel.value);
  const number = (value) => String(Number(value.toFixed(4)));
  for (const who of ["p", "q"]) {
    const { theta, intensity, shape } = look(who);
    if (uses.gradient && theta) options.push(`${who}_theta=${number(theta)}`);
    if (uses.intensity) options.push(`${who}_intensity=${number(intensity)}`);
    if (uses.shape) options.push(`${who}_shape=(${shape.map(number).join(", ")})`);
  }
  const model = modelOf(state.w);
  if (model?.linear) options.push(`whitening=${JSON.stringify(model.kind === "file" ? "FILE" : model.name)}`);
  return `mkdesc.patch_map(${options.join(", ")})`;
}

export function showKernels(parametrization) {
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
