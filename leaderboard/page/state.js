// What is shown, kept in the part of the address behind `#`: a link reproduces the view.

const DEFAULTS = {
  dataset: ALL,
  attack: board.attacks[0] ?? "",
  utility: board.utilities[0]?.name ?? "",
  sort: "strength",
  order: "",
  filter: "",
  hide: "",
  give: "5",
  cost: "seconds",
  point: "",
  theme: "",
};

const CHOICES = {
  dataset: () => [ALL, ...board.grids.map((grid) => grid.dataset)],
  attack: () => board.attacks,
  utility: () => board.utilities.map((u) => u.name),
  sort: () => COLUMNS.map((column) => column.key),
  order: () => ["", "up", "down"],
  cost: () => Object.keys(COSTS),
  theme: () => ["", "light", "dark"],
};

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key);
    // A link may be older than the board: what is unknown falls back to the default.
    if (value !== null && (!CHOICES[key] || CHOICES[key]().includes(value))) state[key] = value;
  }
  if (!(Number(state.give) >= 0 && Number(state.give) <= 50)) state.give = DEFAULTS.give;
  return state;
}

function stateHash(state) {
  const changed = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
  return new URLSearchParams(changed).toString();
}

let state = { ...DEFAULTS };

function showAddress() {
  const hash = stateHash(state);
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function setState(changes) {
  state = { ...state, ...changes };
  showAddress();
  render(Object.keys(changes));
}

function followAddress() {
  state = readState();
  showAddress();
  render(Object.keys(state));
}

const hiddenEntries = () => new Set(state.hide ? state.hide.split(",").map(Number) : []);
