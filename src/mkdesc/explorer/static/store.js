// What all parts of the page share: its data, its state, and how a change of it becomes visible.

import { writeState } from "./state.js";

/** The element of an id; of which kind it is, index.html says. */
export const $ = (id) => /** @type {any} */ (document.getElementById(id));

/** What Python handed over, once it is there. */
export let data;
/** What is shown; see state.js. */
export let state;
/** Results of pieces of the page, with what they depend on. */
export const memo = {};

let showAll;
let scheduled = false;
let saving = 0;

/** Begin with data, a state and the function that shows it. */
export function beginWith(theData, theState, showIt) {
  [data, state, showAll] = [theData, theState, showIt];
  state.k = alias(state.k);
}

/** Run `make` again only if what it depends on has changed. */
export function piece(name, dependencies, make) {
  const key = JSON.stringify(dependencies);
  if (memo[name]?.key !== key) memo[name] = { key, value: make() };
  return memo[name].value;
}

/** Make pieces again, even if nothing that they depend on changes. */
export function forget(...names) {
  for (const name of names) delete memo[name];
}

/** Show the state in the next frame. */
export function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    showAll();
  });
}

/** Show more when things are at rest; not of a state that has not been shown, and may make no sense. */
export function atRest(show, wait) {
  return setTimeout(() => {
    if (!scheduled) show();
  }, wait);
}

/** Change the state, show it, and note it in the address once things are at rest. */
export function update(changes) {
  complain("");
  Object.assign(state, changes);
  redraw();
  clearTimeout(saving);
  saving = setTimeout(() => {
    const hash = writeState(state);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }, 200);
}

/** Say what is wrong; an empty text takes it back. */
export function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

/** The short name of a parametrization if it has one. */
export function alias(text) {
  return Object.keys(data.named).find((name) => data.named[name] === text) ?? text;
}

export const modelOf = (name) => data.models.find((model) => model.name === name) ?? null;

export const radians = (degrees) => (degrees * Math.PI) / 180;

/** Parametrizations to choose from. */
export const LABELS = {
  polar: "Polar, relative angle: φ ρ θ̃",
  "polar-absolute": "Polar, absolute angle: φ ρ θ",
  cartesian: "Cartesian: x y θ",
  "cartesian-relative": "Cartesian, relative angle: x y θ̃",
  "polar+cartesian": "Polar + cartesian (the paper)",
  extended: "Extended: gradient, intensity, shape",
  "extended-24": "Extended, of 24-px patches",
  "extended-fine": "Extended, of 24-px patches, finer",
  "standard: x(8,2)*y(8,2)*intensity(2)": "Intensity planes alone",
  "standard: x(8,2)*y(8,2)*shape": "Shape planes alone",
};
