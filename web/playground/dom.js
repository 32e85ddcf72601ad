/**
 * Building DOM without markup strings: every text is a text node, so model output can never
 * become HTML. Knows nothing of Plait.
 */

/**
 * @typedef {Node | string | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Props
 */

/**
 * An element with attributes (`true` → empty attribute, `false`/null → absent), `on…` listeners
 * and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(
    .../** @type {(Node | string)[]} */ (children.filter((child) => child || child === "")),
  );
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
const SPRITE = new URL("icons.svg", import.meta.url).pathname;

/**
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...Node} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {string} name */
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", "aria-hidden": "true" },
    svg("use", { href: `${SPRITE}#${name}` }),
  );
}

/** @param {Element} iconElement @param {string} name */
export function setIcon(iconElement, name) {
  const use = /** @type {Element} */ (iconElement.firstElementChild);
  const href = `${SPRITE}#${name}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

/**
 * An icon-only button; the label is its name and tooltip.
 * @param {string} name @param {string} label @param {(event: MouseEvent) => void} onclick @param {Props} [props]
 */
export function iconButton(name, label, onclick, props = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", title: label, "aria-label": label, onclick, ...props },
    icon(name),
  );
}

/**
 * Writes only what changed: a text node touched every frame would keep screen readers and layout busy.
 * @param {Node} node @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A line breaks between parts, and inside one only where it does not fit. @param {string[]} parts */
export function unbroken(parts) {
  return parts.flatMap((part, index) =>
    index === 0
      ? [h("span", { class: "part" }, part)]
      : [" ", h("span", { class: "part" }, `· ${part}`)],
  );
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // No permission, or not a secure context: the caller says so.
  }
}

/**
 * A copy button that says for a moment whether it worked.
 * @param {string} label @param {() => string | Promise<string>} text
 */
export function copyButton(label, text) {
  const button = iconButton("copy", label, async () => {
    const ok = await copyText(await text());
    const mark = /** @type {Element} */ (button.firstElementChild);
    setIcon(mark, ok ? "check" : "alert");
    button.title = ok ? "Copied" : "The browser refused the clipboard: select and copy by hand";
    setTimeout(() => {
      setIcon(mark, "copy");
      button.title = label;
    }, 1200);
  });
  return button;
}
