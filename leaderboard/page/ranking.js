// The ranking table: sortable by every column, filtered by name, downloadable.

// A number stays with its sign.
const heading = (title) => (title[0].toUpperCase() + title.slice(1)).replaceAll(" %", "\u00a0%").replaceAll("≤ ", "≤\u00a0");

const COLUMNS = [
  { key: "rank", title: "Rank" },
  { key: "group", title: "Group" },
  { key: "defense", title: "Defense" },
  ...board.summaries.map((summary) => ({ key: summary.name, title: heading(summary.title), summary })),
  { key: "coverage", title: "Coverage" },
  { key: "seconds", title: "Time" },
  { key: "host", title: "Memory" },
  { key: "gpu", title: "GPU" },
];

// Ranks are those of the summary that the table is sorted by; for any other order, of the first summary.
const rankingSummary = (view) => board.summaries.find((s) => s.name === view.sort) ?? board.summaries[0];

// The direction in which a first click sorts: best first.
function bestFirst(key) {
  const column = COLUMNS.find((c) => c.key === key);
  return column.summary?.higherIsBetter || key === "coverage" ? "down" : "up";
}

function sortValue(line, key, summary) {
  if (key === "rank" || key === "group") return line[summary.name][key];
  if (key === "defense") return line.label.toLowerCase();
  if (["coverage", "seconds", "host", "gpu"].includes(key)) return line[key];
  return line[key].value;
}

// Sorted as the view says; references always stand at the end, and so does what is unknown.
function sortedLines(view) {
  const summary = rankingSummary(view);
  const direction = (view.order || bestFirst(view.sort)) === "up" ? 1 : -1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return standings(view).lines.sort((a, b) => {
    if (a.isReference !== b.isReference) return a.isReference ? 1 : -1;
    if (a.isReference) return 0;
    const [x, y] = [a, b].map((line) => sortValue(line, view.sort, summary) ?? null);
    if ((x === null) !== (y === null)) return x === null ? 1 : -1;
    return direction * compare(x, y) || compare(a[summary.name].rank, b[summary.name].rank) || compare(a.label, b.label);
  });
}

const matchesFilter = (line, filter) => `${line.label} ${line.source}`.toLowerCase().includes(filter.trim().toLowerCase());

function withInterval(value, detail) {
  return [value, detail ? element("small", {}, detail) : null];
}

function cellContent(line, column, summary) {
  const place = line[summary.name];
  if (column.summary) {
    const show = column.summary.percent ? percent : fixed;
    const { value, low, high } = line[column.key];
    return withInterval(show(value), interval(low, high, column.summary.percent ? (v) => (100 * v).toFixed(0) : fixed));
  }
  switch (column.key) {
    case "rank":
      if (line.isReference) return ["reference"];
      return withInterval(String(place.rank), place.best !== null && place.best !== place.worst ? `${place.best}–${place.worst}` : "");
    case "group":
      return [line.isReference || place.group === null ? UNKNOWN : String(place.group)];
    case "coverage":
      return [line.isReference ? UNKNOWN : `${Math.floor(100 * line.coverage + 1e-9)} %`];
    case "seconds":
      return [duration(line.seconds)];
    default:
      return [bytes(line[column.key])];
  }
}

function defenseCell(line) {
  const swatch = line.isReference ? null : element("span", { class: "swatch", style: `background:${colourOf(line.entry)}`, "aria-hidden": "true" });
  return element(
    "th",
    { scope: "row" },
    swatch,
    line.name,
    line.source ? element("small", { class: "source" }, line.source) : null,
  );
}

function renderRanking(view) {
  const summary = rankingSummary(view);
  const { seeds, unmeasured } = standings(view);
  const lines = sortedLines(view);
  const shown = lines.filter((line) => line.isReference || matchesFilter(line, view.filter));
  const order = view.order || bestFirst(view.sort);
  const head = COLUMNS.map((column) => {
    const active = column.key === view.sort;
    const next = active && order === bestFirst(column.key) ? (order === "up" ? "down" : "up") : bestFirst(column.key);
    return element(
      "th",
      { scope: "col", class: `col-${column.key}`, "aria-sort": active ? (order === "up" ? "ascending" : "descending") : "none" },
      element(
        "button",
        { type: "button", "data-sort": column.key, onclick: () => setState({ sort: column.key, order: next === bestFirst(column.key) ? "" : next }) },
        column.title,
        element("span", { class: "arrow", "aria-hidden": "true" }, active ? (order === "up" ? "▲" : "▼") : "↕"),
      ),
    );
  });
  let lastGroup = null;
  const body = shown.map((line) => {
    const group = line.isReference ? "reference" : line[summary.name].group;
    const starts = lastGroup !== null && group !== lastGroup;
    lastGroup = group;
    const cells = COLUMNS.map((column) => {
      if (column.key === "defense") return defenseCell(line);
      const incomplete = column.key === "coverage" && !line.isReference && line.sound < line.cells;
      const title = column.key === "coverage" && !line.isReference ? `${line.sound} of ${line.cells} cells` : null;
      return element("td", { class: `col-${column.key}${incomplete ? " incomplete" : ""}`, title }, cellContent(line, column, summary));
    });
    return element("tr", { class: `${line.isReference ? "reference" : ""}${starts ? " starts-group" : ""}` }, cells);
  });
  const focused = document.activeElement?.dataset?.sort;
  fill(
    byId("ranking"),
    element("caption", { class: "offscreen" }, `Defenses ranked by ${summary.title}`),
    element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, body),
  );
  if (focused) document.querySelector(`[data-sort="${focused}"]`)?.focus();
  const graphs = Object.entries(seeds).map(([name, count]) => `${name} (${count})`).join(", ");
  byId("ranking-about").textContent =
    `Ranked by ${summary.title}; attack: ${attackTitle(view.attack)}; utility: ${utilityTitle(view.utility)}; ` +
    `${Object.keys(seeds).length > 1 ? "mean over graphs" : "graph"} (seeds): ${graphs}.` +
    (unmeasured.length ? ` Attacks that count for nobody there: ${unmeasured.join(", ")}.` : "");
  const count = shown.filter((line) => !line.isReference).length;
  byId("ranking-count").textContent = view.filter ? `${count} of ${board.entries.length} defenses` : "";
}

function rankingCsv(view) {
  const summary = rankingSummary(view);
  const header = ["rank", "rank_best", "rank_worst", "group", "defense", "source"];
  for (const { name } of board.summaries) header.push(name, `${name}_low`, `${name}_high`);
  header.push("coverage", "cells", "cells_sound", "seconds", "host_bytes", "gpu_bytes");
  const rows = sortedLines(view)
    .filter((line) => line.isReference || matchesFilter(line, view.filter))
    .map((line) => {
      const place = line[summary.name];
      const row = [place.rank, place.best, place.worst, place.group, line.label, line.source];
      for (const { name } of board.summaries) row.push(line[name].value, line[name].low, line[name].high);
      return [...row, line.coverage, line.cells, line.sound, line.seconds, line.host, line.gpu];
    });
  return [header, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
}
