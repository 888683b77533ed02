// Charts are Vega-Lite specifications; text from rows enters them as values of fields and never as expressions.

const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b8478b", "#a87900", "#2f8fd0", "#8c564b", "#5b5b5b", "#7a3b9c", "#6d7a00"],
  dark: ["#4db2e6", "#ff9257", "#34cfa3", "#ea9dcb", "#f0c24b", "#9ad4ff", "#cda198", "#b9b9b9", "#c39be8", "#ccd657"],
};
const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"];
const views = new Map();

const isDark = () => document.documentElement.dataset.theme === "dark";
const colourOf = (entry) => COLOURS[isDark() ? "dark" : "light"][entry % COLOURS.light.length];
const shapeOf = (entry) => SHAPES[entry % SHAPES.length];
const cssValue = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function chartConfig() {
  const ink = cssValue("--ink");
  const quiet = cssValue("--quiet");
  const line = cssValue("--line");
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: quiet, titleColor: ink, titleFontWeight: 500, gridColor: line, domainColor: line, tickColor: line,
      labelFontSize: 11, titleFontSize: 12,
    },
    legend: { labelColor: quiet, titleColor: ink },
    title: { color: ink, fontSize: 14, anchor: "start" },
    text: { color: ink },
  };
}

async function draw(id, spec, onClick) {
  const host = byId(id);
  views.get(id)?.finalize();
  views.delete(id);
  const result = await window.vegaEmbed(host, spec, {
    mode: "vega-lite",
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
    config: chartConfig(),
    tooltip: { theme: isDark() ? "dark" : "light" },
    downloadFileName: `ppgsl-bench-${id}`,
  });
  views.set(id, result);
  if (onClick) result.view.addEventListener("click", (_, item) => item?.datum && onClick(item.datum));
}

const colourScale = () => ({
  domain: board.entries.map((_, i) => i),
  range: board.entries.map((_, i) => colourOf(i)),
});

function tradeoffSpec(grid, view, hidden) {
  const undefended = reference(grid, view.attack, view.utility).seeds;
  const top = { utility: mean(undefended.map((s) => s.utility)), strength: mean(undefended.map((s) => s.strength)) };
  const points = [];
  const lines = [];
  board.entries.forEach((entry, e) => {
    if (hidden.has(e)) return;
    const own = pointsOf(grid, e, view.attack, view.utility).map((p) => ({
      id: pointId(p),
      entry: e,
      utility: p.utility.mean,
      strength: p.strength.mean,
      low: p.strength.low,
      high: p.strength.high,
      dominated: p.dominated,
      Setting: entry.settings[p.setting].label,
      Source: entry.source || "this project",
      Strength: `${fixed(p.strength.mean)} ${interval(p.strength.low, p.strength.high, fixed)}`,
      Utility: `${fixed(p.utility.mean)} ${interval(p.utility.low, p.utility.high, fixed)}`,
      Kept: percent(p.kept.mean, 1),
      Seeds: p.charged.length ? `${p.seeds.length}, ${p.charged.length} of them charged` : `${p.seeds.length}`,
    }));
    points.push(...own);
    lines.push(...own.filter((p) => !p.dominated), { entry: e, ...top });
  });
  const x = { field: "utility", type: "quantitative", scale: { zero: false, nice: true }, title: `${utilityTitle(view.utility)} →`, axis: { format: ".2f", tickCount: view.dataset === ALL ? 5 : 9 } };
  const floor = floorOf(grid, view.attack, view.utility);
  // With two seeds a band can be wider than all curves together: the points set the scale, and bands are clipped to it.
  const heights = [...points, top, floor].map((p) => p.strength).filter((v) => v !== null);
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const margin = 0.06 * (highest - lowest) + 0.004;
  const domain = [Math.max(0.5, lowest - margin), Math.min(1, highest + margin)];
  const y = { field: "strength", type: "quantitative", scale: { zero: false, domain }, title: "← attack strength", axis: { format: ".2f", tickCount: 6 } };
  const colour = { field: "entry", type: "nominal", scale: colourScale(), legend: null };
  const ink = cssValue("--ink");
  const dashed = { type: "rule", strokeDash: [3, 4], color: cssValue("--quiet"), tooltip: true };
  const floors = [];
  if (floor.strength !== null) floors.push({ data: { values: [{ strength: floor.strength, Floor: `attack on features only: ${fixed(floor.strength)}` }] }, mark: dashed, encoding: { y, tooltip: { field: "Floor", type: "nominal" } } });
  if (floor.utility !== null) floors.push({ data: { values: [{ utility: floor.utility, Floor: `utility of features only: ${fixed(floor.utility)}` }] }, mark: dashed, encoding: { x, tooltip: { field: "Floor", type: "nominal" } } });
  // What can be selected lies above bands, lines and floors.
  const layers = [
    ...floors,
    {
      data: { values: points.filter((p) => !p.dominated && p.low !== null) },
      mark: { type: "area", opacity: view.dataset === ALL ? 0.1 : 0.14, tooltip: null, clip: true },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color: colour },
    },
    {
      data: { values: lines },
      mark: { type: "line", strokeWidth: 1.8, tooltip: null },
      encoding: { x, y, color: colour, order: { field: "utility" } },
    },
    {
      data: { values: points },
      mark: { type: "point", size: 62, strokeWidth: 1.6, cursor: "pointer", opacity: 1 },
      encoding: {
        x,
        y,
        stroke: colour,
        fill: colour,
        fillOpacity: { condition: { test: "datum.dominated", value: 0 }, value: 0.9 },
        strokeOpacity: { condition: { test: "datum.dominated", value: 0.55 }, value: 1 },
        shape: { field: "entry", type: "nominal", scale: { domain: board.entries.map((_, i) => i), range: board.entries.map((_, i) => shapeOf(i)) }, legend: null },
        tooltip: ["Setting", "Strength", "Utility", "Kept", "Seeds", "Source"].map((field) => ({ field, type: "nominal" })),
        description: { field: "Setting", type: "nominal" },
      },
    },
    {
      data: { values: [{ ...top, Setting: "undefended", Strength: fixed(top.strength), Utility: fixed(top.utility) }] },
      mark: { type: "point", shape: "M0,-1L0.29,-0.4L0.95,-0.31L0.48,0.15L0.59,0.81L0,0.5L-0.59,0.81L-0.48,0.15L-0.95,-0.31L-0.29,-0.4Z", size: 120, filled: true, color: ink, opacity: 1 },
      encoding: { x, y, tooltip: ["Setting", "Strength", "Utility"].map((field) => ({ field, type: "nominal" })) },
    },
  ];
  return {
    title: grid.dataset,
    description: `Attack strength against utility on ${grid.dataset}, a curve a defense`,
    width: "container",
    height: view.dataset === ALL ? 240 : 400,
    autosize: { type: "fit", contains: "padding" },
    // A layer without data has no extent, of which Vega would complain.
    layer: layers.filter((layer) => layer.data.values.length),
  };
}

function drawTradeoff(view) {
  const hidden = hiddenEntries();
  const grids = viewGrids(view);
  const host = byId("tradeoff");
  for (const id of [...views.keys()].filter((key) => key.startsWith("tradeoff-"))) {
    views.get(id).finalize();
    views.delete(id);
  }
  host.classList.toggle("single", grids.length === 1);
  fill(host, ...grids.map((_, i) => element("div", { id: `tradeoff-${i}`, class: "chart" })));
  if (!grids.length) host.append(element("p", { class: "note" }, "No graph has both this attack and this utility task."));
  return Promise.all(
    grids.map((grid, i) => draw(`tradeoff-${i}`, tradeoffSpec(grid, view, hidden), (datum) => datum.id && setState({ point: datum.id }))),
  );
}

function drawHeatmap(view, summary) {
  const attacks = board.attacks.filter((attack) => board.rankings[view.dataset]?.[attack]?.[view.utility]);
  const values = attacks.flatMap((attack) =>
    standings({ ...view, attack }).lines.map((line) => ({
      attack,
      Attack: attackTitle(attack),
      Defense: line.label,
      value: line[summary.name].value,
      shown: summary.percent ? (100 * line[summary.name].value).toFixed(0) : fixed(line[summary.name].value, 2),
      Value: `${summary.percent ? percent(line[summary.name].value) : fixed(line[summary.name].value)} ${interval(
        line[summary.name].low, line[summary.name].high, summary.percent ? percent : fixed)}`,
    })),
  );
  const order = sortedLines({ ...view, sort: summary.name, order: "" }).map((line) => line.label);
  const [lowest, highest] = summary.range;
  const bright = `(datum.value - ${lowest}) / ${highest - lowest} > 0.6`;
  return draw(
    "heatmap",
    {
      description: `${summary.title} of every defense against every attack`,
      data: { values },
      width: { step: 46 },
      height: { step: 26 },
      encoding: {
        x: { field: "Attack", type: "nominal", sort: attacks.map(attackTitle), title: null, axis: { labelAngle: -40, orient: "top", domain: false, ticks: false } },
        y: { field: "Defense", type: "nominal", sort: order, title: null, axis: { domain: false, ticks: false, labelLimit: 150 } },
        tooltip: ["Defense", "Attack", "Value"].map((field) => ({ field, type: "nominal" })),
      },
      layer: [
        {
          mark: { type: "rect", cursor: "pointer", cornerRadius: 2, stroke: cssValue("--paper"), strokeWidth: 1.5 },
          encoding: {
            color: { field: "value", type: "quantitative", scale: { scheme: "viridis", domain: summary.range }, legend: null },
          },
        },
        {
          mark: { type: "text", fontSize: 11, cursor: "pointer" },
          encoding: {
            text: { field: "shown" },
            color: { condition: { test: bright, value: "#111" }, value: "#fff" },
          },
        },
      ],
    },
    (datum) => datum.attack && setState({ attack: datum.attack }),
  );
}

const COSTS = {
  seconds: { title: "time to publish (s)", name: "Time", show: duration, scale: 1 },
  host: { title: "peak host memory (MiB)", name: "Host memory", show: bytes, scale: 2 ** -20 },
  gpu: { title: "peak GPU memory (MiB)", name: "GPU memory", show: bytes, scale: 2 ** -20 },
};

function drawGrowth(cost) {
  const quantity = COSTS[cost];
  const hidden = hiddenEntries();
  const indices = new Map(board.entries.map((entry, i) => [entry.label, i]));
  const values = board.growth
    .filter((g) => g[cost] > 0 && indices.has(g.entry) && !hidden.has(indices.get(g.entry)))
    .map((g) => ({
      entry: indices.get(g.entry),
      nodes: g.nodes,
      value: g[cost] * quantity.scale,
      generated: g.generated,
      Defense: g.entry,
      Graph: `${g.dataset}: ${g.nodes.toLocaleString("en")} nodes, ${g.links.toLocaleString("en")} links`,
      Cost: quantity.show(g[cost]),
    }));
  const host = byId("growth");
  if (!values.length) {
    views.get("growth")?.finalize();
    views.delete("growth");
    fill(host, element("p", { class: "note" }, cost === "gpu" ? "Nothing here ran on a GPU." : "Nothing to show."));
    return Promise.resolve();
  }
  const x = { field: "nodes", type: "quantitative", scale: { type: "log", nice: false, padding: 12 }, title: "nodes", axis: { format: "~s", tickCount: 5 } };
  const y = { field: "value", type: "quantitative", scale: { type: "log" }, title: quantity.title, axis: { format: "~g", tickCount: 6 } };
  const colour = { field: "entry", type: "nominal", scale: colourScale(), legend: null };
  const tooltip = ["Defense", "Graph", "Cost"].map((field) => ({ field, type: "nominal" }));
  return draw("growth", {
    description: `${quantity.title} against the number of nodes`,
    width: "container",
    height: 320,
    autosize: { type: "fit", contains: "padding" },
    layer: [
      {
        data: { values: values.filter((g) => g.generated) },
        mark: { type: "line", strokeWidth: 1.8, tooltip: null },
        encoding: { x, y, color: colour },
      },
      {
        data: { values },
        mark: { type: "point", filled: true, size: 55 },
        encoding: {
          x,
          y,
          color: colour,
          opacity: { condition: { test: "datum.generated", value: 1 }, value: 0.5 },
          shape: { field: "entry", type: "nominal", scale: { domain: board.entries.map((_, i) => i), range: board.entries.map((_, i) => shapeOf(i)) }, legend: null },
          tooltip,
        },
      },
    ].filter((layer) => layer.data.values.length),
  });
}
