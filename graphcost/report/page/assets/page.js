"use strict";
/* Puts charts, tables and trees where the page has room for them. */
{
  const PRINT_WIDTH = 680;
  const drawn = new Map();

  const draw = (holder) => {
    const models = page.data.models || [];
    const chart = page.charts[holder.dataset.chart](models[Number(holder.dataset.of)]);
    const width = Math.min(page.printing ? PRINT_WIDTH : holder.clientWidth, chart.width || Infinity);
    const height = chart.height(width);
    drawn.get(holder)?.dispose();
    holder.style.height = `${height}px`;
    const made = echarts.init(holder, null, { renderer: "svg", width, height });
    made.setOption(chart.option(width));
    drawn.set(holder, made);
  };
  const holders = [...document.querySelectorAll("[data-chart]")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
  }, { rootMargin: "600px" });
  for (const holder of holders) seen.observe(holder);
  const again = () => { for (const holder of [...drawn.keys()]) draw(holder); };
  page.onTheme.push(again);

  let timer = 0, before = innerWidth;
  addEventListener("resize", () => {
    if (page.printing || innerWidth === before) return;
    before = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(again, 120);
  });

  /* On paper: every chart, light, with its table; nothing folded. */
  let folded = [];
  addEventListener("beforeprint", () => {
    page.printing = true;
    folded = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.closest(".tree"));
    for (const details of folded) details.open = true;
    for (const holder of holders) draw(holder);
  });
  addEventListener("afterprint", () => {
    page.printing = false;
    for (const details of folded) details.open = false;
    again();
  });

  for (const holder of document.querySelectorAll("[data-operators]")) page.operators(holder, page.data.models[Number(holder.dataset.operators)].ops);
  for (const holder of document.querySelectorAll("[data-modules]")) page.modules(holder, page.data.models[Number(holder.dataset.modules)].ops);
  page.sortTables();
  document.documentElement.dataset.ready = "yes";
}
