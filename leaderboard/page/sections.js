// The sections around the ranking and the charts.

// How much it varies on one graph; over several graphs the ranking has intervals.
function spread(perGrid) {
  if (perGrid.length > 1 || perGrid[0].length < 2) return "";
  return ` (${fixed(Math.min(...perGrid[0]))} to ${fixed(Math.max(...perGrid[0]))} on ${perGrid[0].length} splits)`;
}

function renderAnswer(view) {
  const give = Number(view.give);
  byId("give-value").textContent = `${give} %`;
  byId("give").setAttribute("aria-valuetext", `${give} percent`);
  const host = byId("answer-text");
  const grids = viewGrids(view);
  if (!grids.length || !board.entries.length) {
    fill(host, element("p", {}, "There is nothing to compare in this view."));
    return;
  }
  const before = undefendedStrength(view);
  const ranked = bestWithin(view, give / 100);
  const best = ranked[0];
  const where = grids.length === 1 ? grids[0].dataset : `${grids.length} graphs on average`;
  if (before - best.strength < 1e-9) {
    fill(
    host,
      element("p", {}, `On ${where}, no defense lowers the attack below ${fixed(before)} while it keeps ${100 - give} % of the undefended utility.`),
    );
    return;
  }
  const tied = ranked.filter((other) => other.strength - best.strength < 1e-9);
  const names = tied.flatMap((other, i) => [i ? " and " : "", element("strong", {}, board.entries[other.entry].label)]);
  const settings = [...best.chosen].sort((a, b) => b[1] - a[1]);
  const total = settings.reduce((sum, [, count]) => sum + count, 0);
  const others = ranked.slice(tied.length, tied.length + 3);
  fill(
    host,
    element(
      "p",
      { class: "verdict" },
      names,
      ` ${tied.length > 1 ? "protect" : "protects"} best: attack strength `,
      element("strong", {}, fixed(best.strength)),
      spread(best.perGrid),
      ` instead of ${fixed(before)} undefended, on ${where}.`,
    ),
    element(
      "p",
      { class: "about" },
      `Best setting, counted over splits: ${settings.map(([label, count]) => `${label ?? "undefended"} (${count} of ${total})`).join(", ")}.`,
    ),
    others.length
      ? element("p", { class: "about" }, `Next: ${others.map((o) => `${board.entries[o.entry].label} ${fixed(o.strength)}`).join(", ")}.`)
      : null,
  );
}

function renderLegend() {
  const hidden = hiddenEntries();
  const focused = document.activeElement?.dataset?.entry;
  const toggle = (i) => {
    const next = hiddenEntries();
    if (!next.delete(i)) next.add(i);
    setState({ hide: [...next].sort((a, b) => a - b).join(",") });
  };
  fill(
    byId("legend"),
    ...board.entries.map((entry, i) =>
      element(
        "button",
        { type: "button", "data-entry": String(i), "aria-pressed": String(!hidden.has(i)), onclick: () => toggle(i) },
        element("span", { class: "swatch", style: `background:${colourOf(i)}`, "aria-hidden": "true" }),
        entry.label,
      ),
    ),
  );
  if (focused) document.querySelector(`[data-entry="${focused}"]`)?.focus();
}

function renderPoints(view) {
  const header = ["Setting", "Graph", "Attack strength", "Utility", "Kept", "Dominated", "Charged seeds"];
  const rows = viewGrids(view).flatMap((grid) =>
    board.entries.flatMap((entry, e) =>
      pointsOf(grid, e, view.attack, view.utility).map((p) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, element("button", { type: "button", class: "link", onclick: () => setState({ point: pointId(p) }) }, entry.settings[p.setting].label)),
          [
            grid.dataset,
            `${fixed(p.strength.mean)} ${interval(p.strength.low, p.strength.high, fixed)}`,
            `${fixed(p.utility.mean)} ${interval(p.utility.low, p.utility.high, fixed)}`,
            percent(p.kept.mean, 1),
            p.dominated ? "yes" : "no",
            p.charged.length ? p.charged.join(", ") : "none",
          ].map((text) => element("td", {}, text)),
        ),
      ),
    ),
  );
  fill(
    byId("points-table"),
    element("thead", {}, element("tr", {}, header.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, rows),
  );
}

function renderCosts(view) {
  const quantity = COSTS[view.cost];
  const column = { seconds: 0, host: 1, gpu: 2 }[view.cost];
  const rows = board.entries.map((entry, e) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, entry.label),
      board.grids.map((grid) => {
        const cost = grid.costs[e];
        const failures = cost[4] ? element("small", { class: "incomplete" }, `${cost[4]} of ${cost[3]} failed`) : null;
        return element("td", {}, quantity.show(cost[column]), failures);
      }),
    ),
  );
  fill(
    byId("costs"),
    element("caption", {}, `${quantity.name}, by defense and graph`),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Defense"), board.grids.map((grid) => element("th", { scope: "col" }, grid.dataset)))),
    element("tbody", {}, rows),
  );
  const failed = board.growth.filter((g) => g.status !== "ok");
  byId("growth-failures").textContent = failed.length
    ? `Did not finish: ${failed.map((g) => `${g.entry} on ${g.dataset} (${g.status})`).join("; ")}.`
    : "";
}

function renderGaps() {
  const groups = new Map();
  for (const grid of board.grids) {
    for (const [e, , , evaluator, status, reason] of grid.gaps) {
      const key = JSON.stringify([board.entries[e].label, grid.dataset, status, reason]);
      const group = groups.get(key) ?? { count: 0, evaluators: new Set() };
      group.count += 1;
      group.evaluators.add(evaluator || "publication");
      groups.set(key, group);
    }
  }
  const rows = [...groups].map(([key, { count, evaluators }]) => {
    const [label, dataset, status, reason] = JSON.parse(key);
    const kinds = evaluators.size > 3 ? `${evaluators.size} attacks and tasks` : [...evaluators].join(", ");
    return [label, dataset, status, String(count), kinds, reason];
  });
  const titles = ["defense", "graph", "status", "cells", "of", "reason"];
  const said = rows.length ? "Each of these cells is charged as undefended." : "Every cell that was run has a result.";
  fill(
    byId("gaps"),
    element("p", { class: "about" }, said),
    rows.length ? factTable("Cells that have a row but no result", titles, rows) : null,
  );
}

function renderFooter() {
  const [first, last] = board.measured;
  const when = first ? (first === last ? ` measured on ${first}` : ` measured from ${first} to ${last}`) : "";
  byId("footer").textContent = `ppgsl-bench ${board.version}, protocol ${board.protocol};${when}. This page is one file and makes no network request.`;
}
