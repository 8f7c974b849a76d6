"use strict";
// Draws all messages of the run on a canvas: only what is in view, found by
// binary search. Text of the run reaches the page by textContent and fillText
// only. #m=1234 opens message 1234.
(function () {
  const $ = id => document.getElementById(id);
  const D = JSON.parse($("data").textContent);
  const N = D.dt.length;
  $("view").hidden = false;

  // Items: columns of numbers, as in the data.
  const T = new Float64Array(N), num = new Float64Array(N), flags = new Uint8Array(N);
  const DROPPED = 1, AGAIN = 2, TRIGGER = 4, HEAL = 8, BARE = 16, FAULT = 32, KEPT = 64, ONWARD = 128;
  for (let i = 0, t = 0, n = D.first, o = 0; i < N; i++) {
    t += D.dt[i]; T[i] = t; num[i] = n;
    if (o < D.odd.length && D.odd[o][0] === i) { flags[i] = D.odd[o][1]; num[i] = D.odd[o][2]; o++; }
    if (num[i] && !(flags[i] & AGAIN)) n = num[i] + 1;
  }
  const from = i => D.pairs[D.pair[i]][0], to = i => D.pairs[D.pair[i]][1];
  const type = i => D.types[D.pairs[D.pair[i]][2]], detail = i => D.text[D.detail[i]];
  // the values that a type does not say already
  const values = i => {
    const ty = type(i).toLowerCase(), said = ty.slice(ty.lastIndexOf(" ") + 1) + " ";
    return detail(i).split(/(?:^| )[A-Za-z_]+\d*=/).map(v => v.trim()).map(v => v.toLowerCase().startsWith(said) ? v.slice(said.length) : v)
      .filter((v, k, a) => v && a.indexOf(v) === k && !ty.includes(v.toLowerCase())).join(" ");
  };
  const short = i => flags[i] & BARE ? "packet, " + D.bytes[i] + " bytes" : type(i).replace(/^(resp|text) /, "");
  const end = Math.max(N ? T[N - 1] : 0, D.cut.length ? D.cut[1] : 0, ...D.marks.map(m => m.at), 1);

  // Squeezed time: a gap longer than 12 times the median (at least 2 ms) is
  // drawn as long as that, with a mark.
  const U = new Float64Array(N), breaks = [];
  let tail = 1; // scale of the time after the last item
  function squeeze(on) {
    breaks.length = 0;
    const gaps = Array.from(D.dt).sort((a, b) => a - b);
    const cap = on && N ? Math.max(2000, 12 * gaps[N >> 1]) : Infinity;
    for (let i = 0, u = 0; i < N; i++) {
      const g = i ? T[i] - T[i - 1] : Math.min(T[0], cap);
      if (i && g > cap) breaks.push([i, g]);
      u += Math.min(g, cap); U[i] = u;
    }
    tail = N && end > T[N - 1] ? Math.min(1, cap / (end - T[N - 1])) : 1;
  }
  // first item at or after v in a sorted column
  function lower(a, v) { let l = 0, h = N; while (l < h) { const m = (l + h) >> 1; if (a[m] < v) l = m + 1; else h = m; } return l; }
  function map(a, b, v, k) { // piecewise linear from column a to column b
    if (!N) return 0;
    const i = lower(a, v);
    if (i === 0) return b[0] + Math.max(v - a[0], -b[0]);
    if (i === N) return b[N - 1] + (v - a[N - 1]) * k;
    const d = a[i] - a[i - 1];
    return d > 0 ? b[i - 1] + (b[i] - b[i - 1]) * (v - a[i - 1]) / d : b[i];
  }
  const uOf = t => map(T, U, t, tail), tOf = u => map(U, T, u, 1 / tail);

  // View: from v0, height vh, in squeezed microseconds.
  let v0 = 0, vh = 1, sel = -1, hits = [], hit = -1, hitSet = new Set();
  const uEnd = () => Math.max(1, N ? uOf(end) : 1);
  function clampView() {
    vh = Math.min(Math.max(vh, 50), uEnd() * 1.04 + 100);
    v0 = Math.min(Math.max(v0, -vh * 0.06), Math.max(-vh * 0.06, uEnd() * 1.02 - vh * 0.9));
  }
  const main = $("main"), strip = $("strip"), g = main.getContext("2d"), s = strip.getContext("2d");
  let W = 0, H = 0, SW = 0, C = {};
  const HEAD = 40, LEFT = 84;
  function colours() {
    const st = getComputedStyle(document.documentElement);
    for (const k of ["ground", "ink", "soft", "faint", "panel", "arrow", "fail", "band", "band-edge", "lane", "heal", "trigger", "odd"]) C[k] = st.getPropertyValue("--" + k).trim();
  }
  function size() {
    const r = window.devicePixelRatio || 1;
    for (const c of [main, strip]) {
      const b = c.getBoundingClientRect();
      c.width = Math.round(b.width * r); c.height = Math.round(b.height * r);
      c.getContext("2d").setTransform(r, 0, 0, r, 0, 0);
      if (c === main) { W = b.width; H = b.height; } else SW = b.width;
    }
    draw();
  }
  const X = h => h < 0 ? LEFT : LEFT + (W - LEFT - 10) / D.hosts.length * (h + 0.5);
  const Y = u => HEAD + (u - v0) / vh * (H - HEAD);
  const bands = () => {
    const out = [];
    for (let i = 0; i + 1 < D.hosts.length; i++) {
      const a = D.groups[i], b = D.groups[i + 1];
      if (a >= 0 && b >= 0 && a !== b) { const p = X(i), q = X(i + 1), k = Math.min(60, (q - p) * 0.3); out.push([p + k, q - k]); }
    }
    return out;
  };
  // where a message between these columns meets the cut
  function edge(x1, x2, bs) {
    if (x1 < x2) { for (const b of bs) if (b[0] >= x1 && b[0] <= x2) return b[0]; }
    else for (let i = bs.length - 1; i >= 0; i--) if (bs[i][1] <= x1 && bs[i][1] >= x2) return bs[i][1];
    return (x1 + x2) / 2;
  }
  function span(us) {
    const a = Math.abs(us), sign = us < 0 ? "−" : "";
    if (a < 1000) return sign + Math.round(a) + " µs";
    if (a < 1e6) return sign + (a / 1000).toFixed(a < 1e5 ? 1 : 0) + " ms";
    return sign + (a / 1e6).toFixed(a < 1e7 ? 2 : 1) + " s";
  }
  const clock = us => (us / 1e6).toFixed(vh < 2e4 ? 5 : vh < 2e6 ? 4 : 3) + " s";
  const seg = (c, x1, y1, x2, y2) => { c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); };

  let queued = false;
  function draw() { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; paint(); overview(); }); } }

  function paint() {
    clampView();
    g.fillStyle = C.ground; g.fillRect(0, 0, W, H);
    g.lineWidth = 1; g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
    const bs = bands(), a = lower(U, v0 - vh * 0.05), b = lower(U, v0 + vh * 1.02), count = b - a;
    g.save(); g.beginPath(); g.rect(0, HEAD, W, H - HEAD); g.clip();
    let cutTop = 0, cutEnd = 0;
    if (D.cut.length) {
      cutTop = Y(uOf(D.cut[0])); cutEnd = Y(uOf(D.cut[1]));
      const h = Math.max(2, cutEnd - cutTop);
      for (const [p, q] of bs) {
        g.fillStyle = C.band; g.fillRect(p, cutTop, q - p, h);
        g.strokeStyle = C["band-edge"]; g.setLineDash([5, 3]); seg(g, p, cutTop, p, cutTop + h); seg(g, q, cutTop, q, cutTop + h); g.setLineDash([]);
      }
    }
    for (let h = 0; h < D.hosts.length; h++) { g.strokeStyle = C.lane; g.lineWidth = 1.5; seg(g, X(h), HEAD, X(h), H); }
    for (const l of D.lanes) {
      g.fillStyle = C.lane; g.fillRect(X(l.host) - 3, HEAD, 6, H);
      g.fillStyle = C.fail;
      for (const w of l.broken) { const y1 = Math.max(HEAD, Y(uOf(w[0]))), y2 = Math.min(H, Y(uOf(w[1]))); if (y2 > y1) g.fillRect(X(l.host) - 3, y1, 6, y2 - y1); }
    }
    ticks();
    const far = count > 4 * H;
    if (far) counts(a, b); else arrows(a, b, bs);
    // values at their changes
    const boxes = [], taken = [];
    for (const l of D.lanes) for (let k = 0; k < l.at.length; k++) {
      const y = Y(uOf(l.at[k]));
      if (y < HEAD || y > H) continue;
      if (taken.some(p => p[0] === l.host && Math.abs(p[1] - y) < 14)) continue;
      taken.push([l.host, y]);
      g.fillStyle = C.ink; g.beginPath(); g.moveTo(X(l.host), y - 5); g.lineTo(X(l.host) + 5, y); g.lineTo(X(l.host), y + 5); g.lineTo(X(l.host) - 5, y); g.fill();
      boxes.push([X(l.host) - 6, y, X(l.host) + 14 + tag("= " + l.value[k], X(l.host) + 9, y, C.ink, true)]);
    }
    if (!far) labels(a, b, bs, boxes);
    g.restore();
    heads();
  }
  // text on its own ground
  function tag(text, x, y, colour, bold) {
    g.font = (bold ? "600 " : "") + "11px system-ui, sans-serif";
    const w = g.measureText(text).width;
    g.fillStyle = C.ground; g.globalAlpha = 0.85; g.fillRect(x - 2 - (g.textAlign === "right" ? w : 0), y - 7, w + 4, 14); g.globalAlpha = 1;
    g.fillStyle = colour; g.fillText(text, x, y);
    g.font = "11px system-ui, sans-serif";
    return w;
  }
  function heads() {
    g.fillStyle = C.panel; g.fillRect(0, 0, W, HEAD);
    g.strokeStyle = C.faint; seg(g, 0, HEAD - 0.5, W, HEAD - 0.5);
    g.textAlign = "center";
    const mid = tOf(v0);
    for (let h = 0; h < D.hosts.length; h++) {
      g.fillStyle = C.ink; g.font = "700 13px system-ui, sans-serif"; g.fillText(D.hosts[h], X(h), 13);
      g.fillStyle = C.soft; g.font = "10.5px system-ui, sans-serif";
      let sub = D.servers[h] ? "server" : "client";
      const l = D.lanes.find(l => l.host === h);
      if (l) { let v = ""; for (let k = 0; k < l.at.length && l.at[k] <= mid; k++) v = l.value[k]; if (v) sub = l.name.replace(/@[^@]*$/, "") + " = " + v; }
      g.fillText(clip(sub, (W - LEFT) / D.hosts.length - 10), X(h), 29);
    }
    g.textAlign = "left";
    g.fillStyle = C.soft; g.fillText(span(tOf(v0 + vh) - tOf(v0)), 8, 13); g.fillText("in view", 8, 29);
  }
  function clip(t, w) {
    if (g.measureText(t).width <= w) return t;
    let n = Math.max(1, Math.floor(t.length * w / g.measureText(t).width) - 1);
    while (n > 1 && g.measureText(t.slice(0, n) + "…").width > w) n--;
    return n > 2 ? t.slice(0, n) + "…" : "";
  }
  // a time scale: one label every 34 px, at real times
  function ticks() {
    g.fillStyle = C.soft; g.strokeStyle = C.faint; g.textAlign = "right"; g.font = "10.5px system-ui, sans-serif";
    const gaps = []; // breaks in view, clear of one another
    for (const [i, gap] of breaks) {
      const y = Y((U[i] + U[i - 1]) / 2);
      if (y >= HEAD + 8 && y <= H && !(gaps.length && y - gaps[gaps.length - 1][0] < 26) && Y(U[i]) - Y(U[i - 1]) >= 16) gaps.push([y, gap]);
    }
    for (let y = HEAD + 17, k = 0; y < H; y += 34) {
      while (k < gaps.length && gaps[k][0] < y - 13) k++;
      if (k < gaps.length && gaps[k][0] < y + 13) continue;
      const t = tOf(v0 + (y - HEAD) / (H - HEAD) * vh);
      if (t < 0 || t > end * 1.001) continue;
      g.fillText(clock(t), LEFT - 14, y); seg(g, LEFT - 10, y, LEFT - 4, y);
    }
    g.textAlign = "left";
    for (const m of D.marks) {
      const y = Y(uOf(m.at));
      if (y > HEAD && y < H) { g.setLineDash([3, 3]); g.strokeStyle = C.soft; seg(g, LEFT, y, W, y); g.setLineDash([]); g.textAlign = "right"; tag(m.name, W - 8, y, C.soft); g.textAlign = "left"; }
    }
    for (const [y, gap] of gaps) {
      g.strokeStyle = C.soft;
      for (let h = 0; h < D.hosts.length; h++) {
        const x = X(h); g.fillStyle = C.ground; g.fillRect(x - 5, y - 4, 10, 8);
        g.beginPath(); g.moveTo(x - 5, y + 1); g.lineTo(x - 2, y - 4); g.lineTo(x + 2, y + 4); g.lineTo(x + 5, y - 1); g.stroke();
      }
      g.fillStyle = C.soft; g.textAlign = "right"; g.fillText("idle " + span(gap), LEFT - 8, y); g.textAlign = "left";
    }
  }
  // far out: how much each host sends, 4 px at a time
  function counts(a, b) {
    const rows = Math.ceil((H - HEAD) / 4), nh = D.hosts.length, c = new Float64Array(rows * nh), d = new Float64Array(rows * nh);
    let most = 1;
    for (let i = a; i < b; i++) {
      const r = Math.floor((Y(U[i]) - HEAD) / 4), h = from(i);
      if (r < 0 || r >= rows || h < 0) continue;
      most = Math.max(most, ++c[r * nh + h]);
      if (flags[i] & DROPPED) d[r * nh + h]++;
    }
    const w = (W - LEFT) / nh * 0.8;
    for (let r = 0; r < rows; r++) for (let h = 0; h < nh; h++) {
      const k = r * nh + h;
      if (!c[k]) continue;
      g.fillStyle = C.arrow; g.fillRect(X(h) + 4, HEAD + r * 4, Math.max(1, c[k] / most * w), 3);
      if (d[k]) { g.fillStyle = C.fail; g.fillRect(X(h) + 4, HEAD + r * 4, Math.max(3, d[k] / most * w), 3); }
    }
    tag("bars: messages sent per host; zoom in for arrows", LEFT + 2, H - 12, C.soft);
  }
  function style(i) {
    const f = flags[i];
    g.lineWidth = 1; g.strokeStyle = C.arrow;
    if (f & DROPPED) { g.strokeStyle = C.fail; g.lineWidth = 1.5; }
    if (f & TRIGGER) { g.strokeStyle = C.trigger; g.lineWidth = 2.6; }
    if (f & HEAL) { g.strokeStyle = C.heal; g.lineWidth = 2.6; }
    if (f & FAULT && !(f & DROPPED)) { g.strokeStyle = C.trigger; g.lineWidth = 1.8; }
    if (hitSet.has(i)) { g.strokeStyle = C.odd; g.lineWidth = 2; }
    if (i === sel) { g.strokeStyle = C.ink; g.lineWidth = 3; }
    g.fillStyle = g.strokeStyle;
  }
  const important = i => i === sel || (flags[i] & (DROPPED | TRIGGER | HEAL | FAULT)) || hitSet.has(i);
  function arrows(a, b, bs) {
    const dense = (b - a) / (H - HEAD);
    const slope = Math.min(7, Math.max(1, 0.5 / Math.max(dense, 0.01)));
    g.globalAlpha = dense > 1 ? 0.35 : dense > 0.3 ? 0.6 : 1;
    const late = [];
    for (let i = a; i < b; i++) { if (important(i)) { late.push(i); continue; } style(i); arrow(i, slope, bs); }
    g.globalAlpha = 1;
    for (const i of late) { style(i); arrow(i, slope, bs); }
  }
  // Labels: important ones first; each only where it meets no other.
  function labels(a, b, bs, boxes) {
    const dense = (b - a) / (H - HEAD), order = [];
    for (let i = a; i < b; i++) if (important(i)) order.push(i);
    for (const i of order) if (flags[i] & HEAL && D.cut[2]) { // not over the part that was held
      const x = edge(X(from(i)), X(to(i)), bs), x2 = X(to(i)), y = Y(uOf(D.cut[2]));
      boxes.push([Math.min(x, x2), y + 2, Math.max(x, x2)], [x - 3, (y + Y(U[i])) / 2, x + 3]);
    }
    order.sort((i, k) => (k === sel) - (i === sel) || ((flags[k] & 12) > 0) - ((flags[i] & 12) > 0) || i - k);
    g.textAlign = "left"; if (dense < 0.25) for (let i = a; i < b; i++) order.push(i);
    const done = new Set();
    g.font = "11px system-ui, sans-serif";
    let shown = 0;
    for (const i of order) {
      if (done.has(i) || shown > 220) continue;
      done.add(i);
      let y = Y(U[i]) - 5;
      if (y < HEAD - 4 || y > H) continue;
      const x1 = X(from(i)), x2 = X(to(i)), dir = x2 < x1 ? -1 : 1, step = (W - LEFT - 10) / D.hosts.length;
      const next = i + 1 < N ? Y(U[i + 1]) - Y(U[i]) : 99;
      let t = (flags[i] & TRIGGER ? "① " : flags[i] & HEAL ? "② " : "") + short(i) + (flags[i] & ONWARD ? " (goes on)" : flags[i] & AGAIN ? " (again)" : "");
      const bold = i === sel || !!(flags[i] & (TRIGGER | HEAL));
      g.font = (bold ? "600 " : "") + "11px system-ui, sans-serif";
      let w = g.measureText(t).width, most = Math.max(90, step - 22);
      if (w > most) { t = clip(t, most); w = g.measureText(t).width; }
      else if (next > 15 && D.detail[i]) { t = clip(t + "  " + values(i), most); w = g.measureText(t).width; }
      if (!t) continue;
      let x = (flags[i] & DROPPED && Math.abs(x2 - x1) < step * 1.5 && bs.length) ? (dir < 0 ? x1 + 10 : x1 - 10 - w) : x1 + dir * step / 2 - w / 2;
      x = Math.min(Math.max(x, LEFT), W - w - 4);
      const mark = flags[i] & (TRIGGER | HEAL), own = mark || i === sel;
      const at = (own ? [0, -14, 18, -28, 32] : [0]).find(k => !boxes.some(p => Math.abs(p[1] - y - k) < 13 && p[0] < x + w + 6 && p[2] > x - 6));
      if (at === undefined) continue;
      y += at;
      boxes.push([x, y, x + w]); shown++;
      style(i); tag(t, x, y, important(i) ? g.strokeStyle : C.soft, bold);
    }
  }
  function arrow(i, slope, bs) {
    const y = Y(U[i]), x1 = X(from(i)), x2 = X(to(i)), dir = x2 < x1 ? -1 : 1;
    if (x1 === x2) { g.beginPath(); g.arc(x1, y, 4, 0, 7); g.stroke(); return; }
    if (flags[i] & DROPPED) {
      const x = edge(x1, x2, bs) - dir * 5, yy = y + slope / 2;
      seg(g, x1 + dir * 4, y, x, yy); g.lineWidth = 2; seg(g, x - 4, yy - 4, x + 4, yy + 4); seg(g, x - 4, yy + 4, x + 4, yy - 4);
      return;
    }
    const gate = (x1 + x2) / 2;
    if (flags[i] & KEPT) { // stops at the switch
      seg(g, x1 + dir * 4, y, gate, y + slope / 2); g.fillRect(gate - 3, y + slope / 2 - 3, 6, 6);
      return;
    }
    let y2 = y + slope;
    if (flags[i] & ONWARD) { // goes on from there
      g.fillRect(gate - 3, y + slope / 2 - 3, 6, 6); seg(g, gate, y + slope / 2, x2 - dir * 5, y2);
    } else if (flags[i] & HEAL && D.cut[2]) { // waits at the switch, then passes
      const x = edge(x1, x2, bs), ya = y + slope / 2, yb = Math.max(ya, Y(uOf(D.cut[2])));
      seg(g, x1 + dir * 4, y, x, ya); g.setLineDash([2, 3]); seg(g, x, ya, x, yb); g.setLineDash([]);
      y2 = yb + slope / 2; seg(g, x, yb, x2 - dir * 5, y2);
    } else seg(g, x1 + dir * 4, y, x2 - dir * 5, y2);
    g.beginPath(); g.moveTo(x2 - dir * 3, y2); g.lineTo(x2 - dir * 10, y2 - 3.5); g.lineTo(x2 - dir * 10, y2 + 3.5); g.fill();
  }
  function overview() {
    const h = H; s.fillStyle = C.ground; s.fillRect(0, 0, SW, h);
    const bins = new Float64Array(Math.ceil(h / 2)), bad = new Uint8Array(bins.length), e = uEnd();
    let most = 1;
    for (let i = 0; i < N; i++) { const k = Math.min(bins.length - 1, Math.floor(U[i] / e * bins.length)); most = Math.max(most, ++bins[k]); if (flags[i] & DROPPED) bad[k] = 1; }
    for (let k = 0; k < bins.length; k++) if (bins[k]) { s.fillStyle = bad[k] ? C.fail : C.lane; s.fillRect(2, k * 2, Math.max(1, bins[k] / most * (SW - 8)), 2); }
    const y = u => u / e * h;
    if (D.cut.length) { const p = y(uOf(D.cut[0])), q = y(uOf(D.cut[1])); s.fillStyle = C.band; s.fillRect(0, p, SW, Math.max(3, q - p)); s.fillStyle = C.fail; s.fillRect(0, p, SW, 1.5); s.fillStyle = C.heal; s.fillRect(0, Math.max(q, p + 2), SW, 1.5); }
    for (const i of hits) { s.fillStyle = C.odd; s.fillRect(SW - 5, y(U[i]), 5, 1.5); }
    s.strokeStyle = C.trigger; s.lineWidth = 2; s.strokeRect(1, Math.max(1, y(v0)), SW - 2, Math.max(6, Math.min(h - 2, y(v0 + vh)) - Math.max(1, y(v0))));
  }

  // Moving.
  function centre(u) { v0 = u - vh / 2; draw(); }
  function zoom(f, u) { const k = u === undefined ? v0 + vh / 2 : u; const p = (k - v0) / vh; vh *= f; clampView(); v0 = k - p * vh; draw(); }
  function around(i, n) { const a = U[Math.max(0, i - n)], b = U[Math.min(N - 1, i + n)]; vh = Math.max(b - a, 400); centre((a + b) / 2); }
  function toCut() { if (D.cut.length) { const a = uOf(D.cut[0]), b = uOf(D.cut[1]); vh = Math.max((b - a) * 1.5, 2000); centre((a + b) / 2); } }
  function toHeal() { if (D.cut.length) around(lower(T, D.cut[1]), 12); }
  function whole() { vh = uEnd() * 1.04; v0 = -vh * 0.02; draw(); }
  const uAt = e => v0 + (e.clientY - main.getBoundingClientRect().top - HEAD) / (H - HEAD) * vh;

  let drag = null;
  main.addEventListener("pointerdown", e => { drag = { y: e.clientY, v0, moved: false }; main.setPointerCapture(e.pointerId); });
  main.addEventListener("pointermove", e => {
    if (!drag) return;
    const dy = e.clientY - drag.y;
    if (Math.abs(dy) > 3) drag.moved = true;
    if (drag.moved) { v0 = drag.v0 - dy / (H - HEAD) * vh; draw(); }
  });
  main.addEventListener("pointerup", e => { const d = drag; drag = null; if (d && !d.moved) pick(e); });
  main.addEventListener("pointercancel", () => { drag = null; });
  main.addEventListener("dblclick", e => zoom(0.4, uAt(e)));
  main.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(e.deltaY * 0.004), uAt(e)); }
    else if (document.activeElement === main) { e.preventDefault(); v0 += e.deltaY / H * vh; draw(); }
  }, { passive: false });
  const stripTo = e => centre((e.clientY - strip.getBoundingClientRect().top) / H * uEnd());
  strip.addEventListener("pointerdown", e => { strip.setPointerCapture(e.pointerId); stripTo(e); });
  strip.addEventListener("pointermove", e => { if (e.buttons) stripTo(e); });
  function pick(e) {
    const u = uAt(e), x = e.clientX - main.getBoundingClientRect().left, near = 9 / (H - HEAD) * vh;
    let best = -1, dist = Infinity;
    for (let i = lower(U, u - near); i < N && U[i] <= u + near; i++) {
      const a = Math.min(X(from(i)), X(to(i))) - 8, b = Math.max(X(from(i)), X(to(i))) + 8;
      const d = Math.abs(U[i] - u) + (x < a || x > b ? near : 0);
      if (d < dist) { dist = d; best = i; }
    }
    select(best, false);
  }

  // One message.
  function fate(i) {
    const f = flags[i];
    if (f & FAULT) return f & DROPPED ? "lost by a message fault" : f & KEPT ? "kept by a message fault" : f & ONWARD ? "sent on, or a copy, by a message fault" : "passed, acted on by a message fault";
    return (f & DROPPED ? (D.cut.length ? "dropped at the cut" : "dropped") : f & HEAL ? "healed the cut, then passed" : "passed") + (f & TRIGGER ? ", revealed the state that was cut at" : "") + (f & AGAIN ? ", a retransmission" : "");
  }
  function select(i, move) {
    sel = i;
    const dl = $("details"); dl.textContent = "";
    if (i < 0) { draw(); return; }
    const add = (k, v) => { const a = document.createElement("dt"), b = document.createElement("dd"); a.textContent = k; b.textContent = v; dl.append(a, b); };
    add("message", num[i] ? String(num[i]) : "none: a packet that completes no message");
    add("type", type(i));
    add("way", (D.hosts[from(i)] || "?") + " → " + (D.hosts[to(i)] || "?"));
    add("time", (T[i] / 1e6).toFixed(6) + " s" + (D.cut.length ? ", " + span(T[i] - D.cut[0]) + " from the cut" : ""));
    add("bytes", String(D.bytes[i]));
    add("fate", fate(i));
    if (D.detail[i]) add("fields", detail(i)); else if (D.left && num[i]) add("fields", "left out to keep this file small; events.jsonl of the run has them");
    if (num[i] && !(flags[i] & AGAIN)) { try { history.replaceState(null, "", "#m=" + num[i]); } catch (_) { /* some viewers forbid it */ } }
    if (move) { if (vh > U[Math.min(N - 1, i + 60)] - U[Math.max(0, i - 60)] + 400) around(i, 18); else if (U[i] < v0 + vh * 0.1 || U[i] > v0 + vh * 0.9) centre(U[i]); }
    draw();
  }
  function byNumber(n) { for (let i = 0; i < N; i++) if (num[i] === n && !(flags[i] & AGAIN)) return i; return -1; }
  function fromHash() {
    const m = /^#m=(\d+)$/.exec(location.hash), i = m ? byNumber(Number(m[1])) : -1;
    if (i >= 0) { around(i, 18); select(i, true); $("all").scrollIntoView(); return true; }
    return false;
  }

  // Search.
  let searched = "";
  function search() {
    const q = $("q").value.trim().toLowerCase();
    hits = []; hit = -1; searched = $("q").value;
    if (q) {
      const words = q.split(/\s+/);
      const pairText = D.pairs.map(p => ((D.hosts[p[0]] || "") + ">" + (D.hosts[p[1]] || "") + " " + (D.hosts[p[0]] || "") + " " + (D.hosts[p[1]] || "") + " " + D.types[p[2]]).toLowerCase());
      const text = D.text.map(t => t.toLowerCase());
      for (let i = 0; i < N; i++) {
        const f = flags[i] & DROPPED ? " dropped" : "";
        if (words.every(w => pairText[D.pair[i]].includes(w) || text[D.detail[i]].includes(w) || f.includes(w) && f || String(num[i]) === w)) hits.push(i);
      }
    }
    hitSet = new Set(hits);
    show(); draw();
  }
  function show() {
    $("hits").textContent = $("q").value.trim() ? (hits.length ? (hit < 0 ? "" : (hit + 1) + " of ") + hits.length + " found" : "nothing found") : "";
    $("prev").disabled = $("next").disabled = !hits.length;
  }
  function go(d) {
    if (!hits.length) return;
    if (hit < 0) { // from what is in view
      const k = hits.findIndex(i => U[i] >= v0);
      hit = d > 0 ? (k < 0 ? 0 : k) : ((k < 0 ? hits.length : k) - 1 + hits.length) % hits.length;
    } else hit = (hit + d + hits.length) % hits.length;
    select(hits[hit], true); show();
  }
  let typing = 0;
  $("q").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  $("q").addEventListener("keydown", e => { if (e.key === "Enter") { clearTimeout(typing); if ($("q").value !== searched) search(); go(e.shiftKey ? -1 : 1); } });
  $("next").addEventListener("click", () => go(1)); $("prev").addEventListener("click", () => go(-1));
  $("zin").addEventListener("click", () => zoom(0.6)); $("zout").addEventListener("click", () => zoom(1 / 0.6));
  $("tocut").addEventListener("click", toCut); $("toheal").addEventListener("click", toHeal); $("fit").addEventListener("click", whole);
  $("tocut").disabled = $("toheal").disabled = !D.cut.length;
  $("squeeze").addEventListener("change", e => { const t0 = tOf(v0), t1 = tOf(v0 + vh); squeeze(e.target.checked); v0 = uOf(t0); vh = uOf(t1) - v0; draw(); });
  main.addEventListener("keydown", e => {
    const k = { ArrowUp: () => { v0 -= vh * 0.08; draw(); }, ArrowDown: () => { v0 += vh * 0.08; draw(); }, PageUp: () => { v0 -= vh * 0.8; draw(); }, PageDown: () => { v0 += vh * 0.8; draw(); },
      Home: () => { v0 = 0; draw(); }, End: () => { v0 = uEnd() - vh; draw(); }, "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": whole, c: toCut, h: toHeal,
      n: () => go(1), p: () => go(-1), "/": () => $("q").focus(), Escape: () => select(-1),
      ArrowLeft: () => select(Math.max(0, sel < 0 ? lower(U, v0) : sel - 1), true), ArrowRight: () => select(Math.min(N - 1, sel < 0 ? lower(U, v0) : sel + 1), true) }[e.key];
    if (k && !e.ctrlKey && !e.metaKey && !e.altKey && N) { e.preventDefault(); k(); }
  });

  // The same as a table, 50 at a time.
  const PER = 50; let page = 0;
  function table() {
    const body = $("rows"); body.textContent = "";
    for (let i = page * PER; i < Math.min(N, (page + 1) * PER); i++) {
      const tr = body.insertRow();
      if (flags[i] & DROPPED) tr.className = "dropped"; else if (flags[i] & HEAL) tr.className = "heal"; else if (i === sel) tr.className = "here";
      [num[i] || "–", (T[i] / 1e6).toFixed(6) + " s", D.hosts[from(i)] || "?", D.hosts[to(i)] || "?", type(i), D.bytes[i], fate(i), detail(i)].forEach((v, k) => {
        const c = tr.insertCell();
        if (k === 0 && num[i] && !(flags[i] & AGAIN)) { const a = document.createElement("a"); a.href = "#m=" + num[i]; a.textContent = v; c.append(a); } else c.textContent = v;
      });
    }
    const pages = Math.max(1, Math.ceil(N / PER));
    $("page").textContent = "page " + (page + 1) + " of " + pages + ", " + N + " in all";
    $("pback").disabled = page === 0; $("pfwd").disabled = page >= pages - 1;
  }
  $("pback").addEventListener("click", () => { page--; table(); }); $("pfwd").addEventListener("click", () => { page++; table(); });
  $("list").addEventListener("toggle", () => { if ($("list").open) { if (N) page = Math.floor((sel >= 0 ? sel : D.cut.length ? Math.min(N - 1, lower(T, D.cut[0])) : 0) / PER); table(); } });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours(); draw(); });
  addEventListener("resize", size); addEventListener("hashchange", fromHash);
  squeeze(true); colours(); show();
  if (D.cut.length) { vh = 1; toCut(); const k = lower(T, D.cut[0]), m = lower(T, D.cut[1]); if (N) around((k + m) >> 1, Math.max(15, (m - k) * 0.7 | 0)); } else if (D.centre && N) around(lower(T, D.centre), 30); else whole();
  size(); fromHash();
  document.documentElement.dataset.ready = String(N);
})();
