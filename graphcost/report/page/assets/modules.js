"use strict";
/* The graph folded by module: what is inside a module is made when somebody opens it. */
{
  const MOST = 300;
  const fresh = (name) => ({ name, time: 0, flops: 0, bytes: 0, params: 0, count: 0, inside: new Map(), leaves: [], first: Infinity });

  const treeOf = (ops) => {
    const whole = fresh("all"), named = ops.module.words.some((word) => word);
    const paths = ops.module.words.map((word) => (word ? word.split(".") : []));
    ops.name.forEach((_, at) => {
      const path = named ? paths[ops.module.codes[at]] : [ops.type.words[ops.type.codes[at]]];
      let node = whole;
      const add = (one) => {
        one.time += ops.time[at] || 0; one.flops += ops.flops[at] || 0; one.bytes += ops.bytes[at] || 0;
        one.params += ops.params[at]; one.count += 1; one.first = Math.min(one.first, at);
      };
      add(node);
      for (const part of path) {
        if (!node.inside.has(part)) node.inside.set(part, fresh(part));
        node = node.inside.get(part);
        add(node);
      }
      node.leaves.push(at);
    });
    return { whole, named };
  };

  const meter = (share) => {
    const bar = page.make("i");
    bar.style.width = `${(100 * share).toFixed(1)}%`;
    const made = page.make("span", {}, page.make("span", { class: "meter" }, bar));
    made.setAttribute("aria-hidden", "true");
    return made;
  };
  const row = (name, time, share, flops, params) => page.make("span", { class: "row" },
    page.make("span", {}, name), meter(share), page.make("span", {}, page.seconds(time)), page.make("span", {}, page.share(share)),
    page.make("span", {}, page.count(flops)), page.make("span", {}, page.count(params)));

  page.modules = (holder, ops) => {
    const { whole, named } = treeOf(ops);
    const share = (time) => (whole.time ? time / whole.time : 0);
    const fillIn = (details, node) => {
      /* In the order of execution, modules and operators of their own alike. */
      const parts = [...[...node.inside.values()].map((inner) => [inner.first, inner]), ...node.leaves.map((at) => [at, null])];
      parts.sort((a, b) => a[0] - b[0]);
      const rows = parts.slice(0, MOST).map(([at, inner]) => (inner ? branch(inner) : page.make("div", { class: "leaf" },
        row(`${ops.type.words[ops.type.codes[at]]} ${ops.name[at]}`, ops.time[at], share(ops.time[at] || 0), ops.flops[at], ops.params[at]))));
      const more = parts.length - rows.length;
      if (more) rows.push(page.make("div", { class: "leaf" }, `and ${more.toLocaleString("en-US")} more: the table of operators has all`));
      details.append(...rows);
    };
    const branch = (node) => {
      const label = `${node.name} (${node.count.toLocaleString("en-US")})`;
      const details = page.make("details", {}, page.make("summary", {}, row(label, node.time, share(node.time), node.flops, node.params)));
      details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) fillIn(details, node); });
      return details;
    };
    const note = `${named ? "In brackets: operators inside." : "The file names no modules: operators by type."} Time: forward and backward; FLOP: forward; parameters with buffers.`;
    const head = page.make("div", { class: "head" }, page.make("span", { class: "row" }, ...["module", "", "time", "share", "FLOP", "parameters"].map((name) => page.make("span", {}, name))));
    const root = branch(whole);
    fillIn(root, whole);
    root.open = true;
    holder.replaceChildren(page.make("p", { class: "note" }, note), page.make("div", { class: "tree" }, head, root));
  };
}
