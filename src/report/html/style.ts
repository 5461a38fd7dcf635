// The look of report.html: one column, light and dark, readable on a phone. No network, no script.

export const STYLE = `
:root{color-scheme:light dark;--ink:#1c2530;--muted:#56616e;--paper:#fff;--card:#f6f8fa;--line:#dde2e8;--link:#0b5cad;
--good:#0a6b4b;--good-bg:#e3f4ec;--bad:#a3201a;--bad-bg:#fdeceb;--warn:#7a4d00;--warn-bg:#fdf3dc}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--muted:#a3adb9;--paper:#12161c;--card:#1b212a;--line:#303945;--link:#7db8f5;
--good:#7fd9b0;--good-bg:#12332a;--bad:#ff9e97;--bad-bg:#40191a;--warn:#f2c46d;--warn-bg:#3a2c0d}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 20px}
header{padding-top:32px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.3rem;margin:48px 0 12px;padding-top:8px;border-top:1px solid var(--line)}
h3{font-size:1.08rem;margin:32px 0 8px;overflow-wrap:anywhere}
p{margin:8px 0}
a{color:var(--link)}
code{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.92em;background:var(--card);padding:1px 5px;border-radius:4px}
.sub,.note,figcaption,.limit{color:var(--muted)}
.note,figcaption{font-size:.86rem;margin:6px 0}
nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin:16px 0 0;font-size:.92rem}
.banner{border-left:5px solid;border-radius:4px;padding:9px 14px;margin:12px 0;overflow-wrap:anywhere}
.banner.bad{border-color:var(--bad);background:var(--bad-bg)}
.banner.warn{border-color:var(--warn);background:var(--warn-bg)}
.banner strong{margin-right:6px}.banner.bad strong{color:var(--bad)}.banner.warn strong{color:var(--warn)}
.arms{display:grid;gap:18px;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}
.arm{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 18px 16px}
.arm>h3{margin:0 0 6px;font-size:1.15rem}
.arm .role{font-weight:400;color:var(--muted);font-size:.9rem}
.answer{border-top:1px solid var(--line);padding-top:10px;margin-top:10px}
.answer .head{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline;justify-content:space-between}
.badge{font-weight:600;font-size:.84rem;border-radius:99px;padding:2px 11px;white-space:nowrap}
.badge.good{color:var(--good);background:var(--good-bg)}.badge.bad{color:var(--bad);background:var(--bad-bg)}.badge.warn{color:var(--warn);background:var(--warn-bg)}
dl.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(44%,190px),1fr));gap:10px 16px;margin:10px 0 6px}
dl.figures dt{font-size:.82rem;color:var(--muted)}
dl.figures dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
dl.figures .limit,td .limit{display:block;font-weight:400;font-size:.82rem;white-space:normal}td .limit{min-width:5.5rem}
dl.figures a,td a{color:inherit;text-decoration:none}
dl.figures a:hover,td a:hover,dl.figures a:focus,td a:focus{text-decoration:underline;color:var(--link)}
dl.terms dt{font-weight:600}dl.terms dd{margin:0 0 8px}
.scroll{overflow-x:auto;margin:6px 0;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;font-size:.9rem;min-width:100%}
table.pairs{min-width:0}table.pairs th[scope=row]{min-width:15rem}table.pairs td{overflow-wrap:anywhere}
caption{text-align:left;font-weight:600;padding:14px 0 6px}
.mark{color:var(--bad);font-weight:700}
th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600;color:var(--muted);font-size:.83rem}
th[scope=col]{vertical-align:bottom;white-space:normal}th[scope=row]{white-space:nowrap;font-size:.9rem;font-weight:500;color:inherit}
th[scope=row] a{color:var(--link)}table.pairs th[scope=row]{color:var(--muted);white-space:normal}
.r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.bad td:nth-child(-n+2){color:var(--bad)}tr.warn td:nth-child(-n+2){color:var(--warn)}tr.muted td{color:var(--muted)}
td{overflow-wrap:break-word;max-width:34rem}
figure{margin:22px 0}
.paper{background:#fff;border:1px solid var(--line);border-radius:10px;overflow-x:auto;padding:4px}
.paper svg{display:block;width:100%;height:auto;min-width:620px;max-width:860px;margin:0 auto}.paper .frame{display:none}
section:target>h3{background:var(--warn-bg);box-shadow:0 0 0 6px var(--warn-bg);border-radius:2px}

footer{color:var(--muted);font-size:.86rem;padding-top:28px;padding-bottom:48px}
@media(max-width:560px){table.pairs th[scope=row]{min-width:8rem}main,header,footer{padding:0 14px}header{padding-top:20px}h1{font-size:1.4rem}th,td{padding-right:10px}}
@media print{nav{display:none}.paper{break-inside:avoid}}
`;
