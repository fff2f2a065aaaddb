"""The page of `hoodie serve`: all tables, problems first, sortable. It asks the server for what it shows."""

from hoodie.report.style import CSS

_STYLE = """
main { max-width: 1400px; }
.bar { display: flex; flex-wrap: wrap; gap: 10px 16px; align-items: baseline; margin: 18px 0 0; }
.bar input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 6px 10px; min-width: 0; flex: 1 1 220px; max-width: 420px; }
.bar span { color: var(--soft); font-size: 13px; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th[aria-sort] button::after { content: " ▾"; } th[aria-sort=ascending] button::after { content: " ▴"; }
td.t { white-space: normal; overflow-wrap: anywhere; min-width: 180px; }
td.t small { display: block; color: var(--soft); }
td.w { white-space: normal; min-width: 150px; overflow-wrap: anywhere; }
td.w small { display: block; color: var(--soft); }
td { vertical-align: top; }
.badge { display: inline-block; border-radius: 6px; padding: 1px 7px; font-size: 12px; font-weight: 600;
  color: var(--card); background: var(--good); }
.badge.down, .badge.ERROR { background: var(--bad); } .badge.WARNING { background: var(--log); }
.badge.NOTE { background: var(--older); color: var(--ink); }
a { color: var(--base); }
@media (max-width: 700px) {
  main { padding: 18px 10px; } section { padding: 12px; }
  table, thead, tbody, tbody tr, td { display: block; }
  thead tr { display: flex; flex-wrap: wrap; gap: 2px 14px; border-bottom: 1px solid var(--line); padding-bottom: 6px; }
  th { border: 0; padding: 0; } tbody tr { padding: 8px 0; } tbody tr + tr { border-top: 1px solid var(--line); }
  tbody tr + tr td { border: 0; }
  td { padding: 1px 0; white-space: normal; }
  td.n { display: inline-block; text-align: left; margin-right: 16px; }
  td.n:empty, td.w:empty { display: none; }
  td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); }
}
"""

_SCRIPT = """
"use strict";
const order = {down: 4, ERROR: 3, WARNING: 2, NOTE: 1, "": 0};
const size = n => { const u = ["B", "kB", "MB", "GB", "TB", "PB"]; let i = 0;
  while (n >= 999.5 && i < 5) { n /= 1000; i++; } return (i && n < 9.95 ? n.toFixed(1) : n.toFixed(0)) + " " + u[i]; };
const age = s => s < 0 ? "" : s < 120 ? s.toFixed(0) + " s" : s < 7200 ? (s / 60).toFixed(0) + " min"
  : s < 172800 ? (s / 3600).toFixed(0) + " h" : (s / 86400).toFixed(0) + " days";
const stat = name => t => t.stats ? t.stats[name] : -1;
const bytes = n => n < 0 ? "" : size(n), count = n => n < 0 ? "" : n.toLocaleString("en");
const columns = [
  ["state", t => order[t.worst], null, true], ["table", t => (t.name || t.path).toLowerCase(), null, false],
  ["size", stat("base_bytes"), bytes, true], ["logs", stat("log_bytes"), bytes, true],
  ["logs to base", stat("log_share"), v => v < 0 ? "" : (v * 100).toFixed(0) + " %", true],
  ["older", stat("older_bytes"), bytes, true], ["files", stat("base_files"), count, true],
  ["small", stat("small_files"), count, true], ["pending", t => t.pending, count, true],
  ["newest commit", t => t.age, age, true], ["findings", t => t.findings.reduce((n, f) => n + f.count, 0), null, true]];
let data = {tables: []}, sort = 0, falling = true;
const make = (tag, text, name) => { const e = document.createElement(tag); if (text) e.textContent = text;
  if (name) e.className = name; return e; };
const head = document.querySelector("thead tr");
columns.forEach(([name], i) => { const th = make("th", "", i > 1 && i < 10 ? "n" : ""), b = make("button", name);
  th.scope = "col";
  b.onclick = () => { falling = sort === i ? !falling : columns[i][3]; sort = i; draw(); };
  th.append(b); head.append(th); });
function draw() {
  const words = document.querySelector("input").value.toLowerCase().split(" ").filter(Boolean);
  const value = columns[sort][1];
  const rows = data.tables.filter(t => words.every(w => [t.path, t.name, t.type, t.worst || "fine", t.problem,
    ...t.findings.map(f => f.fault)].join(" ").toLowerCase().includes(w)));
  rows.sort((a, b) => { const x = value(a), y = value(b);
    return (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1) || (a.path < b.path ? -1 : 1); });
  [...head.children].forEach((th, i) => i === sort ? th.setAttribute("aria-sort", falling ? "descending" : "ascending")
    : th.removeAttribute("aria-sort"));
  document.querySelector("tbody").replaceChildren(...rows.map(t => {
    const tr = make("tr"), state = make("td");
    state.append(make("span", t.worst ? t.worst.toLowerCase() : "fine", "badge " + t.worst)); tr.append(state);
    const called = t.name || t.path.split("/").filter(Boolean).pop();
    const name = make("td", "", "t"), link = make("a", called); link.href = "/tables/" + t.number;
    name.append(t.up ? link : make("b", called), make("small", t.path + (t.type ? " · " +
      t.type.toLowerCase().replaceAll("_", "-") : ""))); tr.append(name);
    columns.slice(2, 10).forEach(([title, of, text]) => { const td = make("td", text(of(t)), "n");
      td.dataset.name = title; tr.append(td); });
    const told = t.findings.map(f => f.fault + (f.count > 1 ? ` (${f.count})` : ""));
    const td = make("td", told.join(", "), "w"); if (!t.up) td.append(make("small", t.problem));
    tr.append(td); return tr; }));
  const bad = data.tables.filter(t => order[t.worst] > 1).length;
  document.querySelector("#told").textContent = `${rows.length} of ${data.tables.length} tables, ${bad} with ` +
    `problems; looked at ${new Date(data.looked * 1000).toLocaleTimeString()} in ${data.seconds.toFixed(1)} s`;
  document.title = (bad ? `(${bad}) ` : "") + "Tables";
}
async function load() {
  try { data = await (await fetch("/tables.json")).json(); draw(); }
  catch { document.querySelector("#told").textContent = "The server does not answer: what is shown may be old."; }
}
document.querySelector("input").oninput = draw;
load(); setInterval(load, 5000);
"""


def fleet_page() -> str:
    """The page."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Tables</title>'
        f"<style>{CSS}{_STYLE}</style></head><body><main><header><h1>Tables</h1></header>"
        '<div class="bar"><input type="search" placeholder="Filter: a name, a path, a finding" '
        'aria-label="Filter tables"><span id="told" role="status">Loading</span></div>'
        '<section><div class="scroll"><table><thead><tr></tr></thead><tbody></tbody></table></div></section>'
        '<footer>Written by Hoodie. <a href="/metrics">Metrics</a> for Prometheus.</footer></main>'
        f"<script>{_SCRIPT}</script></body></html>"
    )
