() => {
  const parts = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const over = ([r, g, b, alpha = 1], below) =>
    [r, g, b].map((value, place) => value * alpha + below[place] * (1 - alpha));
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    const style = getComputedStyle(element);
    // What stands on a gradient cannot be judged, and counts as pale.
    if (style.backgroundImage.includes("gradient")) return [NaN, NaN, NaN];
    const colour = parts(style.backgroundColor);
    const isOpaque = colour.length < 4 || colour[3] === 1;
    return isOpaque ? colour.slice(0, 3) : over(colour, ground(element.parentElement));
  };
  const found = new Map();
  const check = (element, what, text) => {
    const below = ground(element);
    const colour = over(parts(getComputedStyle(element, what).color), below);
    const [dark, bright] = [light(colour), light(below)].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    const name = `${element.tagName} ${element.className} ${what}`;
    if (!(contrast >= 4.5)) found.set(name, [text.trim().slice(0, 40), contrast]);
  };
  const ownText = (element) =>
    [...element.childNodes].filter((each) => each.nodeType === 3).map((each) => each.data).join("");
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.matches("script, style, option, svg *")) continue;
    const text = typeof element.value === "string" ? element.value : ownText(element);
    if (text.trim()) check(element, null, text);
    for (const what of ["::before", "::after"]) {
      const content = getComputedStyle(element, what).content;
      const isText = /\w|▾/.test(content) && !["none", "normal"].includes(content);
      if (isText) check(element, what, content);
    }
  }
  return [...found];
}
