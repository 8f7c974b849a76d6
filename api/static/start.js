// The form that starts or schedules a campaign, made of the target's settings.
import { ask, mayStart, say } from "./ask.js";

const form = document.getElementById("start-form");
const field = (name) => form.elements.namedItem(name);
let scripts = []; // those that come with netsplit
let busy = false; // a request is under way
let forScripts = false; // the chosen target has no workload of its own

function option(value, text) {
  const o = document.createElement("option");
  o.value = value;
  o.textContent = text ?? value;
  return o;
}

// describe fills in what the chosen target has.
async function describe() {
  const t = await ask("/v1/targets/" + encodeURIComponent(field("target").value));
  document.getElementById("start-title").textContent = `${t.title}. Nodes: ${t.nodes.join(", ")}. Clients: ${t.clients.join(", ") || "none"}.` + (t.scripted ? " This target is for scripts: choose one." : "");
  forScripts = Boolean(t.scripted);
  field("script").replaceChildren(option("", "none: search"), ...scripts.filter((s) => s.target === field("target").value).map((s) => option(s.name, s.name + (s.title ? ": " + s.title : ""))));
  plays();
  field("release").replaceChildren(...(t.releases.length ? t.releases.map((r) => option(r)) : [option("", "installed")]));
  field("release").value = t.release || "";
  document.getElementById("start-settings").replaceChildren(...t.settings.map((s) => {
    const label = document.createElement("label"), input = document.createElement("input"), help = document.createElement("small");
    input.name = "setting " + s.name;
    input.placeholder = s.default;
    help.textContent = s.help || "";
    label.append(s.name, input, help);
    return label;
  }));
}

// plays shows what belongs to a script, or to a search.
function plays() {
  const script = field("script").value !== "";
  for (const name of ["strategy", "clean"]) field(name).closest("label").hidden = field(name).disabled = script;
  document.getElementById("start-runs").textContent = script ? "Plays" : "Fault runs";
  field("runs").placeholder = script ? "1" : "20";
  field("go").disabled = forScripts && !script;
}

// spec is the campaign that the form asks for.
function spec() {
  const target = field("target").value + (field("release").value ? "@" + field("release").value : "");
  const script = field("script").value;
  const out = script ? { target, script: { name: script } } : { target, strategy: field("strategy").value };
  for (const name of ["runs", "labs", "seed", ...(script ? [] : ["clean"])]) if (field(name).value) out[name] = Number(field(name).value);
  if (field("budget").value) out.budget = field("budget").value;
  const args = {};
  for (const input of form.querySelectorAll('input[name^="setting "]')) if (input.value) args[input.name.slice("setting ".length)] = input.value;
  if (Object.keys(args).length) out.args = args;
  return out;
}

function when() {
  const now = field("when").value === "now";
  for (const name of ["at", "cron"]) field(name).closest("label").hidden = field("when").value !== name;
  field("name").closest("label").hidden = now;
  field("name").required = !now;
  field("at").required = field("when").value === "at";
  field("cron").required = field("when").value === "cron";
  field("go").textContent = now ? "Start" : "Schedule";
}

function told(text, cls) {
  const out = document.getElementById("start-said");
  out.textContent = text;
  out.className = cls;
}

async function submit(event, started) {
  event.preventDefault();
  if (busy) return;
  busy = true; // a disabled button would lose the keyboard's focus
  field("go").ariaDisabled = "true";
  told("", "");
  try {
    if (field("when").value === "now") {
      const c = await ask("/v1/campaigns", "POST", spec(), { "Idempotency-Key": crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) });
      told("Started " + c.id, "");
      await started(c.id);
    } else {
      const plan = { campaign: spec() };
      if (field("when").value === "at") plan.at = new Date(field("at").value).toISOString();
      else Object.assign(plan, { cron: field("cron").value, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone });
      const s = await ask("/v1/schedules/" + encodeURIComponent(field("name").value), "PUT", plan);
      told("Scheduled " + s.name, "");
      await started("");
    }
  } catch (e) {
    told("Not started: " + e.message, "fail");
  }
  busy = false;
  field("go").ariaDisabled = null;
}

// offer shows the form where this page may start campaigns. started is told of each.
export async function offer(started) {
  if (!mayStart) return;
  document.getElementById("start").hidden = false;
  field("target").addEventListener("change", () => describe().catch((e) => say("Not read: " + e.message)));
  field("script").addEventListener("change", plays);
  field("when").addEventListener("change", when);
  form.addEventListener("submit", (e) => submit(e, started));
  when();
  try {
    const targets = (await ask("/v1/targets")).items.filter((t) => !t.uploaded || t.newest);
    scripts = (await ask("/v1/scripts")).items;
    field("target").replaceChildren(...targets.map((t) => option(t.name)));
    if (targets.length) await describe();
  } catch (e) { say("Not read: " + e.message); }
}
