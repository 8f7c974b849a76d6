// What a reader of this page would stumble over: gives {width, small, faint, met}.
(() => {
  const parse = (s) => { const m = /^rgba?\(([^)]+)\)/.exec(s); if (!m) return null; const v = m[1].split(/[ ,/]+/).map(Number); return [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const probe = document.createElement("i");
  probe.style.color = "Canvas";
  document.body.append(probe);
  const canvas = parse(getComputedStyle(probe).color);
  probe.remove();

  const shown = (e) => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && e.getClientRects().length > 0;
  const meets = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const holds = (r, x, y) => x >= r.left && x <= r.right && y >= r.top && y <= r.bottom;
  const isSVG = (e) => e instanceof SVGElement;
  const below = new Map(); // of each element: the colour of its ground, and how much of its text's is left
  const htmlGround = (e) => {
    if (!e) return [canvas, 1];
    if (!below.has(e)) {
      const [g, fade] = htmlGround(e.parentElement), s = getComputedStyle(e), c = parse(s.backgroundColor);
      below.set(e, [c && !isSVG(e) ? over(c, g) : g, fade * Number(s.opacity)]);
    }
    return below.get(e);
  };
  const drawn = new Map(); // of each picture: its shapes, in order
  const shapes = (svg) => {
    if (!drawn.has(svg)) {
      drawn.set(svg, [...svg.querySelectorAll("rect, circle")].filter(shown).map((e) => {
        const s = getComputedStyle(e), c = parse(s.fill);
        return { e, box: e.getBoundingClientRect(), colour: c && [c[0], c[1], c[2], c[3] * s.opacity * s.fillOpacity] };
      }));
    }
    return drawn.get(svg);
  };
  // ground is what lies below the text of an element: backgrounds, and in a picture the shapes that are drawn before it.
  const ground = (e, x, y) => {
    let [g, fade] = htmlGround(e);
    const svg = isSVG(e) && e.closest("svg");
    if (svg) {
      for (const s of shapes(svg)) {
        if (s.colour && holds(s.box, x, y) && s.e.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) g = over(s.colour, g);
      }
      const s = getComputedStyle(e), halo = parse(s.stroke);
      if (halo && s.paintOrder.startsWith("stroke")) g = over(halo, g);
    }
    return [g, fade];
  };

  const faint = new Map();
  const read = (e, text, colour, r) => {
    if (!colour) return;
    for (const x of isSVG(e) ? [r.left + 2, (r.left + r.right) / 2, r.right - 2] : [r.left]) {
      const [g, fade] = ground(e, x, (r.top + r.bottom) / 2);
      const k = ratio(over([colour[0], colour[1], colour[2], colour[3] * fade], g), g);
      const what = `${k.toFixed(2)}: "${text.trim().slice(0, 40)}" in ${e.localName}.${e.getAttribute("class") || ""} of ${e.parentElement.localName}.${e.parentElement.getAttribute("class") || ""}`;
      if (k < 4.5) { faint.set(what, true); return; }
    }
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !shown(e) || e.closest("script, style, noscript, option, title, :disabled, [aria-disabled=true]")) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    const r = isSVG(e) ? e.getBoundingClientRect() : range.getBoundingClientRect();
    if (r.width < 1 || r.height < 1) continue;
    texts++;
    read(e, n.data, parse(getComputedStyle(e)[isSVG(e) ? "fill" : "color"]), r);
  }
  for (const e of document.querySelectorAll("input")) {
    if (shown(e) && !e.disabled && (e.value || e.placeholder)) read(e, e.value || e.placeholder, parse(getComputedStyle(e, e.value ? null : "::placeholder").color), e.getBoundingClientRect());
  }

  // A link in a sentence is as high as its line.
  const inSentence = (e) => getComputedStyle(e).display === "inline" && [...e.parentElement.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  const small = [];
  for (const e of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")) {
    const r = e.getBoundingClientRect();
    if (shown(e) && !inSentence(e) && e.tabIndex >= 0 && (r.width < 24 || r.height < 24)) small.push(`${r.width.toFixed(0)}x${r.height.toFixed(0)}: ${e.localName} ${e.getAttribute("aria-label") || e.name || e.textContent.trim().slice(0, 40)}`);
  }

  const met = [];
  for (const svg of document.querySelectorAll("svg:not(svg svg)")) {
    const labels = [...svg.querySelectorAll("text")].filter((e) => shown(e) && e.textContent.trim()).map((e) => [e.textContent, e.getBoundingClientRect()]);
    for (const [i, [t, a]] of labels.entries()) for (const [u, b] of labels.slice(0, i)) {
      // The box of a line is higher than its letters.
      const letters = (r) => ({ left: r.left, right: r.right, top: r.top + r.height * 0.2, bottom: r.bottom - r.height * 0.2 });
      if (meets(letters(a), letters(b))) met.push(`"${u}" and "${t}"`);
    }
  }
  return { width: document.documentElement.scrollWidth, texts, small: [...new Set(small)], faint: [...faint.keys()], met: [...new Set(met)] };
})()
