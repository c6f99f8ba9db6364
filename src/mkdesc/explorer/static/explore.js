// The page: everything that is shown follows from one state, piece by piece.

import { COLOURS, SIZE } from "./constants.js";
import { decodeModel, readModelFile } from "./heads.js";
import { formatParametrization, parseParametrization } from "./kernels.js";
import { PRESETS, defaultState, readState } from "./state.js";
import { distinctKernels, saveMap, savePatches } from "./views.js";
import { PhotoView, decodeGray, readLocalImage } from "./photo.js";
import { element } from "./composer.js";
import {
  $,
  alias,
  atRest,
  beginWith,
  complain,
  data,
  forget,
  memo,
  modelOf,
  piece,
  redraw,
  state,
  update,
} from "./store.js";
import { chooseKernel, chooseWhitening, showChoices, showKernels, showMap } from "./pixel.js";
import { addPatch, beginPatches, changePhotograph, patchOf, showPatches } from "./compare.js";

let photo;
let served;
let comparing = 0;

/** The parametrization of the state; one that makes no sense is explained and the last one kept. */
function readParametrization() {
  try {
    return parseParametrization(state.k, data);
  } catch (error) {
    complain(`Parametrization: ${error.message}.`);
    state.k = memo.kernel ? alias(formatParametrization(memo.kernel.value)) : "polar";
    forget("composer");
    $("composer").structure = undefined; // its controls show what was refused
    return parseParametrization(state.k, data);
  }
}

function checkWhitening() {
  const model = modelOf(state.w);
  if (!state.w || (model && alias(model.parametrization) === state.k)) return;
  const problem = model ? "was learned on other kernels" : "is not here; it may come from a file";
  complain(`Whitening: ${state.w} ${problem}.`);
  state.w = "";
}

function show() {
  const before = memo.kernel?.key;
  const parametrization = piece("kernel", [state.k], readParametrization);
  checkWhitening();
  showLesson();
  showChoices(parametrization);
  showMap(parametrization);
  showKernels(parametrization);
  // While a kernel's slider moves, its curve and map come first; the patches follow at rest.
  clearTimeout(comparing);
  if (before && before !== memo.kernel.key) comparing = atRest(showPatches, 100);
  else showPatches();
  document.body.dataset.ready = "true";
}

/** Which preset was chosen, and what it says. */
function showLesson() {
  piece("presets", [state.see], () => {
    for (const button of $("presets").children) {
      button.setAttribute("aria-pressed", String(button.dataset.id === state.see));
    }
    const preset = PRESETS.find(({ id }) => id === state.see);
    $("lesson").textContent = preset && !preset.goto ? preset.text : "";
    $("lesson-two").textContent = preset?.goto ? preset.text : "";
  });
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
    const name = `file ${file.name.slice(0, 60)}`;
    addPatch(name, image);
    update({ [chosenSlot()]: name });
  } else {
    showPhoto(image);
    update({});
  }
}

async function openModel(file) {
  const models = served
    ? (await send("api/model", file)).map(decodeModel)
    : [readModelFile(await file.arrayBuffer(), data)];
  for (const model of models) {
    const own = file.name.replace(/\.safetensors$/, "").slice(0, 60);
    const name = models.length > 1 ? `${own} ${model.name}` : own;
    const taken = data.models.findIndex((other) => other.name === name);
    if (taken >= 0 && data.models[taken].kind !== "file") {
      throw new Error(`${name} is the name of a bundled whitening`);
    }
    if (taken >= 0) data.models.splice(taken, 1);
    data.models.push({ ...model, name });
  }
  forget("selects", "choices", "map", "comparison");
  chooseWhitening(data.models.at(-models.length).name);
}

const chosenSlot = () =>
  /** @type {HTMLInputElement} */ (document.querySelector("[name=slot]:checked")).value;

function showPhoto(image) {
  $("photo-view").hidden = !image;
  $("photo-hint").textContent = image
    ? "Click where to cut, or move the square with the arrow keys and press Enter. A small square image becomes a patch itself."
    : "Open a photo to cut patches from it; a small square image becomes a patch itself.";
  changePhotograph(image);
  if (image) photo.show(image);
}

function listen() {
  for (const { id, title, state: shown, goto } of PRESETS) {
    const button = element("button", { type: "button", textContent: title });
    button.dataset.id = id;
    button.addEventListener("click", () => {
      const { a, b } = state;
      update({ ...defaultState(), a, b, ...shown, see: id });
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (goto) $(goto).scrollIntoView({ behavior: still ? "auto" : "smooth" });
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
    const { values, best } = memo.map.value;
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
    complain("");
    Object.assign(state, readState(location.hash));
    state.k = alias(state.k);
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    forget("map", "composer", "shapes");
    redraw();
  });
}

async function begin() {
  const inline = $("data");
  served = !inline;
  const given = inline ? JSON.parse(inline.textContent) : await (await fetch("data.json")).json();
  given.models = given.models.map(decodeModel);
  beginWith(given, readState(location.hash), show);
  $("version").textContent = data.version;
  const root = document.documentElement.style;
  root.setProperty("--map", COLOURS.map.join(","));
  root.setProperty("--diverging", COLOURS.diverging.join(","));
  $("shares").checked = true;
  $("side").value = "72";
  $("compose").open = !matchMedia("(max-width: 34rem)").matches;
  photo = new PhotoView($("photo"), ({ x, y, side }) => {
    update({ [chosenSlot()]: `photo@${x},${y},${side}` });
  });
  beginPatches();
  showPhoto(data.photo && decodeGray(data.photo));
  listen();
  show();
}

begin().catch((error) => complain(`The page could not start: ${error.message}`));
