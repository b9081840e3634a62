"""How the report looks: light and dark, on a wide screen and on a phone."""

STYLE = """
:root { --ground: #faf9f6; --card: #ffffff; --ink: #1d2127; --faint: #69707b; --line: #e6e3dc; --grid: #eceae4;
  --a: #a9a3cf; --b: #5746c4; --c: #cf5a1d; --ours: #fbe3d3; --ours-ink: #8c3606;
  --theirs: #d8f0e6; --theirs-ink: #0b563f;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ground: #131519; --card: #1b1e24; --ink: #e7e7e4; --faint: #979ea9;
  --line: #2d323b; --grid: #272b33; --a: #6f6a96; --b: #a89cff; --c: #ff9a63; --ours: #4a2a17; --ours-ink: #ffc7a3;
  --theirs: #14392d; --theirs-ink: #9fe6c9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 80px; }
header p { margin: 4px 0 0; color: var(--faint); }
h1 { margin: 0; font-size: 2.1rem; letter-spacing: -0.02em; line-height: 1.2; }
h2 { margin: 52px 0 4px; font-size: 1.25rem; letter-spacing: -0.01em; }
h2 + p, .note { margin: 0 0 16px; color: var(--faint); font-size: 0.93rem; max-width: 92ch; }
nav { margin-top: 18px; display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 0.93rem; }
a { color: var(--b); text-decoration: none; } a:hover { text-decoration: underline; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-top: 28px; }
.tile, .card, .chart, .box { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.tile { padding: 14px 16px; } .tile span { display: block; color: var(--faint); font-size: 0.82rem; }
.tile b { display: block; font-size: 1.6rem; font-weight: 650; letter-spacing: -0.02em;
  font-variant-numeric: tabular-nums; }
.tile.first b { color: var(--b); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 14px; margin-top: 16px; }
figure { margin: 0; } .chart { padding: 14px 14px 6px; } svg { display: block; width: 100%; height: auto; }
figcaption { font-size: 0.85rem; color: var(--faint); } .chart figcaption b { color: var(--ink); margin-right: 12px; }
.chart figcaption span { margin-right: 12px; white-space: nowrap; }
.key { display: inline-block; width: 12px; height: 3px; border-radius: 2px; margin: 0 5px 3px 0; }
.key.a { background: var(--a); } .key.b { background: var(--b); } .key.c { background: var(--c); }
.grid { stroke: var(--grid); } .tick { fill: var(--faint); font-size: 11px; }
.line path { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.line.a path { stroke: var(--a); } .line.b path { stroke: var(--b); } .line.c path { stroke: var(--c); }
.line.a circle { fill: var(--a); } .line.b circle { fill: var(--b); } .line.c circle { fill: var(--c); }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; } .box { padding: 6px 16px; overflow-x: auto; }
th { text-align: left; font-weight: 600; color: var(--faint); font-size: 0.82rem; }
th, td { padding: 8px 14px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 0.83rem; }
td code { color: var(--faint); overflow-wrap: anywhere; }
pre { margin: 0; padding: 10px 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.card { padding: 12px 16px 14px; margin-top: 10px; overflow-wrap: anywhere; }
.card .source { color: var(--faint); margin: 0 0 6px; display: flex; gap: 12px; justify-content: space-between; }
.card .source span:last-child { font-size: 0.82rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 24px; } .sides p { margin: 0; }
.sides small { display: block; color: var(--faint); font-size: 0.75rem; }
mark { border-radius: 4px; padding: 0 3px; } mark.ours { background: var(--ours); color: var(--ours-ink); }
mark.theirs { background: var(--theirs); color: var(--theirs-ink); }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 14px; margin-top: 16px; }
.maps .card { margin: 0; overflow-x: auto; } .maps .card p { margin: 0 0 8px; font-size: 0.9rem; }
.frame { fill: var(--ground); stroke: var(--line); vector-effect: non-scaling-stroke; } .cell { fill: var(--b); }
.map { margin: 0 auto; } .word { fill: var(--ink); font-size: 11px; }
.heads { display: grid; grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 12px; margin-top: 12px; }
.head svg { aspect-ratio: 1; } .head figcaption { margin-top: 4px; font-size: 0.76rem; line-height: 1.3; }
summary { cursor: pointer; padding: 8px 0; color: var(--b); }
footer { margin-top: 60px; color: var(--faint); font-size: 0.85rem; }
@media (max-width: 640px) { main { padding: 24px 14px 60px; } h1 { font-size: 1.6rem; }
  .sides { grid-template-columns: 1fr; } .tiles { grid-template-columns: 1fr 1fr; } .tile b { font-size: 1.35rem; }
  .charts, .maps { grid-template-columns: 1fr; } .card, .tile { padding: 12px; }
  .scores tr { display: grid; grid-template-columns: 1fr auto auto; border-bottom: 1px solid var(--line); }
  .scores td:last-child { grid-column: 1 / -1; padding-top: 0; } .scores td, .scores th { border: 0; }
  .scores th:last-child { display: none; } .scores tr:last-child { border: 0; } }
@media print { .card, .chart, .tile { break-inside: avoid; } nav { display: none; } }
"""
