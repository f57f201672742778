"use strict";
/* What the page's other scripts share: data, elements, numbers in words, theme. */
const page = { data: JSON.parse(document.getElementById("data").textContent) };

/** An element with text or children; text is never markup. */
page.make = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
};

/* Three significant digits, as graphcost.units writes them. */
page.three = (value) => {
  if (value === 0) return "0";
  let decimals = 2 - Math.floor(Math.log10(Math.abs(value)));
  if (Number(Math.abs(value).toFixed(Math.max(0, decimals))) >= 10 ** (3 - decimals)) decimals -= 1;
  return value.toFixed(Math.min(Math.max(0, decimals), 3));
};
page.scaled = (value, unit) => {
  if (value === null) return "-";
  for (const [prefix, factor] of [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (Math.abs(value) >= factor * 0.9995) return `${page.three(value / factor)} ${prefix}${unit}`.trim();
  return `${Number.isInteger(value) ? value : page.three(value)} ${unit}`.trim();
};
page.count = (value) => page.scaled(value, "");
page.bytes = (value) => page.scaled(value, "B");
page.seconds = (value) => {
  if (value === null) return "-";
  if (value === 0) return "0 s";
  for (const [unit, factor] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (Math.abs(value) >= factor * 0.9995) {
      const scaled = value / factor;
      return `${scaled >= 999.5 ? Math.round(scaled).toLocaleString("en-US") : page.three(scaled)} ${unit}`;
    }
  return `${page.three(value / 1e-9)} ns`;
};
page.share = (value) => (value === null ? "-" : `${(value * 100).toFixed(1)} %`);

/* Theme: the system's until somebody chooses. */
page.printing = false;
page.dark = () => {
  if (page.printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
page.onTheme = [];
{
  const button = document.getElementById("theme");
  const stored = () => { try { return localStorage.getItem("graphcost-theme"); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem("graphcost-theme", value); } catch { /* not allowed: for this visit */ } };
  const label = () => { button.textContent = page.dark() ? "Light theme" : "Dark theme"; };
  const show = () => {
    label();
    for (const listener of page.onTheme) listener();
  };
  if (["light", "dark"].includes(stored())) document.documentElement.dataset.theme = stored();
  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    const next = page.dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    store(next);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}
