// Drawing: maps and curves by plotly, patches on canvases.

import { COLOURS, MUCH, SIZE } from "./constants.js";
import { coefficients, truncated, vonMises } from "./kernels.js";

const CONFIG = { staticPlot: true, responsive: true };
/** Colours in even steps, as plotly wants them. */
const scaleOf = (colours) => colours.map((colour, i) => [i / (colours.length - 1), colour]);
/** A colour #rrggbb as three numbers. */
const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function baseLayout(more) {
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--soft"), fixedrange: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: style("--ink") },
    margin: { l: 0, r: 0, t: 0, b: 0 },
    showlegend: false,
    ...more,
    xaxis: { ...axis, ...more.xaxis },
    yaxis: { ...axis, ...more.yaxis },
  };
}

function rowsOf(values, width) {
  return Array.from({ length: values.length / width }, (_, i) =>
    values.subarray(i * width, (i + 1) * width),
  );
}

/** The lowest and the highest value. */
export function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** A line where values change their sign, if many are below zero: a trace, or none. */
function zeroTraces(values, width, more = {}) {
  const [low, high] = rangeOf(values);
  if (!(high > 0 && -low > MUCH * (high - low))) return [];
  const line = { width: 2.5, color: "#fff", smoothing: 0 };
  const contours = { start: 0, end: 0, size: 1, coloring: "none" };
  const common = { type: "contour", autocontour: false, showscale: false, hoverinfo: "skip", showlegend: false };
  return [{ ...common, z: rowsOf(values, width), contours, line, ...more }];
}

/** A contour trace of ten levels between the lowest and the highest value. */
function contourTrace(values, width, more = {}) {
  const range = rangeOf(values);
  const low = range[0];
  let high = range[1];
  if (!(high - low > 1e-9)) high = low + 1e-9;
  const step = (high - low) / 11;
  return {
    type: "contour",
    z: rowsOf(values, width),
    zmin: low,
    zmax: high,
    autocontour: false,
    contours: { start: low + step, end: high - step / 2, size: step },
    colorscale: scaleOf(COLOURS.map),
    line: { width: 0.6, color: "rgba(255,255,255,.75)", smoothing: 0 },
    showscale: false,
    hoverinfo: "skip",
    ...more,
  };
}

const MAP_AXES = {
  xaxis: { visible: false, range: [0, SIZE - 1] },
  yaxis: { visible: false, range: [SIZE - 1, 0] },
};

export function drawMap(div, values) {
  const traces = [contourTrace(values, SIZE), ...zeroTraces(values, SIZE)];
  return Plotly.react(div, traces, baseLayout(MAP_AXES), CONFIG);
}

/** Different kernels among the factors of a parametrization: [{kappa, n, names}]. */
export function distinctKernels({ products }) {
  const found = new Map();
  for (const { name, kappa, n } of products.flat()) {
    if (!kappa) continue;
    const key = `${kappa},${n}`;
    if (!found.has(key)) found.set(key, { kappa, n, names: new Set() });
    found.get(key).names.add(`${WORDS[name]} ${SYMBOLS[name]}`);
  }
  return [...found.values()].map((kernel) => ({ ...kernel, names: [...kernel.names] }));
}

const WORDS = {
  x: "across",
  y: "down",
  rho: "radius",
  phi: "polar angle",
  theta: "gradient angle",
  relative_theta: "gradient, relative",
};

export const SYMBOLS = {
  x: "x",
  y: "y",
  rho: "ρ",
  phi: "φ",
  theta: "θ",
  relative_theta: "θ̃",
  intensity: "intensity",
  shape: "shape",
};

function curveTraces(kernels) {
  const angles = Array.from({ length: 121 }, (_, i) => (i * Math.PI) / 120);
  return kernels.flatMap(({ kappa, n, names }, index) => {
    const a = coefficients(kappa, n);
    const color = COLOURS.lines[index % COLOURS.lines.length];
    const common = { type: "scatter", mode: "lines", x: angles, hoverinfo: "skip" };
    return [
      {
        ...common,
        y: angles.map((delta) => vonMises(kappa, delta)),
        line: { color, width: 1.5, dash: "dot" },
        showlegend: false,
      },
      {
        ...common,
        y: angles.map((delta) => truncated(a, delta)),
        line: { color, width: 2.5 },
        name: `${names.join(", ")}: κ ${kappa}, N ${n}`,
      },
    ];
  });
}

const CURVE_AXES = {
  xaxis: {
    range: [0, Math.PI],
    tickvals: [0, 1, 2, 3, 4].map((i) => (i * Math.PI) / 4),
    ticktext: ["0", "π/4", "π/2", "3π/4", "π"],
  },
  yaxis: { range: [-0.25, 1.08], tickvals: [0, 0.5, 1] },
};

export function drawCurves(div, kernels) {
  const layout = baseLayout({
    ...CURVE_AXES,
    margin: { l: 28, r: 8, t: 6, b: 24 },
    showlegend: true,
    legend: { x: 1, xanchor: "right", y: 1, bgcolor: "rgba(0,0,0,0)" },
  });
  return Plotly.react(div, curveTraces(kernels), layout, CONFIG);
}

const marker = (x, y, symbol, size, width, color) => ({
  type: "scatter",
  mode: "markers",
  x: [x],
  y: [y],
  marker: { symbol, size, color: "rgba(0,0,0,0)", line: { width, color } },
  hoverinfo: "skip",
});

/** A mark that shows on any ground: dark under light. */
const marks = (x, y, symbol) => [
  marker(x, y, symbol, 13, 5, "#000"),
  marker(x, y, symbol, 13, 2.5, "#fff"),
];

/** Directions shown, in degrees: half a turn, and a little more so that marks show whole. */
export const SHAPE_DIRECTIONS = [-10, 190];

/** Similarity of all shapes (rows: l from -1 to 1; columns: directions) to that of p. */
export function drawShapes(div, values, width, p, q) {
  const height = values.length / width;
  const [first, last] = SHAPE_DIRECTIONS;
  const directions = Array.from({ length: width }, (_, i) => first + ((last - first) * i) / (width - 1));
  const levels = Array.from({ length: height }, (_, i) => -1 + (2 * i) / (height - 1));
  const layout = baseLayout({
    xaxis: { range: SHAPE_DIRECTIONS, tickvals: [0, 45, 90, 135, 180], ticksuffix: "°" },
    yaxis: {
      range: [1, -1],
      tickvals: [-1, -Math.SQRT1_2, 0, Math.SQRT1_2, 1],
      ticktext: ["bright blob", "bright ridge", "saddle", "dark ridge", "dark blob"],
    },
    margin: { l: 84, r: 8, t: 8, b: 24 },
  });
  const traces = [
    contourTrace(values, width, { x: directions, y: levels }),
    ...marks(p.direction, p.level, "x-thin"),
    ...marks(q.direction, q.level, "circle"),
  ];
  return Plotly.react(div, traces, layout, CONFIG);
}

const [COLD, , WARM] = COLOURS.diverging.map(rgb);

/** A patch in gray on a canvas, with the shares of its pixels over it if there are any. */
export function drawPatch(canvas, patch, shares, largest) {
  const size = Math.sqrt(patch.length);
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  const coarse = shares ? size / Math.sqrt(shares.length) : 1;
  for (let i = 0; i < patch.length; i++) {
    const [row, column] = [Math.floor(i / size), i % size];
    let share = 0;
    if (shares) {
      const index = Math.floor(row / coarse) * (size / coarse) + Math.floor(column / coarse);
      share = shares[index] / largest;
    }
    const alpha = Math.min(0.85, Math.sqrt(Math.abs(share)));
    const colour = share > 0 ? WARM : COLD;
    for (let c = 0; c < 3; c++) {
      image.data[4 * i + c] = (1 - alpha) * patch[i] + alpha * colour[c];
    }
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** What a pixel looks like: its gradient, brightness and local shape, as a tiny picture. */
export function drawLook(canvas, { theta, intensity, shape }, uses) {
  const size = 56;
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  const [l, d, e] = shape;
  for (let i = 0; i < size * size; i++) {
    const x = (2 * (i % size)) / (size - 1) - 1;
    const y = (2 * Math.floor(i / size)) / (size - 1) - 1;
    let value = 0;
    if (uses.intensity) value += 0.7 * intensity;
    // The angle points from bright to dark.
    if (uses.gradient) value -= 0.45 * (x * Math.cos(theta) + y * Math.sin(theta));
    if (uses.shape) {
      const curved = ((l + d) / 2) * x * x + ((l - d) / 2) * y * y + e * x * y;
      value += 0.9 * (curved - l / 3);
    }
    const gray = 128 + 110 * Math.min(Math.max(value, -1), 1);
    image.data.set([gray, gray, gray, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  if (!uses.gradient) return;
  const [c, s, middle] = [Math.cos(theta), Math.sin(theta), size / 2];
  context.strokeStyle = COLOURS.diverging[2];
  context.lineWidth = 2.5;
  context.beginPath();
  context.moveTo(middle - 17 * c, middle - 17 * s);
  context.lineTo(middle + 17 * c, middle + 17 * s);
  for (const side of [-0.5, 0.5]) {
    context.moveTo(middle + 17 * c, middle + 17 * s);
    const turned = theta + Math.PI + side;
    context.lineTo(middle + 17 * c + 9 * Math.cos(turned), middle + 17 * s + 9 * Math.sin(turned));
  }
  context.stroke();
}

async function download(figure, width, height, filename) {
  const url = await Plotly.toImage(figure, { format: "png", width, height, scale: 2 });
  const link = document.createElement("a");
  link.href = url;
  link.download = filename;
  link.click();
}

/** Download the patch map and the kernel curves as one picture. */
export function saveMap(values, state, best, kernels, title) {
  const bottom = { domain: [0, 1] };
  const layout = baseLayout({
    title: { text: title, x: 0.02, font: { size: 15 } },
    margin: { l: 50, r: 20, t: 60, b: 50 },
    xaxis: { domain: [0, 0.5], range: [0, SIZE - 1], title: { text: "column" }, constrain: "domain" },
    yaxis: { ...bottom, range: [SIZE - 1, 0], title: { text: "row" }, scaleanchor: "x" },
    showlegend: kernels.length > 0,
    legend: { x: 1, xanchor: "right", y: 1 },
    paper_bgcolor: style("--panel"),
  });
  layout.xaxis2 = { ...layout.xaxis, ...CURVE_AXES.xaxis, domain: [0.58, 1], constrain: undefined };
  layout.xaxis2.title = { text: "difference of an attribute" };
  layout.yaxis2 = { ...CURVE_AXES.yaxis, ...bottom, anchor: "x2", gridcolor: style("--line") };
  const curves = curveTraces(kernels).map((trace) => ({ ...trace, xaxis: "x2", yaxis: "y2" }));
  const marked = [...marks(state.x, state.y, "x-thin"), ...marks(...best, "circle")];
  const quiet = marked.map((trace) => ({ ...trace, showlegend: false }));
  const data = [contourTrace(values, SIZE), ...zeroTraces(values, SIZE), ...quiet, ...curves];
  return download({ data, layout }, 1000, 520, "mkdesc-map.png");
}

/** Download both patches, the shares of their pixels and the score as one picture. */
export function savePatches(patches, shares, largest, title) {
  const diverging = scaleOf(COLOURS.diverging);
  const data = [];
  const layout = baseLayout({
    title: { text: title, x: 0.02, font: { size: 15 } },
    margin: { l: 10, r: 10, t: 45, b: 5 },
    paper_bgcolor: style("--panel"),
    annotations: [],
  });
  const panels = [
    ["A", patches[0], { colorscale: "Greys", zmin: 0, zmax: 255 }], // plotly's run from black to white
    ["A: what pixels add", shares[0], { colorscale: diverging, zmin: -largest, zmax: largest }],
    ["B", patches[1], { colorscale: "Greys", zmin: 0, zmax: 255 }],
    ["B: what pixels add", shares[1], { colorscale: diverging, zmin: -largest, zmax: largest }],
  ];
  panels.forEach(([text, values, colours], i) => {
    const suffix = i ? String(i + 1) : "";
    const domain = [i / 4 + 0.01, (i + 1) / 4 - 0.01];
    const axes = { xaxis: `x${suffix}`, yaxis: `y${suffix}` };
    const z = rowsOf(values, Math.sqrt(values.length));
    data.push({ type: "heatmap", showscale: false, z, ...colours, ...axes });
    layout[`xaxis${suffix}`] = { visible: false, domain, constrain: "domain" };
    layout[`yaxis${suffix}`] = {
      visible: false,
      autorange: "reversed",
      scaleanchor: axes.xaxis,
      constrain: "domain",
      anchor: axes.xaxis,
    };
    const place = { xref: "paper", yref: "paper", x: domain[0], y: 0.95, xanchor: "left" };
    layout.annotations.push({ text, showarrow: false, ...place });
  });
  return download({ data, layout }, 1000, 340, "mkdesc-patches.png");
}
