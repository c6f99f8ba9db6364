// A photograph from which patches are cut, with the mouse, a finger or the keyboard.

import { LONGEST } from "./constants.js";
import { decodeBytes } from "./heads.js";

/** A gray image as Python sends it. */
export function decodeGray({ width, height, pixels }) {
  return { width, height, pixels: decodeBytes(pixels) };
}

/** Read an image file in the browser itself, for a page without a server. */
export async function readLocalImage(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error("expected a PNG, JPEG, WebP or BMP image");
  }
  const shrink = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * shrink));
  const height = Math.max(1, Math.round(bitmap.height * shrink));
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const pixels = new Uint8Array(width * height);
  for (let i = 0; i < pixels.length; i++) {
    const [r, g, b] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    pixels[i] = Math.round(0.299 * r + 0.587 * g + 0.114 * b);
  }
  return { width, height, pixels };
}

/** The photo with a square over it; `onCut` gets its frame {x, y, side}. */
export class PhotoView {
  constructor(canvas, onCut) {
    this.canvas = canvas;
    this.onCut = onCut;
    this.image = null;
    this.square = { x: 0, y: 0, side: 72 };
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(image) {
    this.image = image;
    this.square = { x: image.width / 2, y: image.height / 2, side: this.square.side };
    this.canvas.width = image.width;
    this.canvas.height = image.height;
    this.picture = new ImageData(image.width, image.height);
    image.pixels.forEach((value, i) => this.picture.data.set([value, value, value, 255], 4 * i));
    this.draw();
  }

  draw() {
    if (!this.image) return;
    const context = this.canvas.getContext("2d");
    context.putImageData(this.picture, 0, 0);
    const { x, y, side } = this.square;
    const thin = Math.max(1, this.image.width / 300);
    for (const [colour, width] of [["#000", 3 * thin], ["#ffb000", 1.5 * thin]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x - side / 2, y - side / 2, side, side);
    }
  }

  place(square) {
    const { width, height } = this.image;
    const { x, y, side } = { ...this.square, ...square };
    this.square = {
      x: Math.round(Math.min(Math.max(x, 0), width)),
      y: Math.round(Math.min(Math.max(y, 0), height)),
      side,
    };
    this.draw();
  }

  click(event) {
    if (!this.image) return;
    const box = this.canvas.getBoundingClientRect();
    const scale = this.image.width / box.width;
    this.place({ x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale });
    this.onCut(this.square);
  }

  key(event) {
    if (!this.image) return;
    const step = event.shiftKey ? 16 : 2;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (move) this.place({ x: this.square.x + step * move[0], y: this.square.y + step * move[1] });
    else if (event.key === "Enter" || event.key === " ") this.onCut(this.square);
    else return;
    event.preventDefault();
  }
}
