// What this page may do, and how it asks the daemon.

// The address of netsplit access page --controls or --start has a credential in its fragment.
// It stays in this tab: sessionStorage is of this port alone, which cookies are not.
const fragment = new URLSearchParams(location.hash.slice(1));
for (const may of ["controls", "start"]) {
  if (fragment.get(may)) {
    sessionStorage.setItem("may", may);
    sessionStorage.setItem("credential", fragment.get(may));
    history.replaceState(null, "", location.pathname);
  }
}
const credential = sessionStorage.getItem("credential");

// mayOperate: pause, resume and cancel campaigns, heal, and write notes.
export const mayOperate = Boolean(credential);
// mayStart: start and schedule campaigns, too.
export const mayStart = mayOperate && sessionStorage.getItem("may") === "start";

// ask returns what the daemon answers; null where it has nothing to say.
export async function ask(path, method, body, more) {
  const headers = method ? { Authorization: "Bearer " + credential, ...more } : {};
  if (body) headers["Content-Type"] = "application/json";
  const res = await fetch(path, { method: method || "GET", headers, body: body && JSON.stringify(body) });
  if (res.status === 401) throw new Error("this browser no longer has access: netsplit access page prints another address");
  const data = res.status === 204 ? null : await res.json();
  if (!res.ok && !(data && data.checks)) { // health is told with 503, too
    const e = new Error([data.detail || res.statusText, ...(data.errors || []).map((x) => x.location + ": " + x.message)].join(" "));
    e.status = res.status;
    throw e;
  }
  return data;
}

export function say(text) { document.getElementById("status").textContent = text; }
