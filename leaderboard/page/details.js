// Everything about one point: parameters, numbers on every seed, where it comes from, and how to get it again.

const PUBLISHED = ["links", "links kept", "links removed", "links added", "sensitive links published", "ε of its guarantee"];

const pointId = (point) => JSON.stringify([point.dataset, board.entries[point.entry].label, board.entries[point.entry].settings[point.setting].label]);

function findPoint(id) {
  let parts;
  try {
    parts = JSON.parse(id);
  } catch {
    return null;
  }
  if (!Array.isArray(parts)) return null;
  const grid = gridOf(parts[0]);
  const entry = board.entries.findIndex((e) => e.label === parts[1]);
  const setting = board.entries[entry]?.settings.findIndex((s) => s.label === parts[2]) ?? -1;
  return grid && entry >= 0 && setting >= 0 ? { grid, entry, setting } : null;
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function reproducingCommand(grid, entry, setting, view) {
  const { seeds } = reference(grid, view.attack, view.utility);
  const numbers = seeds.map((s) => s.seed);
  const counting = numbers.every((seed, i) => seed === i);
  const attacks = [...new Set(seeds.flatMap((s) => s.counted))].sort((a, b) => a - b).map((k) => grid.attacks[k]);
  const first = grid.publications[entry][setting].find((p) => p !== null);
  const origin = first ? board.provenances[first[8]] : {};
  const words = [
    "ppgsl-bench", "run",
    "--dataset", grid.dataset,
    "--defense", board.entries[entry].settings[setting].label,
    "--attack", attacks.join(","),
    "--utility", view.utility,
    "--seeds", counting ? String(numbers.length) : `${numbers.join(",")},`,
    "--threads", String(origin.threads ?? 1),
    "--device", String(origin.device ?? "cpu"),
  ];
  return words.map(quoted).join(" ");
}

function factTable(caption, header, rows) {
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table",
      { class: "facts" },
      element("caption", {}, caption),
      header.length ? element("thead", {}, element("tr", {}, header.map((text) => element("th", { scope: "col" }, text)))) : null,
      element("tbody", {}, rows.map(([first, ...rest]) => element("tr", {}, element("th", { scope: "row" }, first), rest.map((text) => element("td", {}, text))))),
    ),
  );
}

function seedRows({ grid, entry, setting }, view) {
  return curve(grid, entry, view.attack, view.utility)[setting].map((cell) => {
    const publication = grid.publications[entry][setting][grid.seeds.indexOf(cell.seed)];
    return [
      String(cell.seed),
      fixed(cell.strength, 4),
      fixed(cell.utility, 4),
      cell.charged ? "charged as undefended" : "sound",
      duration(publication?.[4]),
      bytes(publication?.[5]),
      bytes(publication?.[6]),
    ];
  });
}

function attackRows({ grid, entry, setting }, view) {
  const { seeds } = reference(grid, "worst", view.utility);
  return grid.attacks
    .map((name, k) => {
      const values = seeds.map((s) => grid.strength[entry][setting][s.index][k]).filter((v) => v !== null);
      const before = seeds.map((s) => grid.undefendedStrength[s.index][k]).filter((v) => v !== null);
      return { name, now: values.length ? mean(values) : null, before: before.length ? mean(before) : null, count: values.length };
    })
    .sort((a, b) => (b.now ?? 0) - (a.now ?? 0))
    .map((row) => [row.name, fixed(row.now), fixed(row.before), `${row.count} of ${seeds.length}`]);
}

function provenanceRows({ grid, entry, setting }) {
  const found = grid.publications[entry][setting].filter((p) => p !== null);
  const rows = [["source", board.entries[entry].source || "this project"]];
  const origin = found.length ? board.provenances[found[0][8]] : {};
  for (const [name, value] of Object.entries(origin)) {
    rows.push([name, value !== null && typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k} ${v}`).join(", ") : String(value)]);
  }
  if (found.length) rows.push(["finished", found.map((p) => p[3]).sort().at(-1)]);
  rows.push(["dataset digest", grid.digest]);
  grid.seeds.forEach((seed, i) => {
    const publication = grid.publications[entry][setting][i];
    rows.push([`seed ${seed}`, `split ${grid.splits[i].slice(0, 12)}, published ${publication?.[2] || UNKNOWN}, row ${publication?.[1] || UNKNOWN}`]);
  });
  return rows;
}

function publishedRows({ grid, entry, setting }) {
  const found = grid.publications[entry][setting].filter((p) => p !== null && p[0] === "ok");
  return PUBLISHED.map((name, k) => {
    const values = found.map((p) => p[7][k]).filter((v) => v !== null);
    return values.length ? [name, mean(values).toLocaleString("en", { maximumFractionDigits: 2 })] : null;
  }).filter((row) => row !== null);
}

function showDetails(id, view) {
  const dialog = byId("details");
  const found = id ? findPoint(id) : null;
  if (!found || !reference(found.grid, view.attack, view.utility).seeds.length) {
    if (dialog.open) dialog.close();
    return;
  }
  const { grid, entry, setting } = found;
  const point = pointsOf(grid, entry, view.attack, view.utility)[setting];
  const { label, params } = board.entries[entry].settings[setting];
  const parameters = Object.entries(JSON.parse(params));
  const command = reproducingCommand(grid, entry, setting, view);
  const gaps = grid.gaps.filter(([e, s]) => e === entry && s === setting);
  const copy = element("button", { type: "button", onclick: () => copyText(command, copy) }, "Copy");
  byId("details-title").textContent = `${label} on ${grid.dataset}`;
  fill(
    byId("details-body"),
    factTable("In this view: mean over seeds, 95 % interval", [], [
      [`attack strength (${attackTitle(view.attack)})`, `${fixed(point.strength.mean)} ${interval(point.strength.low, point.strength.high, fixed)}`],
      [utilityTitle(view.utility), `${fixed(point.utility.mean)} ${interval(point.utility.low, point.utility.high, fixed)}`],
      ["share of the undefended utility", `${percent(point.kept.mean, 1)} ${interval(point.kept.low, point.kept.high, (v) => (100 * v).toFixed(1))}`],
      ["dominated", point.dominated ? "yes, another setting or the undefended graph is better in both" : "no"],
    ]),
    parameters.length ? factTable("Parameters", [], parameters.map(([name, value]) => [name, String(value)])) : null,
    element("div", { class: "command" }, element("h3", {}, "Get it again"), element("code", { id: "command" }, command), copy),
    gaps.length ? factTable("Did not finish", ["cell", "seed", "how it ended"], gaps.map(([, , seed, evaluator, status, reason]) => [evaluator || "publication", String(seed), `${status}: ${reason}`])) : null,
    factTable("On every seed", ["seed", "strength", "utility", "cells", "time", "host memory", "GPU"], seedRows(found, view)),
    factTable("All attacks, strongest first", ["attack", "strength", "undefended", "seeds"], attackRows(found, view)),
    factTable("The published graph, mean over seeds", [], publishedRows(found)),
    factTable("Provenance", [], provenanceRows(found)),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
