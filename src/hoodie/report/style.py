"""The style of the page: one sheet, light and dark."""

CSS = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5c6878; --line: #e2e6ec;
  --base: #2f6fdb; --log: #e08a1e; --older: #b9c1cd; --bad: #cf3d4d; --good: #2c9a68; --service: #8a6fd1; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1b2129; --ink: #e6eaf0; --soft: #98a4b5; --line: #2d3540;
  --base: #6ea0f5; --log: #f0ab55; --older: #566274; --bad: #f0717f; --good: #58c492; --service: #b39cf0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 15px; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { font-size: 28px; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 17px; margin: 0 0 4px; }
h3 { font-size: 14px; margin: 22px 0 8px; color: var(--soft); font-weight: 600; }
p { margin: 0 0 14px; color: var(--soft); }
header p { margin: 4px 0 0; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 20px 24px;
  margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 12px; margin-top: 22px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 14px 18px; }
.tile b { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-family: inherit; font-size: 12px; fill: var(--soft); }
svg text.name { fill: var(--ink); }
.grid { stroke: var(--line); stroke-width: 1; }
.axis { stroke: var(--older); stroke-width: 1; }
rect.base { fill: var(--base); } rect.log { fill: var(--log); } rect.older { fill: var(--older); }
rect.bad { fill: var(--bad); } rect.service { fill: var(--service); } rect.good { fill: var(--good); }
.dot { stroke-width: 2; stroke: var(--card); } .dot.base { fill: var(--base); } .dot.log { fill: var(--log); }
.dot.bad { fill: var(--bad); } .dot.service { fill: var(--service); }
.dot.open { fill: var(--card); stroke: var(--bad); }
.key { display: flex; flex-wrap: wrap; gap: 6px 22px; margin-top: 10px; font-size: 13px; color: var(--soft); }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 1px solid var(--line); }
th, td { padding: 6px 14px 6px 0; white-space: nowrap; }
tbody tr + tr td { border-top: 1px solid var(--line); }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.jobs { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 14px 28px; }
.jobs h3 { margin: 0 0 2px; color: var(--ink); }
.jobs p { margin: 0; font-size: 14px; }
@media (max-width: 760px) { main { padding: 20px 10px 32px; } section { padding: 14px 12px; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); } .tile b { font-size: 19px; }
  .scroll > svg { min-width: 820px; } }
footer { margin-top: 22px; color: var(--soft); font-size: 13px; }
"""
