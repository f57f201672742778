"use strict";
/* How long the jobs of a schedule took: a line a scheduler, the share of all jobs that took no longer. */
{
  const { ink, colours, narrow, tip, frame, axis } = page.kit;
  const short = (value) => page.seconds(value).replace(/\.0+ /, " ");
  const rows = (curves, width) => {
    let made = 1, at = 0;
    for (const { name } of curves) {
      const wide = 44 + 7 * name.length;
      if (at > 0 && at + wide > width) { made += 1; at = 0; }
      at += wide;
    }
    return made;
  };

  page.charts.completion = (figure) => ({
    height: (width) => 30 + 22 * rows(figure.curves, width) + 280,
    option: (width) => {
      const inks = page.data.inks.series, dashes = ["solid", "dashed", "dotted", [8, 3, 2, 3]];
      const shown = frame(width);
      return frame(width, {
        grid: { ...shown.grid, top: 30 + 22 * rows(figure.curves, width), bottom: 26 },
        tooltip: { ...shown.tooltip, trigger: "item", formatter: (at) => tip(at.seriesName, `${page.share(at.value[1])} of the jobs`, `within ${page.seconds(at.value[0])}`) },
        xAxis: axis("completion time of a job", {
          type: "log", min: figure.low, max: figure.high, minorTick: { show: true, splitNumber: narrow(width) ? 3 : 9 },
          axisLabel: { color: colours().soft, hideOverlap: true, formatter: short },
        }),
        yAxis: { ...axis("", { type: "value", min: 0, max: 1, axisLabel: { color: colours().soft, formatter: (value) => `${Math.round(value * 100)} %` } }),
          name: "jobs that took no longer", nameLocation: "end", nameTextStyle: { color: colours().soft, align: "left" }, nameGap: 8 },
        series: figure.curves.map((one, index) => ({
          type: "line", step: "end", name: one.name, data: one.points, symbol: "circle", symbolSize: 3, showAllSymbol: true,
          lineStyle: { width: 2, type: dashes[index % dashes.length], color: ink(inks[index % inks.length]) },
          itemStyle: { color: ink(inks[index % inks.length]) },
        })),
      });
    },
  });
}
