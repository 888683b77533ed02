// Elements are built from text and never from markup: whatever a row says shows as it is.

const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

const UNKNOWN = "–";

function fixed(value, digits = 3) {
  return value === null || value === undefined ? UNKNOWN : value.toFixed(digits);
}

function percent(share, digits = 0) {
  return share === null || share === undefined ? UNKNOWN : `${(100 * share).toFixed(digits)} %`;
}

function interval(low, high, show) {
  return low === null || low === undefined ? "" : `[${show(low)}, ${show(high)}]`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 0.095) return `${(1000 * seconds).toFixed(seconds < 0.0095 ? 1 : 0)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${seconds.toFixed(0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

function bytes(count) {
  if (count === null || count === undefined) return UNKNOWN;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (count < 1024) return unit === "B" ? `${count} B` : `${count.toFixed(1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} GiB`;
}

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages opened from disk have no clipboard; a selection does.
    const area = element("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1500);
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Quoted as CSV wants it; a spreadsheet must not take a name for a formula.
function csvField(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
