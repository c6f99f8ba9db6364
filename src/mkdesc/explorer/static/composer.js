// Composing a parametrization: products of kernels over attributes, with native controls.

import { COLOURS } from "./constants.js";
import { data } from "./store.js";
import { SYMBOLS, distinctKernels } from "./views.js";

const ATTRIBUTES = {
  x: "x, across",
  y: "y, down",
  rho: "ρ, radius",
  phi: "φ, polar angle",
  theta: "θ, gradient",
  relative_theta: "θ̃ = θ − φ",
  intensity: "intensity",
  shape: "local shape",
};
/** Steps of the kappa slider: quarters of an octave. */
const STEPS = { low: -8, high: 24, perOctave: 4 };
const MOST_N = 6;

const kappaOf = (step) => Number((2 ** (step / STEPS.perOctave)).toPrecision(3));
const stepOf = (kappa) => Math.round(Math.log2(kappa) * STEPS.perOctave);

/** A new element with attributes, properties and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A labelled slider with its value beside it; `show` turns the value into text. */
export function slider(text, { min, max, step, value, label }, show, onInput) {
  const output = element("output", { textContent: show(value) });
  const input = element("input", { type: "range", min, max, step, "aria-label": label ?? text });
  input.value = String(value);
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    onInput(Number(input.value));
  });
  return element("label", {}, element("span", { textContent: text }), input, output);
}

const structureOf = ({ preparation, products }) =>
  preparation + products.map((part) => part.map((factor) => factor.name).join("*")).join("+");

/** A factor of another attribute: its kernel is kept, or begins as the paper's. */
function renamed(factor, name) {
  if (name === "shape") return { name };
  if (name === "intensity") return { name, n: 2 };
  return { name, kappa: factor.kappa ?? 8, n: factor.kappa ? factor.n : 2 };
}

/**
 * Show the controls of a parametrization in a container; `onChange` gets a new parametrization.
 * Controls are made anew only when factors come or go, so that a slider keeps the focus.
 */
export function showComposer(container, parametrization, onChange) {
  container.current = parametrization;
  const structure = structureOf(parametrization);
  if (container.structure !== structure) {
    container.structure = structure;
    container.replaceChildren(...productRows(container, onChange));
  } else {
    for (const update of container.updates) update();
  }
  const kernels = distinctKernels(parametrization);
  container.querySelectorAll(".factor").forEach((row, i) => {
    const factor = parametrization.products.flat()[i];
    const index = kernels.findIndex(({ kappa, n }) => kappa === factor.kappa && n === factor.n);
    row.firstChild.style.background = index < 0 ? "transparent" : COLOURS.lines[index % COLOURS.lines.length];
  });
}

function productRows(container, onChange) {
  container.updates = [];
  const { products } = container.current;
  /** Replace one product; none left of it removes it. */
  const change = (index, part) => {
    const { preparation, products: old } = container.current;
    const next = old.map((other, i) => (i === index ? part : other)).filter((p) => p.length);
    const explicit = next.flat().some(({ kappa }) => !kappa);
    const fits = !explicit || data.preparations[preparation].standardise;
    if (next.length) onChange({ preparation: fits ? preparation : "standard", products: next });
  };
  const rows = products.map((part, index) => {
    const legend = products.length > 1 ? `Product ${index + 1}` : "Product of kernels";
    const add = element("button", { type: "button", textContent: "Add attribute" });
    add.addEventListener("click", () => {
      const now = container.current.products[index];
      const free = Object.keys(ATTRIBUTES).find((name) => now.every((f) => f.name !== name));
      if (free) change(index, [...now, renamed({}, free)]);
    });
    const factors = part.map((_, i) => factorRow(container, index, i, change));
    const buttons = element("div", { className: "composer-buttons" }, add);
    const title = element("legend", { textContent: legend });
    return element("fieldset", { className: "product" }, title, ...factors, buttons);
  });
  const more = element("button", { type: "button", textContent: "Add product" });
  more.addEventListener("click", () => {
    const { preparation, products: now } = container.current;
    const fresh = ["x", "y", "theta"].map((name) => renamed({}, name));
    onChange({ preparation, products: [...now, fresh] });
  });
  const label = ({ name, side, standardise }) =>
    standardise ? `${name}: ${side} px, contrast removed` : "as in the paper";
  const select = element(
    "select",
    { ariaLabel: "Preparation of patches" },
    ...Object.entries(data.preparations).map(([value, how]) => element("option", { value, text: label(how) })),
  );
  select.value = container.current.preparation;
  select.style.width = "auto";
  select.addEventListener("change", () =>
    onChange({ ...container.current, preparation: select.value }),
  );
  const prepared = element("label", { textContent: "Patches: " }, select);
  return [...rows, element("div", { className: "composer-buttons" }, more, prepared)];
}

function factorRow(container, index, i, change) {
  const factor = () => container.current.products[index][i];
  const replace = (next) =>
    change(
      index,
      container.current.products[index].map((other, j) => (j === i ? next : other)),
    );
  const name = SYMBOLS[factor().name];
  const select = element(
    "select",
    { ariaLabel: "Attribute" },
    ...Object.entries(ATTRIBUTES).map(([value, text]) => element("option", { value, text })),
  );
  select.value = factor().name;
  select.addEventListener("change", () => replace(renamed(factor(), select.value)));
  const remove = element("button", { type: "button", textContent: "×", ariaLabel: `Remove ${name}` });
  remove.addEventListener("click", () =>
    change(
      index,
      container.current.products[index].filter((_, j) => j !== i),
    ),
  );
  const swatch = element("span", { className: "swatch" });
  const row = element("div", { className: "factor" }, swatch, select);
  if (factor().kappa) {
    const kappa = slider(
      "κ",
      { min: STEPS.low, max: STEPS.high, step: 1, value: stepOf(factor().kappa), label: `κ of ${name}` },
      (step) => String(kappaOf(step)),
      (step) => replace({ ...factor(), kappa: kappaOf(step) }),
    );
    const n = slider(
      "N",
      { min: 0, max: MOST_N, step: 1, value: factor().n, label: `N of ${name}` },
      String,
      (value) => replace({ ...factor(), n: value }),
    );
    container.updates.push(() => {
      kappa.querySelector("input").value = String(stepOf(factor().kappa));
      n.querySelector("input").value = String(factor().n);
      kappa.querySelector("output").textContent = String(factor().kappa);
      n.querySelector("output").textContent = String(factor().n);
    });
    container.updates.at(-1)();
    row.append(kappa, n);
  } else if (factor().name === "intensity") {
    const n = slider(
      "N",
      { min: 1, max: 2, step: 1, value: factor().n, label: "features of intensity" },
      String,
      (value) => replace({ ...factor(), n: value }),
    );
    container.updates.push(() => {
      n.querySelector("input").value = String(factor().n);
      n.querySelector("output").textContent = String(factor().n);
    });
    row.append(element("span", { textContent: "N 1: z; 2: z and |z|", className: "hint note" }), n);
  } else {
    row.append(element("span", { className: "wide", textContent: "9 features of second derivatives" }));
  }
  row.append(remove);
  return row;
}
