"use strict";
/* One function a kind of chart: data in, ECharts' options out. */
page.charts = {};
{
  const ink = (pair) => pair[page.dark() ? 1 : 0];
  const colours = () => page.dark()
    ? { text: "#e4e8ed", soft: "#a3acb8", line: "#3a414b", card: "#1d2127" }
    : { text: "#1b1f24", soft: "#57606a", line: "#d5d9df", card: "#ffffff" };
  const narrow = (width) => width < 560;
  /* Hatches tell parts apart where there is no colour. */
  const decal = (hatch) => {
    const color = page.dark() ? "rgba(0,0,0,.45)" : "rgba(255,255,255,.65)";
    if (hatch === "///") return { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: -Math.PI / 4, color };
    if (hatch === "...") return { symbol: "circle", symbolSize: 0.6, dashArrayX: [[6, 6]], dashArrayY: [6, 0], color: ink(["#a04a00", "#ffb27a"]) };
    return { symbol: "none" };
  };
  const fill = (entry) => ({ color: ink(entry), decal: decal(entry[2]), borderColor: colours().card, borderWidth: 0.5 });
  const power = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
  const tip = (title, ...lines) => page.make("div", { class: "tip" }, page.make("b", {}, title), ...lines.map((line) => page.make("div", {}, line)));
  const short = (text, most) => (text.length <= most ? text : "\u2026" + text.slice(text.length - most + 1));
  const frame = (width, more) => ({
    animation: false,
    textStyle: { color: colours().text, fontFamily: "system-ui, sans-serif" },
    aria: { enabled: true, label: { enabled: false }, decal: { show: false } },
    tooltip: { confine: true, backgroundColor: colours().card, borderColor: colours().line, textStyle: { color: colours().text, fontSize: 13 } },
    legend: { type: "plain", top: 0, left: 0, itemWidth: 16, itemHeight: 11, itemGap: 12, textStyle: { color: colours().text, fontSize: 12 } },
    grid: { left: 4, right: 18, top: narrow(width) ? 62 : 36, bottom: 4, containLabel: true },
    ...more,
  });
  const axis = (name, more) => ({
    name, nameLocation: "middle", nameGap: 28, nameTextStyle: { color: colours().soft },
    axisLabel: { color: colours().soft, hideOverlap: true }, axisLine: { lineStyle: { color: colours().line } },
    splitLine: { lineStyle: { color: colours().line, opacity: 0.6 } }, minorSplitLine: { show: false }, ...more,
  });
  const secondsAxis = (more) => axis("", { type: "value", axisLabel: { color: colours().soft, formatter: page.seconds, hideOverlap: true }, ...more });
  const names = (labels, width) => axis("", {
    type: "category", data: labels, inverse: true, axisTick: { show: false }, splitLine: { show: false },
    axisLabel: { color: colours().text, interval: 0, formatter: (text) => short(text, narrow(width) ? 20 : 34) },
  });

  page.kit = { ink, colours, narrow, fill, tip, short, frame, axis, names }; /* for charts of other files */

  const stacked = (labels, series, width, total) => frame(width, {
    tooltip: { ...frame(width).tooltip, trigger: "item", formatter: (at) => tip(at.name, `${at.seriesName}: ${page.seconds(at.value)}`, ...(total ? [total(at)] : [])) },
    xAxis: secondsAxis(), yAxis: names(labels, width),
    series: series.map((one) => ({ type: "bar", stack: one.stack || "all", barMaxWidth: 34, ...one })),
  });

  /* Every part of one step; what runs beside it on a second bar. */
  page.charts.step = (model) => ({
    height: (width) => (narrow(width) ? 144 : 106) + (model.step.parts["hidden communication"][0] > 0 ? 44 : 0),
    option: (width) => {
      const { parts } = model.step, inks = page.data.inks.parts, rows = parts["hidden communication"][0] > 0 ? ["step", "beside it"] : ["step"];
      const sum = Object.entries(parts).reduce((total, [name, values]) => total + (name.startsWith("hidden") ? 0 : values[0]), 0);
      const shown = Object.entries(parts).filter(([, values]) => values[0] > 0);
      return stacked(rows, shown.map(([name, values]) => {
        const beside = name.startsWith("hidden");
        return {
          name, data: beside ? [null, values[0]] : [values[0], null], itemStyle: fill(inks[name]),
          label: { show: !beside && values[0] / sum > 0.09, formatter: () => page.share(values[0] / sum), color: ["memory", "input"].includes(name) || page.dark() ? "#111" : "#fff", fontWeight: 600, textBorderColor: ink(inks[name]), textBorderWidth: 4 },
        };
      }), width, (at) => (at.seriesName.startsWith("hidden") ? "the step does not wait for it" : `${page.share(at.value / sum)} of the step`));
    },
  });

  /* One bar an architecture or placement. */
  page.charts.archs = (model) => ({
    height: (width) => 62 + (narrow(width) ? 26 : 0) + 34 * model.archs.labels.length,
    option: (width) => {
      const { labels, parts } = model.archs, inks = page.data.inks.parts;
      const shown = Object.entries(parts).filter(([, values]) => values.some((value) => value > 0));
      return stacked(labels, shown.map(([name, values]) => ({
        name, data: values, itemStyle: fill(inks[name]), ...(name.startsWith("hidden") ? { stack: "beside", barMaxWidth: 8 } : { barMaxWidth: 22 }),
      })), width);
    },
  });

  page.charts.links = (model) => ({
    height: (width) => 62 + (narrow(width) ? 26 : 0) + 34 * model.messages.labels.length,
    option: (width) => {
      const { labels, exposed, hidden } = model.messages, inks = page.data.inks.parts;
      return stacked(labels, [
        { name: "exposed", data: exposed, itemStyle: fill(inks.communication) },
        { name: "hidden", data: hidden, itemStyle: fill(inks["hidden communication"]) },
      ].filter((one) => one.data.some((value) => value > 0)), width);
    },
  });

  page.charts.tensors = (model) => ({
    height: () => 40 + 22 * model.tensors.length,
    option: (width) => frame(width, {
      legend: { show: false }, grid: { ...frame(width).grid, top: 8 },
      tooltip: { ...frame(width).tooltip, formatter: (at) => tip(at.name, page.bytes(at.value)) },
      xAxis: axis("", { type: "value", axisLabel: { color: colours().soft, formatter: page.bytes, hideOverlap: true } }),
      yAxis: names(model.tensors.map(([name]) => name), width),
      series: [{ type: "bar", barMaxWidth: 14, data: model.tensors.map(([, bytes]) => bytes), itemStyle: fill(page.data.inks.parts.communication) }],
    }),
  });

  page.charts.roofline = (model) => ({
    height: (width) => (narrow(width) ? 380 : 460),
    option: (width) => {
      const { points, roofs, mem_bytes_per_s: rate } = model.roofline;
      const xs = points.map((point) => point[0]);
      const top = Math.max(...roofs.map(([, peak]) => peak));
      const low = 10 ** Math.floor(Math.log10(Math.min(...xs, 1))), high = 10 ** Math.ceil(Math.log10(Math.max(...xs, (2 * top) / rate)));
      const lowest = 10 ** Math.floor(Math.log10(Math.min(...points.map((point) => point[1]), low * rate)));
      const dashes = ["solid", "dashed", "dotted"];
      const roof = ([name, peak], index) => ({
        type: "line", name: `${name}, ${page.scaled(peak, "FLOP/s")}`, symbol: "none", silent: true, z: 1,
        data: [[low, low * rate], [peak / rate, peak], [high, peak]].filter(([x], at) => at !== 0 || index === 0),
        lineStyle: { color: colours().text, width: 1.3, type: dashes[index % 3] }, itemStyle: { color: colours().text },
      });
      const kind = (bound, colour, symbol) => ({
        type: "scatter", name: `${bound}-bound`, symbol, z: 3, itemStyle: { color: ink(colour), opacity: 0.75, borderColor: colours().card, borderWidth: 0.6 },
        symbolSize: (value) => Math.max(5, Math.min(44, 110 * Math.sqrt(value[2]))),
        data: points.filter((point) => point[3] === bound).map((point) => ({ value: point.slice(0, 3), point })),
      });
      const series = page.data.inks.series;
      return frame(width, {
        grid: { ...frame(width).grid, top: narrow(width) ? 30 + 22 * (roofs.length + 2) : 56, bottom: 26 },
        tooltip: { ...frame(width).tooltip, trigger: "item", formatter: (at) => {
          const [x, y, share, bound, name, type, phase, count, seconds] = at.data.point;
          return tip(`${type} ${short(name, 60)}`, count > 1 ? `and ${count - 1} with equal work` : phase, `${phase}: ${page.seconds(seconds)}, ${page.share(share)} of the time`,
            `${page.three(x)} FLOP/byte, ${page.scaled(y, "FLOP/s")}`, `bound by ${bound}`);
        } },
        xAxis: axis("FLOP per byte", { type: "log", min: low, max: high, axisLabel: { color: colours().soft, hideOverlap: true, formatter: (value) => (!power(value) ? "" : value >= 1000 ? page.count(value) : String(Number(value.toPrecision(3)))) } }),
        yAxis: axis("", { type: "log", min: lowest, max: 10 ** Math.ceil(Math.log10(top * 1.05)), axisLabel: { color: colours().soft, formatter: (value) => page.scaled(value, "FLOP/s") } }),
        series: [...roofs.map(roof), kind("compute", series[0], "circle"), kind("memory", series[1], "diamond")].filter((one) => one.data.length),
      });
    },
  });

  page.charts.memory = (model) => ({
    height: (width) => (narrow(width) ? 330 : 340),
    option: (width) => {
      const { x, unit, bands, phases, limit } = model.memory, inks = page.data.inks.memory;
      const peak = Math.max(...x.map((_, at) => Object.values(bands).reduce((sum, values) => sum + values[at], 0)));
      const across = unit === "s" ? page.seconds : page.count;
      const lines = phases.slice(1).map(([name, begin]) => ({ xAxis: begin, label: { formatter: () => name } }));
      if (peak > limit / 2) lines.push({ yAxis: limit, label: { formatter: () => `room ${page.bytes(limit)}` }, lineStyle: { type: "solid" } });
      return frame(width, {
        tooltip: { ...frame(width).tooltip, trigger: "axis", formatter: (all) => tip(
          `at ${across(all[0].value[0])}: ${page.bytes(all.reduce((sum, one) => sum + one.value[1], 0))}`,
          ...all.filter((one) => one.value[1] > 0).reverse().map((one) => `${one.seriesName} ${page.bytes(one.value[1])}`)) },
        grid: { ...frame(width).grid, top: narrow(width) ? 96 : 62 },
        xAxis: axis("", { type: "value", min: 0, max: x[x.length - 1], splitLine: { show: false }, axisLabel: { color: colours().soft, hideOverlap: true, showMaxLabel: false, formatter: across } }),
        yAxis: axis("", { type: "value", axisLabel: { color: colours().soft, formatter: page.bytes } }),
        series: Object.entries(bands).map(([name, values], index) => ({
          type: "line", name, stack: "all", symbol: "none", step: "end", data: values.map((value, at) => [x[at], value]),
          lineStyle: { width: 0.5, color: colours().card }, itemStyle: { color: ink(inks[name]) }, areaStyle: { color: ink(inks[name]), opacity: 1 },
          ...(index ? {} : { markLine: { symbol: "none", silent: true, precision: 15, label: { color: colours().soft, position: "end" }, lineStyle: { color: colours().soft, type: "dashed" }, data: lines } }),
        })),
      });
    },
  });

  /* Predicted against measured, both logarithmic: the line where they agree, and a band beside it. */
  page.charts.scatter = () => ({
    width: 820,
    height: (width) => Math.max(400, Math.min(760, width * 0.9)),
    option: (width) => {
      const { tables, points, band } = page.data.validation;
      const every = points.flatMap((point) => [point[1], point[2]]);
      const low = Math.min(...every) / 1.5, high = Math.max(...every) * 1.5;
      const symbols = ["circle", "triangle", "rect", "diamond"];
      const line = (factor, name, type) => ({ type: "line", name, symbol: "none", silent: true, z: 4, data: [[low, low * factor], [high, high * factor]], lineStyle: { color: colours().text, width: factor === 1 ? 1.4 : 1, type }, itemStyle: { color: colours().text } });
      const range = { type: "log", min: low, max: high, axisLabel: { color: colours().soft, hideOverlap: true, formatter: (value) => (power(value) ? page.seconds(value) : "") } };
      const inks = page.data.inks.series;
      return frame(width, {
        legend: { ...frame(width).legend, type: narrow(width) ? "scroll" : "plain", data: tables },
        grid: { ...frame(width).grid, top: narrow(width) ? 40 : 24 + 22 * Math.ceil((tables.join("").length * 6.4 + tables.length * 34) / width), bottom: 26 },
        tooltip: { ...frame(width).tooltip, trigger: "item", formatter: (at) => {
          const [table, measured, predicted, what] = at.data.point;
          return tip(what, tables[table], `measured ${page.seconds(measured)}`, `predicted ${page.seconds(predicted)} (${predicted >= measured ? "+" : ""}${((predicted / measured - 1) * 100).toFixed(1)} %)`);
        } },
        xAxis: axis("measured step", range), yAxis: axis(narrow(width) ? "" : "predicted step", { ...range, nameGap: 58 }),
        series: [line(1, "equal", "solid"), line(1 + band, "+", "dashed"), line(1 - band, "-", "dashed"),
          ...tables.map((name, index) => ({
            type: "scatter", name, symbol: symbols[(index + Math.floor(index / inks.length)) % symbols.length], symbolSize: 6, z: 2,
            itemStyle: { color: ink(inks[index % inks.length]), opacity: 0.6, borderColor: colours().card, borderWidth: 0.3 },
            data: points.filter((point) => point[0] === index).map((point) => ({ value: [point[1], point[2]], point })),
          }))],
      });
    },
  });
}
