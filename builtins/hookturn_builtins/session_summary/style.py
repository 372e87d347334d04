"""The page's style sheet: light and dark by the reader's preference, no font and no picture from anywhere."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--bg:#f7f8fa;--card:#fff;--ink:#1b2330;--soft:#566174;--line:#dde2ea;--link:#1d4ed8;
--fine:#166534;--wrong:#b3261e;--denied:#8a4b00;--wrong-bg:#fdecea;--denied-bg:#fff3e0;--band0:#eef1f6;--band1:#e2e7ef;
--in:#2f62d9;--cache:#a9c0f5;--out:#d9730d;--tool:#0f8579;--hook:#8b3fd1;--rest:#aab4c4;--code:#eef1f6}
@media (prefers-color-scheme:dark){:root{--bg:#12161d;--card:#1a202a;--ink:#e5e9f0;--soft:#9aa6b8;--line:#2d3644;--link:#8ab4ff;
--fine:#6fd08c;--wrong:#ff8a80;--denied:#ffb95c;--wrong-bg:#3a1f1f;--denied-bg:#37290f;--band0:#222a36;--band1:#2a3341;
--in:#6f9bff;--cache:#35507f;--out:#ffa24c;--tool:#3fc1b0;--hook:#c08bf5;--rest:#566174;--code:#242c38}}
*{box-sizing:border-box}
html{scroll-padding-top:3.5rem}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer,nav ul{max-width:76rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.75rem}
.kind{margin:0;color:var(--soft);font-size:.85rem;letter-spacing:.04em;text-transform:uppercase}
h1{font-size:1.7rem;line-height:1.25;margin:.1rem 0 .8rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:0 0 .8rem}
h3{font-size:1rem;margin:0}
h4{font-size:.85rem;margin:1rem 0 .3rem;color:var(--soft)}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-999rem;top:.5rem;background:var(--card);padding:.5rem 1rem;z-index:2}
.skip:focus{left:.5rem}
nav{position:sticky;top:0;background:var(--bg);border-bottom:1px solid var(--line);z-index:1}
nav ul{display:flex;gap:1.1rem;list-style:none;padding-top:.6rem;padding-bottom:.6rem;overflow-x:auto;white-space:nowrap}
nav a{text-decoration:none;display:inline-block;padding:.1rem 0}
nav a:hover{text-decoration:underline}
.facts{display:flex;flex-wrap:wrap;gap:.3rem 2rem;margin:0 0 1.1rem;font-size:.92rem}
.facts div{display:flex;gap:.5rem;min-width:0}
.facts dt,.cards dt{color:var(--soft)}
.facts dd,.cards dd{margin:0;min-width:0;overflow-wrap:anywhere}
.notes{margin:0 0 1.1rem;padding:.6rem 1rem .6rem 2rem;background:var(--denied-bg);border-left:4px solid var(--denied);border-radius:6px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.75rem;margin:0 0 1.25rem}
.cards div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.7rem .9rem}
.cards dt{font-size:.85rem}
.cards strong{display:block;font-size:1.45rem;line-height:1.25;font-variant-numeric:tabular-nums}
.cards small{color:var(--soft);font-size:.8rem}
.cards .wrong strong{color:var(--wrong)}
.cards .denied strong{color:var(--denied)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.1rem 1.25rem 1.25rem;margin:1.25rem 0;min-width:0}
.asked{margin:0;padding:0;list-style:none}
.asked>li{border-top:1px solid var(--line);padding:.8rem 0}
.asked>li:first-child{border-top:0;padding-top:0}
.asked h3{font-size:.85rem;color:var(--soft);margin:.5rem 0 .25rem}
.about,.gap{margin:0;color:var(--soft);font-size:.9rem}
.gap{padding:.6rem 0}
pre,code{font:.86rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{margin:0;padding:.6rem .8rem;background:var(--code);border-radius:8px;white-space:pre-wrap;overflow-wrap:anywhere;max-height:40rem;overflow-y:auto;unicode-bidi:plaintext}
code{white-space:pre-wrap;overflow-wrap:anywhere}
details>summary{cursor:pointer}
.long>summary{background:var(--code);border-radius:8px;padding:.5rem .8rem;overflow-wrap:anywhere;font-size:.92rem}
.long[open]>summary{margin-bottom:.4rem}
.more{color:var(--soft);white-space:nowrap;font-size:.82rem}
.wide{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem}
table.many{min-width:44rem}
time,.at{white-space:nowrap}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
th,td{text-align:left;vertical-align:top;padding:.4rem 1.2rem .4rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
thead th{color:var(--soft);font-weight:600;white-space:nowrap;overflow-wrap:normal}
tbody th{font-weight:500}
tbody tr:last-child>*{border-bottom:0}
td,th{min-width:4rem}
td:nth-child(n+2) code{color:var(--ink)}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.said{color:var(--soft)}
.status{white-space:nowrap;border-radius:5px}
.fine{color:var(--fine)}
.wrong{color:var(--wrong)}
.denied{color:var(--denied)}
span.status.wrong{background:var(--wrong-bg);padding:.05rem .4rem}
span.status.denied{background:var(--denied-bg);padding:.05rem .4rem}
.turn{border:1px solid var(--line);border-radius:10px;margin:.6rem 0;padding:0 .9rem}
.turn[open]{padding-bottom:.9rem}
.turn.sub{margin-left:1.5rem}
.turn>summary{padding:.6rem 0}
.turn>summary h3{display:inline}
.figures{color:var(--soft);font-size:.9rem}
figure{margin:0 0 1.25rem;min-width:0}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1.25rem}
.pair figure{margin:0}
figcaption p{margin:.1rem 0 .4rem;color:var(--soft);font-size:.9rem}
.plot{overflow-x:auto}
.chart{display:block;width:100%;min-width:26rem;height:auto}
.chart.whole{min-width:48rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;margin:.2rem 0 .5rem;font-size:.88rem;color:var(--soft)}
.key{width:.75rem;height:.75rem;vertical-align:-.05rem}
figure details{margin-top:.5rem;font-size:.92rem}
.axis{font-size:12px;fill:var(--soft)}
.axis.end{text-anchor:end}
.axis.mid{text-anchor:middle}
.grid{stroke:var(--line);stroke-width:1}
.band0{fill:var(--band0)}
.band1{fill:var(--band1)}
.s-in{fill:var(--in)}
.s-cache{fill:var(--cache)}
.s-out{fill:var(--out)}
.s-tool{fill:var(--tool)}
.s-hook{fill:var(--hook)}
.s-rest{fill:var(--rest)}
.mark.fine{fill:var(--in)}
.mark.wrong{fill:var(--wrong)}
.mark.denied{fill:none;stroke:var(--denied);stroke-width:2}
footer{color:var(--soft);font-size:.85rem;padding-bottom:2rem}
@media print{nav,.skip{display:none}section{break-inside:auto;border:0;padding:0}pre{max-height:none}}
@media (forced-colors:active){.mark,.chart rect{forced-color-adjust:none}}
"""
