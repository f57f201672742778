"use strict";
/* Tables that sort: small ones where they stand, operators page by page from columns. */
{
  const turned = { ascending: "descending", descending: "ascending" };
  /** A head whose buttons sort; numbers begin with the largest. */
  const sortable = (head, name, numeric, sort) => {
    const button = page.make("button", { type: "button" }, name);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = turned[head.getAttribute("aria-sort")] || (numeric ? "descending" : "ascending");
      for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      sort(order === "ascending" ? 1 : -1);
    });
  };
  const collator = new Intl.Collator("en", { numeric: true });
  /* Unknown values stand last in either order. */
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? collator.compare(a, b) : a - b);
  };

  page.sortTables = () => {
    for (const table of document.querySelectorAll("table")) {
      const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
      if (body.rows.length < 2 || heads[0].querySelector("button")) continue;
      heads.forEach((head, index) => {
        const numeric = head.classList.contains("n");
        const value = (row) => {
          const cell = row.cells[index];
          return numeric ? (cell.dataset.v ? Number(cell.dataset.v) : null) : cell.textContent;
        };
        sortable(head, head.textContent, numeric, (sign) => {
          const rows = [...body.rows].map((row) => [value(row), row]);
          rows.sort((a, b) => compare(a[0], b[0], sign));
          body.replaceChildren(...rows.map(([, row]) => row));
        });
      });
    }
  };

  const word = (column, at) => column.words[column.codes[at]];

  /** All operators of a model: search, sort, a page at a time. */
  page.operators = (holder, ops) => {
    const count = ops.name.length, step = ops.time.reduce((sum, value) => sum + (value || 0), 0);
    const columns = [
      ["operator", (at) => word(ops.type, at), String, false],
      ["name", (at) => ops.name[at], String, false],
      ["module", (at) => word(ops.module, at), String, false],
      ["time", (at) => ops.time[at], page.seconds, true],
      ["share", (at) => (ops.time[at] === null || !step ? null : ops.time[at] / step), page.share, true],
      ["forward", (at) => ops.forward[at], page.seconds, true],
      ["backward", (at) => ops.backward[at], page.seconds, true],
      ["FLOP", (at) => ops.flops[at], page.count, true],
      ["bytes", (at) => ops.bytes[at], page.bytes, true],
      ["parameters", (at) => ops.params[at], page.count, true],
      ["bound", (at) => word(ops.bound, at), String, false],
      ["efficiency", (at) => ops.efficiency[at], page.share, true],
    ];
    const timed = ops.time.some((value) => value !== null);
    const shown = columns.filter(([name]) => (timed || !["time", "share", "forward", "backward", "efficiency"].includes(name)) && (name !== "module" || ops.module.words.length > 1));
    const input = page.make("input", { type: "search", placeholder: "Search type, name, module, bound", "aria-label": "Search operators" });
    const status = page.make("span", { role: "status" });
    const before = page.make("button", { type: "button" }, "Previous"), after = page.make("button", { type: "button" }, "Next");
    const size = page.make("select", { "aria-label": "Rows shown" }, ...[25, 100, 500].map((rows) => page.make("option", { value: rows }, `${rows} rows`)));
    const body = page.make("tbody"), head = page.make("tr");
    const table = page.make("table", {}, page.make("caption", {}, "Operators"), page.make("thead", {}, head), body);
    let texts = null, found = [...Array(count).keys()], first = 0, key = null, sign = 1;

    const draw = () => {
      const rows = Number(size.value), last = Math.min(found.length, first + rows);
      body.replaceChildren(...found.slice(first, last).map((at) => page.make("tr", {}, ...shown.map(([, value, words, numeric]) => {
        const cell = page.make("td", numeric ? { class: "n" } : {}, words(value(at)));
        return cell;
      }))));
      status.textContent = found.length ? `${first + 1} to ${last} of ${found.length.toLocaleString("en-US")}` : "no operator matches";
      before.disabled = first === 0;
      after.disabled = last >= found.length;
    };
    const order = () => {
      if (key) {
        const values = found.map((at) => [key(at), at]);
        values.sort((a, b) => compare(a[0], b[0], sign) || a[1] - b[1]);
        found = values.map(([, at]) => at);
      }
      first = 0;
      draw();
    };
    const search = () => {
      texts = texts || ops.name.map((name, at) => `${word(ops.type, at)} ${name} ${word(ops.module, at)} ${word(ops.bound, at)}`.toLowerCase());
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = [...Array(count).keys()].filter((at) => words.every((one) => texts[at].includes(one)));
      order();
    };
    for (const [name, value, , numeric] of shown) {
      const cell = page.make("th", numeric ? { scope: "col", class: "n" } : { scope: "col" });
      head.append(cell);
      sortable(cell, name, numeric, (direction) => { key = value; sign = direction; order(); });
      if (name === (timed ? "time" : "FLOP")) { key = value; sign = -1; cell.setAttribute("aria-sort", "descending"); }
    }
    input.addEventListener("input", search);
    size.addEventListener("change", () => { first = 0; draw(); });
    before.addEventListener("click", () => { first = Math.max(0, first - Number(size.value)); draw(); });
    after.addEventListener("click", () => { first += Number(size.value); draw(); });
    holder.replaceChildren(
      page.make("div", { class: "tools" }, input, size, before, after, status),
      page.make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Operators" }, table),
    );
    order();
  };
}
