"use strict";
/* The figures of the fleet commands: stacked bars of shares, and lines over one axis. */
{
  const { ink, colours, narrow, fill, tip, short, frame, axis, names } = page.kit;
  const whole = (value) => (value < 1e4 ? value.toLocaleString("en-US") : page.count(value));
  const times = (value) => `${value > 0 && value < 0.1 && Number.isInteger(Math.log2(value)) ? `1/${1 / value}` : Number(value.toPrecision(3))}x`;
  const words = { share: page.share, count: whole, times };
  const ticks = { ...words, share: (value) => `${Number((value * 100).toPrecision(3))} %` };
  /* Rows that the names above a chart take, by a guess at their width. */
  const legendRows = (all, width) => {
    let rows = 1, at = 0;
    for (const name of all) {
      const wide = 40 + 7 * name.length;
      if (at > 0 && at + wide > width) { rows += 1; at = 0; }
      at += wide;
    }
    return rows;
  };
  const top = (all, width) => 14 + 22 * legendRows(all, width);

  /* Text on an ink: dark on light inks, white on dark ones. */
  const onInk = (entry) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(ink(entry).slice(at, at + 2), 16) / 255);
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 ? "#111" : "#fff";
  };

  page.charts.bars = (figure) => ({
    height: (width) => top(figure.series.map((one) => one.name), width) + 34 + 34 * figure.labels.length,
    option: (width) => frame(width, {
      grid: { ...frame(width).grid, top: top(figure.series.map((one) => one.name), width) },
      tooltip: { ...frame(width).tooltip, trigger: "item", formatter: (at) => tip(at.name, `${at.seriesName}: ${page.share(at.value)}`) },
      xAxis: axis("", { type: "value", min: 0, max: 1, axisLabel: { color: colours().soft, formatter: ticks.share, hideOverlap: true } }),
      yAxis: names(figure.labels, width),
      series: figure.series.map((one) => ({
        type: "bar", stack: "all", name: one.name, data: one.values, barMaxWidth: 24, itemStyle: fill(one.ink),
        label: { show: true, fontSize: 11, fontWeight: 600, color: onInk(one.ink), textBorderColor: ink(one.ink), textBorderWidth: 3,
          formatter: (at) => (at.value * width < 62 ? "" : `${(at.value * 100).toFixed(0)} %`) },
      })),
    }),
  });

  page.charts.curves = (figure) => ({
    height: (width) => top(figure.curves.map((one) => one.name), width) + 240,
    option: (width) => {
      const inks = page.data.inks.series, dashes = ["solid", "dashed", "dotted", [8, 3, 2, 3]];
      const xs = figure.curves.flatMap((one) => one.points.map(([x]) => x));
      const log = figure.x !== "share";
      const label = { color: colours().soft, hideOverlap: true, formatter: ticks[figure.x] };
      /* Doublings, at most eight of them labelled, 1 among them. */
      const first = Math.floor(Math.log2(Math.min(...xs))), high = Math.max(first + 1, Math.ceil(Math.log2(Math.max(...xs))));
      const every = Math.max(1, Math.ceil((high - first) / (narrow(width) ? 5 : 8)));
      const low = Math.floor(first / every) * every;
      const across = log
        ? { type: "value", min: low, max: high, axisLine: { onZero: false, lineStyle: { color: colours().line } }, interval: every, axisLabel: { ...label, formatter: (value) => ticks[figure.x](2 ** value) } }
        : { type: "value", min: 0, max: 1, axisLabel: label };
      return frame(width, {
        grid: { ...frame(width).grid, top: top(figure.curves.map((one) => one.name), width) + 18, bottom: 26 },
        tooltip: { ...frame(width).tooltip, trigger: "item", formatter: (at) => tip(at.seriesName,
          `${short(figure.across, 60)}: ${words[figure.x](log ? 2 ** at.value[0] : at.value[0])}`, `${figure.up}: ${words[figure.y](at.value[1])}`) },
        xAxis: axis(figure.across, across),
        yAxis: { ...axis("", { type: "value", min: figure.y === "share" ? 0 : null, max: figure.y === "share" ? 1 : null, axisLine: { onZero: false, lineStyle: { color: colours().line } }, scale: figure.y !== "share", axisLabel: { color: colours().soft, formatter: ticks[figure.y] } }),
          name: figure.up, nameLocation: "end", nameTextStyle: { color: colours().soft, align: "left" }, nameGap: 8 },
        series: figure.curves.map((one, index) => ({
          type: "line", name: one.name, data: one.points.map(([x, y]) => [log ? Math.log2(x) : x, y]),
          symbol: ["circle", "rect", "triangle", "diamond"][index % 4], symbolSize: one.points.length > 16 ? 3 : 6,
          lineStyle: { width: 2, type: dashes[index % dashes.length], color: ink(inks[index % inks.length]) },
          itemStyle: { color: ink(inks[index % inks.length]) },
        })),
      });
    },
  });
}
