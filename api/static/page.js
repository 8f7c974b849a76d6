// The tables of the page. Everything shown is put in as text, never as markup: names and
// reasons come from the system under test.
import { ask, mayOperate, mayStart, say } from "./ask.js";
import { matrix, show } from "./live.js";
import { offer } from "./start.js";

let shown = location.hash.slice(1);

// button does something to what is named, after a question if there is one.
function button(text, name, method, path, body, question) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = name === "everything" ? "Heal everything" : text;
  b.setAttribute("aria-label", text + " " + name);
  b.addEventListener("click", async () => {
    if (b.ariaDisabled || question && !confirm(question)) return;
    b.ariaDisabled = "true"; // a disabled button would lose the keyboard's focus
    say(text + " " + name + " …");
    try { await ask(path, method, body); await load(); } catch (e) { say("Not done: " + e.message); }
    b.ariaDisabled = null;
  });
  return b;
}

function actions(...buttons) {
  const span = document.createElement("span");
  span.append(...buttons);
  return mayOperate ? span : "";
}

function forCampaign(c) {
  const path = "/v1/campaigns/" + encodeURIComponent(c.id);
  const out = [];
  const onStage = c.spec.strategy === "scripted" && !c.spec.script; // a program plays it
  if (!onStage && (c.state === "queued" || c.state === "running")) out.push(button("Pause", c.id, "POST", path + "/pause"));
  if (c.state === "paused" || c.state === "failed" && !onStage) out.push(button("Resume", c.id, "POST", path + "/resume"));
  if (c.state === "queued" || c.state === "running" || c.state === "paused") out.push(button("Cancel", c.id, "DELETE", path, null, "Cancel " + c.id + "? It cannot be resumed."));
  return actions(...out);
}

// forSchedule pauses, resumes and deletes a schedule, on a page that may make some.
function forSchedule(s) {
  if (!mayStart) return "";
  const path = "/v1/schedules/" + encodeURIComponent(s.name);
  const { name, created, next, last, lastTime, note, ...spec } = s;
  return actions(button(s.paused ? "Resume" : "Pause", name, "PUT", path, { ...spec, paused: !s.paused }), button("Delete", name, "DELETE", path, null, "Delete schedule " + name + "? Its campaigns stay."));
}

// forHistory writes a note about a failure.
function forHistory(h) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = "Note";
  b.setAttribute("aria-label", "Write a note about " + h.id);
  b.addEventListener("click", async () => {
    const text = prompt("Note about " + h.check + " on " + h.target, h.note || "");
    if (text === null) return;
    try { await ask("/v1/finding-histories/" + encodeURIComponent(h.id) + "/note", "PUT", { text }); await load(); } catch (e) { say("Not done: " + e.message); }
  });
  return actions(b);
}

// standing shows which links the partitions that are not healed cut.
function standing(list) {
  const cuts = list.filter((p) => p.links.length && p.state !== "healed" && p.state !== "failed")
    .map((p) => ({ name: p.name, links: p.links, some: Boolean(p.only && p.only.length) }));
  const hosts = [...new Set(cuts.flatMap((c) => c.links.flatMap((l) => [l.src, l.dst])))].sort();
  document.getElementById("standing").replaceChildren(...(cuts.length ? [matrix(hosts, cuts)] : []));
}

function cell(value, cls) {
  const td = document.createElement("td");
  if (value instanceof Node) td.append(value); else td.textContent = value ?? "";
  if (cls) td.className = cls;
  return td;
}

function link(text, href) {
  const a = document.createElement("a");
  a.textContent = text;
  a.href = href;
  return a;
}

// report links one of many reports: what is whose it is.
function report(path, what) {
  const a = link("report", "/v1/" + path + "/report");
  a.setAttribute("aria-label", "report of " + what);
  return a;
}

function ofRun(run, what) { return report("runs/" + encodeURIComponent(run), what || run); }

const controls = (within) => [...within.querySelectorAll("a, button")];
const named = (e) => e.getAttribute("aria-label") || e.getAttribute("href");

// keepFocus has new rows put in, and the keyboard's focus where it was: at the same control, at
// what its row has in its place, or at the heading of the table.
function keepFocus(tbody, change) {
  const was = tbody.contains(document.activeElement) && document.activeElement;
  const row = was && was.closest("tr"), name = was && named(was), key = row && row.cells[0].textContent, at = row && controls(row).indexOf(was);
  change();
  if (!was) return;
  const same = [...tbody.rows].find((tr) => tr.cells[0].textContent === key), there = same ? controls(same) : [];
  const heading = tbody.closest("section").querySelector("h2");
  heading.tabIndex = -1; // for a script only
  (controls(tbody).find((e) => named(e) === name) || there[at] || there.at(-1) || heading).focus();
}

// fill shows rows. What has not changed stays, so that the keyboard's focus does, too.
function fill(id, rows, nothing) {
  const tbody = document.querySelector("#" + id + " tbody"), next = document.createElement("tbody");
  const heads = Array.from(document.querySelectorAll("#" + id + " thead th"), (th) => th.textContent);
  for (const cells of rows) {
    const tr = document.createElement("tr");
    cells.forEach((td, i) => { td.dataset.head = heads[i]; }); // where there is no room for columns
    tr.append(...cells);
    next.append(tr);
  }
  if (rows.length === 0) {
    const td = cell(nothing, "empty");
    td.colSpan = heads.length;
    const tr = document.createElement("tr");
    tr.append(td);
    next.append(tr);
  }
  if (!next.isEqualNode(tbody)) keepFocus(tbody, () => tbody.replaceChildren(...next.children));
}

// times says when a partition reached its states.
function times(p) {
  return [["requested", p.created], ["installed", p.installed], ["in force", p.inForce], ["renewed until", p.renewedUntil], ["healed", p.healed]]
    .filter(([, at]) => at).map(([what, at]) => what + " " + new Date(at).toLocaleTimeString()).join(", ")
    + (p.lapsed ? ", lapsed " + p.lapsed + (p.lapsed === 1 ? " time" : " times") : "");
}

// admitted says that the target's documentation admits all that failed.
function admitted(v) {
  return v.failures.length > 0 && v.failures.every((f) => f.class === "documented");
}

// target is a campaign's target with its settings.
function target(spec) {
  const args = Object.entries(spec.args || {}).sort().map(([k, v]) => k + "=" + v).join(" ");
  return spec.target + (args ? " (" + args + ")" : "");
}

// shape says what a partition cuts, as the command line does.
function shape(p) {
  const only = (p.only || []).map((t) => t.proto + (t.port ? "/" + t.port : "") + (t.opening ? "-opening" : "")).join(", ");
  return [p.shape, p.role ? "role=" + p.role : "", p.label ? "label=" + p.label : "", only ? "only " + only : "", p.effect === "reset" ? "(reset)" : ""]
    .filter((w) => w).join(" ");
}

async function load() {
  const [version, health, campaigns, findings, partitions, schedules, running, histories, runners, switches] = await Promise.all(
    ["/v1/version", "/healthz", "/v1/campaigns?limit=50", "/v1/findings?limit=200", "/v1/partitions?limit=200", "/v1/schedules", "/v1/campaigns?state=running", "/v1/finding-histories?limit=50", "/v1/runners", "/v1/switches?brief=true"].map((path) => ask(path)));
  show(running.items.flatMap((c) => c.running));
  standing(partitions.items);
  fill("health", health.checks.filter((c) => !c.ok).map((c) => [cell(c.name, "fail"), cell(c.detail, "words")]),
    (health.checks.length === 1 ? "One part is checked, and is well: " : health.checks.length + " parts are checked, and all are well: ") + health.checks.map((c) => c.name + " (" + c.detail + ")").join(", ") + ".");
  document.getElementById("network").hidden = switches.items.length === 0;
  fill("switches", switches.items.map((s) => [
    cell(s.datapath), cell(s.connected ? "connected" : "none", s.connected ? "connected" : "fail"), cell(s.since ? new Date(s.since).toLocaleString() : ""),
    cell(s.address || ""), cell(s.role || ""), cell(s.cuts || ""), cell(s.reason || "", "words"),
  ]), "None.");
  document.getElementById("cluster").hidden = runners.items.length === 0;
  fill("runners", runners.items.map((r) => [
    cell(r.name), cell(r.state, "runner-" + r.state), cell(r.campaign ? link(r.campaign, "#" + r.campaign) : ""), cell(r.slots, "number"), cell(r.busy, "number"),
    cell(r.cores + " cores, " + r.memory + " MB" + (r.testbed ? ", testbed " + r.testbed : "")), cell(r.has.join(", "), "words"), cell(r.reason || "", "words"),
  ]), "None.");
  fill("schedules", schedules.items.map((s) => [
    cell(s.name, "words"), cell(target(s.campaign), "words"), cell(s.cron ? s.cron + (s.timeZone ? " " + s.timeZone : "") : new Date(s.at).toLocaleString()),
    cell(s.paused ? "paused" : s.next ? new Date(s.next).toLocaleString() : "never"), cell(s.last ? link(s.last, "#" + s.last) : ""), cell(s.note, "words"), cell(forSchedule(s)),
  ]), "None: netsplit campaign schedule makes one.");
  fill("histories", histories.items.map((h) => [
    cell(h.state, "history-" + h.state), cell(h.target), cell(h.check), cell(h.newest.failure.summary, "words"), cell(link(h.newest.id, "/v1/runs/" + encodeURIComponent(h.newest.run) + "/report")),
    cell(h.campaigns.length, "number"), cell(new Date(h.last).toLocaleString()), cell(h.note, "words"), cell(forHistory(h)),
  ]), "None.");
  if (!shown && campaigns.items.length) shown = campaigns.items[0].id;
  fill("campaigns", campaigns.items.map((c) => [
    cell(link(c.id, "#" + c.id)), cell(c.state, c.state), cell(target(c.spec), "words"), cell(c.spec.script && !c.spec.replay ? "scripted " + c.spec.script.name : c.spec.strategy),
    cell(c.planned ? c.done + " of " + c.planned : c.done, "number"), cell(c.findings, "number"), cell(new Date(c.created).toLocaleString()), cell(c.reason, "words"),
    cell(c.done ? report("campaigns/" + encodeURIComponent(c.id), c.id) : "none"), cell(forCampaign(c)), // the first run writes it
  ]), "None yet: netsplit campaign TARGET starts one.");
  const sameCause = Map.groupBy(findings.items, (f) => f.causeId);
  fill("findings", [...sameCause.values()].map(([f, ...more]) => [
    cell(f.id), cell(f.class, f.class), cell(f.severity), cell(f.failure.check), cell(f.failure.summary + (more.length ? " (and " + more.length + " more of this cause)" : ""), "words"), cell(f.firstAfter, "number"), cell(ofRun(f.run, f.id)),
  ]), "None.");
  fill("partitions", partitions.items.map((p) => [
    cell(p.name, "words"), cell(p.state, p.state), cell(times(p)), cell(shape(p)), cell(p.groups.map((g) => g.join(" ")).join(" | "), "words"),
    cell(p.wanted, "number"), cell(p.dropped, "number"), cell(p.leakKnown ? p.leaked : "not known", "number"), cell(p.reason || "", "words"),
    cell(p.state === "healed" || p.state === "failed" ? "" : actions(button("Heal", p.name, "DELETE", "/v1/partitions/" + encodeURIComponent(p.name)))),
  ]), "None cut by hand.");
  const runs = shown ? await ask("/v1/campaigns/" + encodeURIComponent(shown) + "/runs?limit=200") : { items: [] };
  document.getElementById("of").textContent = shown ? "of " + shown + (runs.next ? ", the last " + runs.items.length : "") : "";
  fill("runs", runs.items.map((r) => [
    cell(r.id), admitted(r.verdict) ? cell("fail, as documented", "documented") : cell(r.verdict.value, r.verdict.value), cell(r.verdict.reason, "words"), cell(r.proof ? r.proof.wanted : "", "number"),
    cell(r.proof ? (r.proof.leakKnown ? r.proof.leaked : "not known") : "", "number"), cell(r.tap ? ofRun(r.id) : "none"), // none of a run that ended with its daemon
  ]), "None.");
  say("Version " + version.version + ", read " + new Date().toLocaleTimeString());
}

async function again() {
  try { await load(); } catch (e) { say("Not read: " + e.message); }
  setTimeout(again, document.hidden ? 30000 : 3000);
}

if (mayOperate) {
  const heal = document.getElementById("heal");
  heal.append(button("Heal", "everything", "POST", "/v1/reset"));
  heal.hidden = false;
}
addEventListener("hashchange", () => { shown = location.hash.slice(1); load().catch((e) => say("Not read: " + e.message)); });
offer(async (campaign) => {
  if (campaign) location.hash = campaign;
  await load();
});
again();
