// From the state to the page, and from what the reader does to the state.

function applyTheme() {
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = state.theme || preferred;
  byId("theme").setAttribute("aria-pressed", String(isDark()));
}

function fillSelect(id, options) {
  fill(byId(id), ...options.map(([value, title]) => element("option", { value }, title)));
}

let drawing = Promise.resolve();

// Which parts of the page depend on which parts of the state.
const PARTS = [
  { on: ["theme"], run: applyTheme },
  { on: ["dataset", "attack", "utility", "give"], run: () => renderAnswer(state) },
  { on: ["dataset", "attack", "utility", "sort", "order", "filter", "theme"], run: () => renderRanking(state) },
  { on: ["hide", "theme"], run: renderLegend },
  { on: ["dataset", "attack", "utility"], run: () => renderPoints(state) },
  { on: ["dataset", "attack", "utility", "hide", "theme"], run: () => drawTradeoff(state) },
  { on: ["dataset", "utility", "sort", "theme"], run: () => renderHeatmap() },
  { on: ["cost"], run: () => renderCosts(state) },
  { on: ["cost", "hide", "theme"], run: () => drawGrowth(state.cost) },
  { on: ["point", "attack", "utility"], run: () => showDetails(state.point, state) },
];

function renderHeatmap() {
  const summary = rankingSummary(state);
  byId("heatmap-about").textContent =
    `${heading(summary.title)}, ${state.dataset === ALL ? "mean over graphs" : state.dataset}; utility: ${utilityTitle(state.utility)}. Select a cell to choose its attack.`;
  return drawHeatmap(state, summary);
}

function render(changed) {
  for (const id of ["dataset", "attack", "utility", "cost", "filter", "give"]) {
    if (byId(id).value !== state[id]) byId(id).value = state[id];
  }
  const results = PARTS.filter((part) => part.on.some((key) => changed.includes(key))).map((part) => part.run());
  drawing = Promise.all([drawing, ...results]).then(() => {
    document.body.dataset.drawn = stateHash(state);
  });
}

function start() {
  fillSelect("dataset", [[ALL, "all graphs (mean)"], ...board.grids.map((grid) => [grid.dataset, grid.nodes ? `${grid.dataset} (${grid.nodes.toLocaleString("en")} nodes)` : grid.dataset])]);
  fillSelect("attack", board.attacks.map((name) => [name, attackTitle(name)]));
  fillSelect("utility", board.utilities.map(({ name, title }) => [name, title]));
  fillSelect("cost", Object.entries(COSTS).map(([key, { name }]) => [key, name]));
  for (const id of ["dataset", "attack", "utility", "cost"]) {
    byId(id).addEventListener("change", (event) => setState({ [id]: event.target.value }));
  }
  for (const id of ["filter", "give"]) {
    byId(id).addEventListener("input", (event) => setState({ [id]: event.target.value }));
  }
  byId("view").addEventListener("submit", (event) => event.preventDefault());
  byId("csv").addEventListener("click", () => download("ppgsl-bench-ranking.csv", rankingCsv(state)));
  byId("copy-link").addEventListener("click", (event) => copyText(location.href, event.target));
  byId("theme").addEventListener("click", () => setState({ theme: isDark() ? "light" : "dark" }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.theme || render(["theme"]));
  const dialog = byId("details");
  byId("details-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => state.point && setState({ point: "" }));
  // The address is the state, so a link inside the page must not replace it.
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault();
    byId("ranking").focus();
    byId("ranking").scrollIntoView();
  });
  addEventListener("hashchange", followAddress);
  followAddress();
  renderGaps();
  renderFooter();
}

start();
