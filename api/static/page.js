"use strict";
// Everything shown is put in as text, never as markup: names and reasons come
// from the system under test.
(() => {
  // The address of netsplit access page --controls has a credential in its fragment. It stays
  // in this tab: sessionStorage is of this port alone, which cookies are not.
  const controls = new URLSearchParams(location.hash.slice(1)).get("controls");
  if (controls) {
    sessionStorage.setItem("controls", controls);
    history.replaceState(null, "", location.pathname);
  }
  const credential = sessionStorage.getItem("controls");
  let shown = location.hash.slice(1);

  async function ask(path, method) {
    const headers = method ? { Authorization: "Bearer " + credential } : {};
    const res = await fetch(path, { method: method || "GET", headers });
    if (res.status === 401) throw new Error("this browser no longer has access: netsplit access page prints another address");
    const data = await res.json();
    if (!res.ok && !data.checks) throw new Error(data.detail || res.statusText); // health is told with 503, too
    return data;
  }

  // button does something to what is named; none where this page may only read.
  function button(text, name, method, path) {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = name === "everything" ? "Heal everything" : text;
    b.setAttribute("aria-label", text + " " + name);
    b.addEventListener("click", async () => {
      if (text === "Cancel" && !confirm("Cancel " + name + "? It cannot be resumed.")) return;
      b.disabled = true;
      say(text + " " + name + " …");
      try { await ask(path, method); await load(); } catch (e) { b.disabled = false; say("Not done: " + e.message); }
    });
    return b;
  }

  function actions(...buttons) {
    const span = document.createElement("span");
    span.append(...buttons);
    return credential ? span : "";
  }

  function forCampaign(c) {
    const path = "/v1/campaigns/" + encodeURIComponent(c.id);
    const out = [];
    if (c.spec.strategy !== "scripted" && (c.state === "queued" || c.state === "running")) out.push(button("Pause", c.id, "POST", path + "/pause"));
    if (c.state === "paused" || c.state === "failed" && c.spec.strategy !== "scripted") out.push(button("Resume", c.id, "POST", path + "/resume"));
    if (c.state === "queued" || c.state === "running" || c.state === "paused") out.push(button("Cancel", c.id, "DELETE", path));
    return actions(...out);
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
    const [version, health, campaigns, findings, partitions, schedules] = await Promise.all(
      ["/v1/version", "/healthz", "/v1/campaigns?limit=50", "/v1/findings?limit=200", "/v1/partitions?limit=200", "/v1/schedules"].map((path) => ask(path)));
    fill("health", health.checks.filter((c) => !c.ok).map((c) => [cell(c.name, "fail"), cell(c.detail)]),
      health.checks.length + " parts are checked, and all are well: " + health.checks.map((c) => c.name + " (" + c.detail + ")").join(", ") + ".");
    fill("schedules", schedules.items.map((s) => [
      cell(s.name), cell(target(s.campaign)), cell(s.cron ? s.cron + (s.timeZone ? " " + s.timeZone : "") : new Date(s.at).toLocaleString()),
      cell(s.paused ? "paused" : s.next ? new Date(s.next).toLocaleString() : "never"), cell(s.last ? link(s.last, "#" + s.last) : ""), cell(s.note),
    ]), "None: netsplit campaign schedule makes one.");
    if (!shown && campaigns.items.length) shown = campaigns.items[0].id;
    fill("campaigns", campaigns.items.map((c) => [
      cell(link(c.id, "#" + c.id)), cell(c.state, c.state), cell(target(c.spec)), cell(c.spec.strategy),
      cell(c.planned ? c.done + " of " + c.planned : c.done, "number"), cell(c.findings, "number"), cell(new Date(c.created).toLocaleString()), cell(c.reason), cell(forCampaign(c)),
    ]), "None yet: netsplit campaign TARGET starts one.");
    const sameCause = Map.groupBy(findings.items, (f) => f.causeId);
    fill("findings", [...sameCause.values()].map(([f, ...more]) => [
      cell(f.id), cell(f.class, f.class), cell(f.severity), cell(f.failure.check), cell(f.failure.summary + (more.length ? " (and " + more.length + " more of this cause)" : "")), cell(f.firstAfter, "number"), cell(report(f.run)),
    ]), "None.");
    fill("partitions", partitions.items.map((p) => [
      cell(p.name), cell(p.state, p.state), cell(times(p)), cell(shape(p)), cell(p.groups.map((g) => g.join(" ")).join(" | ")),
      cell(p.wanted, "number"), cell(p.dropped, "number"), cell(p.leakKnown ? p.leaked : "not known", "number"), cell(p.reason || ""),
      cell(p.state === "healed" || p.state === "failed" ? "" : actions(button("Heal", p.name, "DELETE", "/v1/partitions/" + encodeURIComponent(p.name)))),
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

  if (credential) {
    const heal = document.getElementById("heal");
    heal.append(button("Heal", "everything", "POST", "/v1/reset"));
    heal.hidden = false;
  }
  addEventListener("hashchange", () => { shown = location.hash.slice(1); load().catch((e) => say("Not read: " + e.message)); });
  again();
})();
