// The data and what follows from it, by the rules of docs/leaderboard.md. A cell counts where the undefended graph has a
// value; a setting that lacks one of the view's cells counts as undefended on that seed.

const board = JSON.parse(byId("data").textContent);
const ALL = "*";
const WORST_NAMES = { worst: "worst of all", "worst-paper": "worst of the paper's eight" };
// Shares are quotients of rounded numbers.
const ROUNDING = 1e-5;

const attackTitle = (view) => (Object.hasOwn(WORST_NAMES, view) ? WORST_NAMES[view] : view);
const utilityTitle = (name) => board.utilities.find((u) => u.name === name)?.title ?? name;
const gridOf = (dataset) => board.grids.find((grid) => grid.dataset === dataset);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function attackIndices(grid, view) {
  const wanted = Object.hasOwn(board.worst, view) ? board.worst[view] : [view];
  return grid.attacks.flatMap((name, i) => (wanted === null || wanted.includes(name) ? [i] : []));
}

// The undefended graph in a view: which seeds and attacks count, and what it reaches. The worst of few attacks is not
// the worst of many, so only the seeds on which the most were run count.
function reference(grid, attack, utility) {
  const attacks = attackIndices(grid, attack);
  const task = grid.utilities.indexOf(utility);
  const seeds = [];
  if (task >= 0) {
    const measured = grid.seeds.map((_, i) => attacks.filter((k) => grid.undefendedStrength[i][k] !== null));
    const most = Math.max(...measured.map((names) => names.length));
    grid.seeds.forEach((seed, i) => {
      const counted = measured[i];
      const useful = grid.undefendedUtility[i][task];
      if (counted.length && counted.length === most && useful > 0) {
        const strength = Math.max(...counted.map((k) => grid.undefendedStrength[i][k]));
        seeds.push({ seed, index: i, counted, strength, utility: useful });
      }
    });
  }
  return { task, seeds };
}

const viewGrids = (view) =>
  board.grids.filter(
    (grid) =>
      (view.dataset === ALL || view.dataset === grid.dataset) &&
      reference(grid, view.attack, view.utility).seeds.length,
  );

// Strength and share of utility of every setting on every seed that counts.
function curve(grid, entry, attack, utility) {
  const { task, seeds } = reference(grid, attack, utility);
  return board.entries[entry].settings.map((_, setting) =>
    seeds.map(({ seed, index, counted, strength, utility: full }) => {
      const strengths = counted.map((k) => grid.strength[entry][setting][index][k]);
      const useful = grid.utility[entry][setting][index][task];
      const charged = useful === null || strengths.includes(null);
      return charged
        ? { seed, charged, strength, kept: 1, utility: full }
        : { seed, charged, strength: Math.max(...strengths), kept: useful / full, utility: useful };
    }),
  );
}

// Mean and t-interval over seeds, cut to the range that the values can have.
function meanInterval(values, lowest, highest) {
  const n = values.length;
  const centre = mean(values);
  if (n < 2) return { mean: centre, low: null, high: null };
  const variance = values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (n - 1);
  const t = board.tQuantiles[Math.min(n - 2, board.tQuantiles.length - 1)];
  const half = t * Math.sqrt(variance / n);
  return { mean: centre, low: Math.max(lowest, centre - half), high: Math.min(highest, centre + half) };
}

// The points of one entry's curve; a point is dominated if another one, or the undefended graph, is better in mean.
function pointsOf(grid, entry, attack, utility) {
  const undefended = reference(grid, attack, utility).seeds;
  const points = curve(grid, entry, attack, utility).map((cells, setting) => ({
    dataset: grid.dataset,
    entry,
    setting,
    strength: meanInterval(cells.map((cell) => cell.strength), 0.5, 1),
    utility: meanInterval(cells.map((cell) => cell.utility), 0, 1),
    kept: meanInterval(cells.map((cell) => cell.kept), 0, Infinity),
    charged: cells.filter((cell) => cell.charged).map((cell) => cell.seed),
    seeds: cells.map((cell) => cell.seed),
  }));
  const rivals = points.map((p) => [p.kept.mean, p.strength.mean]);
  rivals.push([1, mean(undefended.map((s) => s.strength))]);
  for (const point of points) {
    point.dominated = rivals.some(
      ([kept, strength]) =>
        kept >= point.kept.mean &&
        strength <= point.strength.mean &&
        (kept > point.kept.mean || strength < point.strength.mean),
    );
  }
  return points;
}

// For every entry the lowest strength among the settings that keep enough utility, seed by seed, then averaged:
// the ranking's first column, for any share. Best entries first.
function bestWithin(view, givenUp) {
  const grids = viewGrids(view);
  return board.entries
    .map((_, entry) => {
      const chosen = new Map();
      const perGrid = grids.map((grid) => {
        const cells = curve(grid, entry, view.attack, view.utility);
        return reference(grid, view.attack, view.utility).seeds.map((seed, i) => {
          let best = { strength: seed.strength, setting: null };
          cells.forEach((row, setting) => {
            const enough = row[i].kept >= 1 - givenUp - ROUNDING;
            if (enough && !row[i].charged && row[i].strength < best.strength) best = { strength: row[i].strength, setting };
          });
          const label = best.setting === null ? null : board.entries[entry].settings[best.setting].label;
          chosen.set(label, (chosen.get(label) ?? 0) + 1);
          return best.strength;
        });
      });
      return { entry, strength: mean(perGrid.map(mean)), perGrid, chosen };
    })
    .sort((a, b) => a.strength - b.strength);
}

const undefendedStrength = (view) =>
  mean(viewGrids(view).map((grid) => mean(reference(grid, view.attack, view.utility).seeds.map((s) => s.strength))));

// What features alone reach on a graph, or null where that was not measured.
function floorOf(grid, attack, utility) {
  const { task, seeds } = reference(grid, attack, utility);
  const strengths = seeds.map((s) => grid.floorStrength[s.index]);
  const utilities = seeds.map((s) => grid.floorUtility[s.index][task]);
  return {
    strength: strengths.includes(null) ? null : mean(strengths),
    utility: utilities.includes(null) ? null : mean(utilities),
  };
}

// One line of the ranking: numbers by column, and the place in each summary.
function standings(view) {
  const ranking = board.rankings[view.dataset]?.[view.attack]?.[view.utility];
  if (!ranking) return { seeds: {}, unmeasured: [], lines: [] };
  const grids = viewGrids(view);
  const lines = ranking.lines.map((stored, i) => {
    const isReference = i >= board.entries.length;
    const [cells, sound, ...summaries] = isReference ? stored.slice(1) : stored;
    const costs = isReference ? [] : grids.map((grid) => grid.costs[i]);
    const largest = (k) => costs.reduce((most, cost) => (cost[k] === null ? most : Math.max(most ?? 0, cost[k])), null);
    const line = {
      isReference,
      entry: isReference ? null : i,
      label: isReference ? stored[0] : board.entries[i].label,
      name: isReference ? stored[0] : board.entries[i].name,
      source: isReference ? "" : board.entries[i].source,
      coverage: isReference ? null : sound / cells,
      cells,
      sound,
      seconds: largest(0),
      host: largest(1),
      gpu: largest(2),
    };
    board.summaries.forEach(({ name }, k) => {
      const [value, low, high, rank, best, worst, group] = summaries[k];
      line[name] = { value, low, high, rank, best, worst, group };
    });
    return line;
  });
  return { seeds: ranking.seeds, unmeasured: ranking.unmeasured, lines };
}
