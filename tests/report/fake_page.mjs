// As much of a browser's page as the report's script touches: elements that remember what was put into them.
// SPDX-License-Identifier: Apache-2.0

class Element {
  constructor(tag, page) {
    Object.assign(this, {
      tag,
      page,
      attributes: {},
      children: [],
      style: {},
      dataset: {},
      listeners: {},
      clientWidth: page.width,
    });
  }
  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }
  getAttribute(name) {
    return this.attributes[name];
  }
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  getBoundingClientRect() {
    return { left: 0, top: 0 };
  }
  matches() {
    return true;
  }
  getContext() {
    return { putImageData() {} };
  }
  toDataURL() {
    return "data:,";
  }
  set textContent(text) {
    this.children = [text];
  }
  get textContent() {
    return this.children.map((child) => child.textContent ?? String(child)).join("");
  }
  // Itself and all below it, texts left out.
  *all() {
    yield this;
    for (const child of this.children) if (child instanceof Element) yield* child.all();
  }
}

// The globals the script sees, with the JSON text as the page's document; `elements` has all that it asked for by id.
export function fake_page(json, width) {
  const page = { width };
  const elements = {};
  const document = {
    documentElement: new Element("html", page),
    createElement: (tag) => new Element(tag, page),
    createElementNS: (_, tag) => new Element(tag, page),
    querySelector: () => ({ namespaceURI: "svg" }),
    getElementById: (id) => (elements[id] ??= Object.assign(new Element("div", page), { id })),
  };
  document.getElementById("document").textContent = json;
  class ResizeObserver {
    constructor(report) {
      this.observe = report;
    }
  }
  class ImageData {
    constructor(w, h) {
      this.data = new Uint8ClampedArray(4 * w * h);
    }
  }
  const globals = {
    document,
    ResizeObserver,
    ImageData,
    requestAnimationFrame: (f) => f(),
    location: { hash: "" },
    window: { innerHeight: 800, scrollX: 0, scrollY: 0 },
  };
  return { globals, elements };
}
