"use strict";
// Lists all messages of the run, 25 at a time, and searches them. Text of the run
// reaches the page by textContent only. #m=1234 shows message 1234.
(function () {
  const $ = id => document.getElementById(id);
  const D = JSON.parse($("data").textContent), N = D.dt.length, PER = 25;
  const DROPPED = 1, AGAIN = 2, TRIGGER = 4, HEAL = 8, FAULT = 16, KEPT = 32, ONWARD = 64;
  const T = new Float64Array(N), num = new Float64Array(N), flags = new Uint8Array(N);
  for (let i = 0, t = 0, n = D.first, o = 0; i < N; i++) {
    t += D.dt[i]; T[i] = t; num[i] = n;
    if (o < D.odd.length && D.odd[o][0] === i) { flags[i] = D.odd[o][1]; num[i] = D.odd[o][2]; o++; }
    if (num[i] && !(flags[i] & AGAIN)) n = num[i] + 1;
  }
  const first = i => num[i] && !(flags[i] & AGAIN); // the item that carries its message
  const ends = i => { const p = D.pairs[D.pair[i]]; return [D.hosts[p[0]] || "?", D.hosts[p[1]] || "?", D.types[p[2]]]; };
  function fate(i) {
    const f = flags[i];
    if (f & FAULT) return f & DROPPED ? "lost by a message fault" : f & KEPT ? "held by a message fault" : f & ONWARD ? "sent on, or a copy, by a message fault" : "passed, acted on by a message fault";
    return (f & DROPPED ? (D.cut ? "dropped at the cut" : "dropped") : f & HEAL ? "healed the cut, then passed" : "passed") + (f & TRIGGER ? ", revealed the state that was cut at" : "") + (f & AGAIN ? ", a retransmission" : "");
  }

  let found = null, page = 0, here = -1; // found: items that match the search; null: all
  const count = () => found ? found.length : N, item = k => found ? found[k] : k;
  function show() {
    const body = $("rows"), pages = Math.max(1, Math.ceil(count() / PER));
    body.textContent = "";
    for (let k = page * PER; k < Math.min(count(), (page + 1) * PER); k++) {
      const i = item(k), tr = body.insertRow();
      tr.className = i === here ? "here" : flags[i] & DROPPED ? "dropped" : flags[i] & HEAL ? "heal" : "";
      [num[i] || "–", (T[i] / 1e6).toFixed(6) + " s", ...ends(i), D.bytes[i], fate(i), D.text[D.detail[i]]].forEach((v, c) => {
        const td = tr.insertCell();
        if (c === 0 && first(i)) { const a = document.createElement("a"); a.href = "#m=" + v; a.textContent = v; td.append(a); } else td.textContent = v;
      });
    }
    $("hits").textContent = found ? (N && found.length || "nothing") + " found" : "";
    $("page").textContent = "page " + (page + 1) + " of " + pages + ", " + count() + " in all";
    // A disabled button would lose the keyboard's focus.
    $("pback").ariaDisabled = page === 0; $("pfwd").ariaDisabled = page >= pages - 1;
  }
  function search() {
    const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    found = null; page = 0;
    if (words.length) {
      const pair = D.pairs.map(p => { const a = D.hosts[p[0]] || "", b = D.hosts[p[1]] || ""; return [a + ">" + b, a, b, D.types[p[2]]].join(" ").toLowerCase(); });
      const text = D.text.map(t => t.toLowerCase());
      const matches = (i, w) => pair[D.pair[i]].includes(w) || text[D.detail[i]].includes(w) || String(num[i]) === w || flags[i] & DROPPED && "dropped".includes(w);
      found = [];
      for (let i = 0; i < N; i++) if (words.every(w => matches(i, w))) found.push(i);
    }
    show();
  }
  function fromHash() {
    const m = /^#m=(\d+)$/.exec(location.hash);
    if (!m) return;
    for (here = 0; here < N && !(first(here) && num[here] === Number(m[1])); here++);
    if (here === N) { here = -1; return; }
    $("q").value = ""; found = null; page = Math.floor(here / PER); show();
    const row = document.querySelector("#rows .here");
    row.querySelector("a").focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  }

  let typing = 0;
  $("q").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  for (const [id, by] of [["pback", -1], ["pfwd", 1]]) $(id).addEventListener("click", e => { if (e.currentTarget.ariaDisabled !== "true") { page += by; show(); } });
  addEventListener("hashchange", fromHash);
  $("view").hidden = false;
  page = Math.floor(D.start / PER);
  show(); fromHash();
  document.documentElement.dataset.ready = String(N);
})();
