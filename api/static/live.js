// What runs now: for each run under way a space-time picture that moves, and its partition
// matrix. Text of the system under test is put in as text, never as markup.
import { ask } from "./ask.js";

const shownMs = 12000; // of the run, from left to right
const lagMs = 1300; // the picture is behind, so that events come in at its right edge
const everyMs = 1000;
const rowHeight = 36, left = 92, top = 20;
const mostPictures = 4, mostHosts = 24, mostMarks = 1500, mostSteps = 12;
const foldPx = 6; // messages of one link that are closer are drawn as one
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const unitMs = { h: 3600e3, m: 60e3, s: 1e3, ms: 1, "µs": 1e-3, ns: 1e-6 };

// ms is a duration as the API writes it, such as 1m2.5s.
function ms(text) {
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/([0-9.]+)(ms|µs|ns|h|m|s)/g)) sum += n * unitMs[unit];
  return sum;
}

function svg(name, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
}

function html(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// matrix says which host can send to which: a table, from a host in each row to one in each
// column. cuts have name, links and some; count(from, to) is what a link had, if anything.
export function matrix(hosts, cuts, count) {
  if (hosts.length > mostHosts) return html("p", { class: "empty" }, hosts.length + " hosts: too many for a matrix.");
  const cut = new Map();
  for (const c of cuts) for (const l of c.links) cut.set(l.src + " " + l.dst, c);
  const table = html("table", { class: "matrix" });
  table.append(html("caption", {}, "From the host of a row to that of a column"), html("tr", {}, html("td", {}), ...hosts.map((h) => html("th", { scope: "col" }, h))));
  for (const from of hosts) {
    const tr = html("tr", {}, html("th", { scope: "row" }, from));
    for (const to of hosts) {
      const c = cut.get(from + " " + to);
      if (from === to) tr.append(html("td", { class: "self" }));
      else if (c) tr.append(html("td", { class: c.some ? "some" : "cut", title: from + " to " + to + ": " + c.name }, c.some ? "in part" : "cut"));
      else tr.append(html("td", {}, count ? String(count(from, to) || "·") : "open"));
    }
    table.append(tr);
  }
  return table;
}

// step says how a step of the scenario went so far.
function step(s) {
  const at = (t) => (ms(t) / 1000).toFixed(1) + " s";
  const [state, words] = s.lacked ? ["lacked", "could not begin: " + s.lacked]
    : !s.by ? ["waits", "waits"]
      : s.endedBy ? ["over", at(s.began) + " to " + at(s.ended)] : ["acts", "since " + at(s.began)];
  return html("li", { "data-state": state }, html("span", {}, s.text), " ", html("b", {}, words));
}

class Picture {
  constructor(run) {
    this.run = run;
    this.after = 0;
    this.at = 0; // ms of the run at the last look
    this.seen = performance.now();
    this.hosts = [];
    this.marks = []; // what moves: {end, element}
    this.cuts = new Map(); // by name: {from, to, rect}
    this.labelled = new Map(); // by height, px: the last label there: {end, text, mark}
    this.drawn = new Map(); // by link and action: where its last message is, px
    this.passed = []; // messages of the last shownMs: {at, link}
    this.caption = html("figcaption", {});
    this.said = html("p", { class: "said", role: "log" });
    this.steps = html("ol", { class: "steps", "aria-label": "Steps of the scenario" });
    this.drawing = svg("svg", { role: "img" });
    this.table = html("div", {});
    this.figure = html("figure", { class: "live" }, this.caption, this.steps, this.drawing, this.said, this.table);
  }

  // lanes draws what does not move.
  lanes(state) {
    this.hosts = [...state.nodes, ...state.clients];
    this.width = Math.max(320, this.figure.clientWidth || 900);
    this.scale = (this.width - left) / shownMs;
    const height = top + rowHeight * Math.min(this.hosts.length, mostHosts) + 6;
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.drawing.setAttribute("height", height);
    this.moving = svg("g", {});
    const inside = svg("svg", { x: left, y: 0, width: this.width - left, height, overflow: "hidden" });
    this.bottom = height - 6;
    inside.append(this.moving);
    this.drawing.replaceChildren(...this.hosts.slice(0, mostHosts).flatMap((h, i) => {
      const client = i >= state.nodes.length;
      return [svg("text", { x: left - 10, y: this.y(h) + 4, class: client ? "host client" : "host" }, h), svg("line", { x1: left, x2: this.width, y1: this.y(h), y2: this.y(h), class: client ? "lane client" : "lane" })];
    }), inside);
  }

  y(host) {
    const i = this.hosts.indexOf(host);
    return i < 0 || i >= mostHosts ? NaN : top + rowHeight * (i + 0.5);
  }

  add(at, element) {
    this.moving.append(element);
    this.marks.push({ at, element });
    while (this.marks.length > mostMarks) this.marks.shift().element.remove();
  }

  message(e, at) {
    const y1 = this.y(e.from), y2 = this.y(e.to);
    if (Number.isNaN(y1) || Number.isNaN(y2) || y1 === y2) return;
    const x = at * this.scale, down = y2 > y1 ? 1 : -1, dropped = e.action === "drop" || e.action === "reset";
    const reach = dropped ? 0.55 : 1, dx = 7 * reach, yEnd = y1 + (y2 - y1) * reach;
    if (!dropped) this.passed.push({ at, link: e.from + " " + e.to });
    const like = e.from + " " + e.to + " " + e.action;
    if (x - this.drawn.get(like) < foldPx) return;
    this.drawn.set(like, x);
    const g = svg("g", { class: "message", "data-action": e.action });
    g.append(svg("title", {}, `${e.type}, ${e.from} to ${e.to}, ${e.bytes} bytes: ${e.action}`), svg("line", { x1: x, y1, x2: x + dx, y2: yEnd }));
    if (dropped) g.append(svg("path", { d: `M${x + dx - 4} ${yEnd - 4}l8 8m0 -8l-8 8`, class: "cross" }));
    else g.append(svg("path", { d: `M${x + dx} ${yEnd}l-4 ${-7 * down}h6z`, class: "tip" }));
    this.add(at, g);
    this.label(g, x + 5, [y1 + (down > 0 ? 13 : -6)], e.type.replace(/^(resp|text) /, "").slice(0, 26), false);
  }

  // label writes words at the first of some heights that has room. Messages make room for a
  // mark; what finds none has its words in its title, or in the lines below the picture.
  label(g, x, heights, words, mark) {
    for (const y of heights) {
      const last = this.labelled.get(y);
      if (last && last.end > x) {
        if (!mark || last.mark) continue;
        last.text.remove();
      }
      const text = svg("text", { x, y }, words);
      g.append(text);
      this.labelled.set(y, { end: x + text.getComputedTextLength() + 10, text, mark });
      return;
    }
  }

  // mark is a line across all lanes, or on the lane of the host that it is about.
  mark(e, at) {
    const x = at * this.scale, y = this.y(e.host);
    const g = svg("g", { class: "event", "data-kind": e.kind });
    const words = (e.name ? e.name + ": " : "") + (e.kind === "heal" ? "heal" : e.text);
    g.append(svg("title", {}, words), svg("line", { x1: x, x2: x, y1: Number.isNaN(y) ? 0 : y - 12, y2: Number.isNaN(y) ? this.bottom : y + 12 }));
    this.add(at, g);
    this.label(g, x + 4, !Number.isNaN(y) ? [y - 6, y + 13] : [e.kind === "heal" ? this.bottom - 2 : 12], words, true);
  }

  // cut begins to shade what is between a cut and its heal.
  cut(name, from) {
    const rect = svg("rect", { class: "cut", x: from * this.scale, y: 0, width: 0, height: this.bottom });
    this.moving.prepend(rect);
    this.cuts.set(name, { from, rect });
  }

  heal(name, to) {
    const c = this.cuts.get(name);
    if (!c) return;
    this.cuts.delete(name);
    c.rect.setAttribute("width", Math.max(0, to - c.from) * this.scale);
    this.marks.push({ at: to, element: c.rect });
  }

  async look() {
    const state = await ask("/v1/runs/" + encodeURIComponent(this.run) + "/live?after=" + this.after);
    const first = this.hosts.length === 0;
    if (first && state.nodes.length) this.lanes(state);
    this.at = ms(state.at);
    this.seen = performance.now();
    this.after = state.last;
    this.caption.textContent = `${this.run} on ${state.target}: ${state.phase || "waits for its lab"}, ${(this.at / 1000).toFixed(1)} s`;
    this.steps.replaceChildren(...state.steps.slice(0, mostSteps).map(step), ...(state.steps.length > mostSteps ? [html("li", {}, state.steps.length - mostSteps + " more")] : []));
    if (!this.hosts.length) return;
    const lines = [];
    for (const e of state.events) {
      const at = ms(e.at);
      if (e.kind !== "message") lines.push(`${(at / 1000).toFixed(1)} s ${[e.kind + ":", e.name, e.host, e.text].filter(Boolean).join(" ")}`);
      if (at < this.at - shownMs - lagMs && e.kind !== "cut" && e.kind !== "heal") continue;
      if (e.kind === "message") this.message(e, at);
      else if (e.kind !== "in-force") this.mark(e, at); // the cut is there already
      if (e.kind === "cut") this.cut(e.name, at);
      if (e.kind === "heal") this.heal(e.name, at);
    }
    for (const c of state.cuts) if (!this.cuts.has(c.name)) this.cut(c.name, this.at - shownMs - lagMs); // it began before what is kept
    if (lines.length) this.said.textContent = [this.said.textContent, ...lines].filter(Boolean).join("\n").split("\n").slice(-4).join("\n");
    this.passed = this.passed.filter((p) => p.at > this.at - shownMs);
    const counts = new Map();
    for (const p of this.passed) counts.set(p.link, (counts.get(p.link) || 0) + 1);
    this.table.replaceChildren(matrix(this.hosts, state.cuts, (from, to) => counts.get(from + " " + to)));
    this.drawing.setAttribute("aria-label", `${this.passed.length} messages in the last ${shownMs / 1000} s; ` +
      (state.cuts.length ? "cut now: " + state.cuts.map((c) => c.partition).join("; ") : "nothing is cut"));
    this.move();
  }

  // move puts the present to the right edge, and forgets what left at the other.
  move() {
    if (!this.moving) return;
    const now = this.at + (performance.now() - this.seen) - lagMs;
    this.moving.setAttribute("transform", `translate(${this.width - left - now * this.scale} 0)`);
    for (const c of this.cuts.values()) c.rect.setAttribute("width", Math.max(0, now - c.from) * this.scale);
    while (this.marks.length && this.marks[0].at < now - shownMs) this.marks.shift().element.remove();
  }
}

const pictures = new Map();
const room = document.getElementById("live");

// show has a picture for each of these runs, which are under way, and for no other.
export function show(runs) {
  for (const [run, p] of pictures) {
    if (!runs.includes(run)) {
      p.figure.remove();
      pictures.delete(run);
    }
  }
  for (const run of runs.slice(0, mostPictures)) {
    if (pictures.has(run)) continue;
    const p = new Picture(run);
    pictures.set(run, p);
    room.append(p.figure);
    look(p);
  }
  document.getElementById("idle").textContent = runs.length === 0 ? "No run is under way." : runs.length > mostPictures ? `${runs.length} runs are under way; these are ${mostPictures} of them.` : "";
}

async function look(p) {
  while (pictures.get(p.run) === p) {
    if (!document.hidden) {
      try { await p.look(); } catch (e) {
        if (e.status === 409 || e.status === 404) { // it has ended
          p.figure.remove();
          pictures.delete(p.run);
          return;
        }
        p.caption.textContent = "Not read: " + e.message;
      }
    }
    await new Promise((done) => setTimeout(done, everyMs));
  }
}

function frame() {
  for (const p of pictures.values()) p.move();
  requestAnimationFrame(frame);
}
if (!still) requestAnimationFrame(frame);
