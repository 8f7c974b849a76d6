"use strict";
// Everything shown is put in as text, never as markup: names and reasons come
// from the system under test.
(() => {
  let shown = location.hash.slice(1);

  async function ask(path) {
    const res = await fetch(path);
    if (res.status === 401) throw new Error("this browser no longer has access: netsplit access page prints another address");
    const data = await res.json();
    if (!res.ok) throw new Error(data.detail || res.statusText);
    return data;
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

  function report(run) { return link("report", "/v1/runs/" + encodeURIComponent(run) + "/report"); }

  function fill(id, rows, nothing) {
    const tbody = document.querySelector("#" + id + " tbody");
    const heads = Array.from(document.querySelectorAll("#" + id + " th"), (th) => th.textContent);
    tbody.replaceChildren(...rows.map((cells) => {
      const tr = document.createElement("tr");
      cells.forEach((td, i) => { td.dataset.head = heads[i]; }); // where there is no room for columns
      tr.append(...cells);
      return tr;
    }));
    if (rows.length === 0) {
      const td = cell(nothing, "empty");
      td.colSpan = heads.length;
      const tr = document.createElement("tr");
      tr.append(td);
      tbody.append(tr);
    }
  }

  function say(text) { document.getElementById("status").textContent = text; }

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

  // shape says what a partition cuts, as the command line does.
  function shape(p) {
    const only = (p.only || []).map((t) => t.proto + (t.port ? "/" + t.port : "") + (t.opening ? "-opening" : "")).join(", ");
    return [p.shape, p.role ? "role=" + p.role : "", p.label ? "label=" + p.label : "", only ? "only " + only : "", p.effect === "reset" ? "(reset)" : ""]
      .filter((w) => w).join(" ");
  }

  async function load() {
    const [version, campaigns, findings, partitions] = await Promise.all(
      ["/v1/version", "/v1/campaigns?limit=50", "/v1/findings?limit=200", "/v1/partitions?limit=200"].map(ask));
    if (!shown && campaigns.items.length) shown = campaigns.items[0].id;
    fill("campaigns", campaigns.items.map((c) => [
      cell(link(c.id, "#" + c.id)), cell(c.state, c.state), cell(c.spec.target), cell(c.spec.strategy),
      cell(c.planned ? c.done + " of " + c.planned : c.done, "number"), cell(c.findings, "number"), cell(new Date(c.created).toLocaleString()), cell(c.reason),
    ]), "None yet: netsplit campaign TARGET starts one.");
    const sameCause = Map.groupBy(findings.items, (f) => f.causeId);
    fill("findings", [...sameCause.values()].map(([f, ...more]) => [
      cell(f.id), cell(f.class, f.class), cell(f.severity), cell(f.failure.check), cell(f.failure.summary + (more.length ? " (and " + more.length + " more of this cause)" : "")), cell(f.firstAfter, "number"), cell(report(f.run)),
    ]), "None.");
    fill("partitions", partitions.items.map((p) => [
      cell(p.name), cell(p.state, p.state), cell(times(p)), cell(shape(p)), cell(p.groups.map((g) => g.join(" ")).join(" | ")),
      cell(p.wanted, "number"), cell(p.dropped, "number"), cell(p.leakKnown ? p.leaked : "not known", "number"), cell(p.reason || ""),
    ]), "None cut by hand.");
    const runs = shown ? await ask("/v1/campaigns/" + encodeURIComponent(shown) + "/runs?limit=200") : { items: [] };
    document.getElementById("of").textContent = shown ? "of " + shown + (runs.next ? ", the last " + runs.items.length : "") : "";
    fill("runs", runs.items.map((r) => [
      cell(r.id), admitted(r.verdict) ? cell("fail, as documented", "documented") : cell(r.verdict.value, r.verdict.value), cell(r.verdict.reason), cell(r.proof ? r.proof.wanted : "", "number"),
      cell(r.proof ? (r.proof.leakKnown ? r.proof.leaked : "not known") : "", "number"), cell(r.tap ? report(r.id) : "none"), // none of a run that ended with its daemon
    ]), "None.");
    say("Version " + version.version + ", read " + new Date().toLocaleTimeString());
  }

  async function again() {
    try { await load(); } catch (e) { say("Not read: " + e.message); }
    setTimeout(again, document.hidden ? 30000 : 3000);
  }

  addEventListener("hashchange", () => { shown = location.hash.slice(1); load().catch((e) => say("Not read: " + e.message)); });
  again();
})();
