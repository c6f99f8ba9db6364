// What the page shows, and its place in the address. An address may come from anyone: every value
// is checked before it is used.

import { SIZE } from "./constants.js";

const SHAPES = {
  "bright blob": -1,
  "bright ridge": -Math.SQRT1_2,
  saddle: 0,
  "dark ridge": Math.SQRT1_2,
  "dark blob": 1,
};
export const SHAPE_NAMES = Object.keys(SHAPES);

/**
 * Second derivatives (l, d, e) of unit strength for a shape and its direction in degrees: that along
 * which it is brighter, so along a bright ridge and across a dark one.
 */
export function shapeDerivatives(name, degrees) {
  return sphereDerivatives(SHAPES[name], degrees);
}

/** The same for any l in [-1, 1]. */
export function sphereDerivatives(l, degrees) {
  const radius = Math.sqrt(Math.max(0, 1 - l * l));
  const angle = (2 * degrees * Math.PI) / 180;
  return [l, radius * Math.cos(angle), radius * Math.sin(angle)];
}

export const shapeLevel = (name) => SHAPES[name];

/** Ranges of the numbers; the value that comes first is the one to begin with. */
const NUMBERS = {
  x: [20, 0, SIZE - 1],
  y: [20, 0, SIZE - 1],
  pt: [0, -180, 180],
  qt: [0, -180, 180],
  pz: [0.5, -0.95, 0.95],
  qz: [0.5, -0.95, 0.95],
  pd: [0, 0, 180],
  qd: [0, 0, 180],
  rot: [12, -45, 45],
  dx: [0, -12, 12],
  dy: [0, -12, 12],
};
const TEXTS = { k: "polar", w: "", a: "", b: "", ps: "bright blob", qs: "bright blob", see: "" };

export function defaultState() {
  const numbers = Object.entries(NUMBERS).map(([name, [first]]) => [name, first]);
  return { ...TEXTS, ...Object.fromEntries(numbers) };
}

/** The state that an address (its part after #) stands for. */
export function readState(hash) {
  const state = defaultState();
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (Object.hasOwn(NUMBERS, name)) {
      const [, low, high] = NUMBERS[name];
      const number = value.trim() === "" ? NaN : Number(value);
      if (Number.isFinite(number)) state[name] = Math.min(Math.max(number, low), high);
    } else if (Object.hasOwn(TEXTS, name) && value.length <= 500) {
      state[name] = value;
    }
  }
  for (const name of ["ps", "qs"]) {
    if (!Object.hasOwn(SHAPES, state[name])) state[name] = TEXTS[name];
  }
  return state;
}

/** The part of the address after #: what differs from the state to begin with. */
export function writeState(state) {
  const first = defaultState();
  const changed = Object.entries(state).filter(([name, value]) => value !== first[name]);
  return new URLSearchParams(changed.map(([name, value]) => [name, String(value)])).toString();
}

/** Things worth seeing: what to show, what to say about it, and perhaps the section it is in. */
export const PRESETS = [
  {
    id: "centre",
    title: "The polar map breaks at the centre",
    text: "In polar coordinates a small step near the centre is a large change of angle. Move the cross slowly across the centre: the map jumps. The paper's polar kernel pays for its tolerance of rotation here.",
    state: { k: "polar", x: 33, y: 30 },
  },
  {
    id: "turn",
    title: "The relative angle turns the map",
    text: "The pixels q have a gradient turned by 22.5°. The most similar place (ring) is no longer at the cross but further along the circle, where the gradient relative to the position fits again: this forgives a patch that was cut slightly turned. Move the angle of q and watch the ring travel.",
    state: { k: "polar", x: 14, y: 31, qt: -22.5 },
  },
  {
    id: "shift",
    title: "Cartesian kernels forgive shifts",
    text: "A wide kernel over x and y and the absolute gradient angle: the map is one broad hill, so a pixel displaced by a few pixels still counts. There is nothing special about the centre.",
    state: { k: "cartesian", x: 33, y: 30 },
  },
  {
    id: "both",
    title: "Together they mend the centre",
    text: "The paper's descriptor joins both. Compare with the polar map alone: near the centre the cartesian part fills the break, further out the polar part keeps the map narrow.",
    state: { k: "polar+cartesian", x: 33, y: 30 },
  },
  {
    id: "lw",
    title: "Whitening widens along the circle",
    text: "The learned whitening has seen patches that match although they are slightly turned. Switch the whitening off and on: with it the map is wider along the circle around the centre and only half as long along the radius, as if the kernels themselves had been changed.",
    state: { k: "polar", w: "polar-lw", x: 31, y: 12 },
  },
  {
    id: "ridge",
    title: "What a ridge looks like to the shape planes",
    text: "Beyond the paper, pixels also have a local shape. Pixel p lies on a bright ridge, the pixels q on one of another direction: turn q and see the similarity fall and rise again; make q a blob or a dark ridge and compare.",
    state: {
      k: "standard: x(8,2)*y(8,2)*shape",
      x: 26,
      y: 26,
      ps: "bright ridge",
      qs: "bright ridge",
      qd: 30,
    },
  },
  {
    id: "turned",
    title: "Turn a patch and see who minds",
    text: "Patch B is A, turned by 20°. The angle relative to the position (polar) turns with the patch and loses little; with the absolute angle (polar-absolute, cartesian) more is lost. Orange is where they still agree. The notches are at other patches: whitened, those have hardly any similarity left.",
    state: { k: "polar", a: "corner", b: "corner", rot: 20 },
    goto: "two",
  },
  {
    id: "shifted",
    title: "Shift it instead",
    text: "Patch B is A, shifted by 8 pixels. Now the polar kernels lose much, because the centre has moved; the wide cartesian kernel with the absolute angle loses least of the paper's. This is why the paper joins the two.",
    state: { k: "cartesian", a: "corner", b: "corner", rot: 0, dx: 8 },
    goto: "two",
  },
];
