package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Device is what a reader has: the size of the window in pixels, whether it is a telephone,
// and whether the reader asked for dark pages.
type Device struct {
	Width, Height int
	Telephone     bool
	Dark          bool
}

// Devices are those that every page is tried on, by name.
func Devices() map[string]Device {
	return map[string]Device{
		"light":          {Width: 1280, Height: 900},
		"dark":           {Width: 1280, Height: 900, Dark: true},
		"telephone":      {Width: 390, Height: 844, Telephone: true},
		"dark telephone": {Width: 390, Height: 844, Telephone: true, Dark: true},
	}
}

// Visit is a page that a test reads and uses by keyboard.
type Visit struct{ p *piloted }

// Open opens a page on the device and waits until it has the selector.
func (d Device) Open(tb testing.TB, url, selector string) *Visit {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	p := pilot(ctx, tb)
	p.visit("about:blank")
	p.must("Page.enable", nil, nil) // tells of dialogs
	p.must("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	v := &Visit{p}
	v.Take(d)
	p.must("Page.navigate", map[string]any{"url": url}, nil)
	v.Await(selector)
	return v
}

// Take has the reader go on with another device.
func (v *Visit) Take(d Device) {
	v.p.tb.Helper()
	v.p.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": d.Width, "height": d.Height, "deviceScaleFactor": 1, "mobile": d.Telephone}, nil)
	scheme := "light"
	if d.Dark {
		scheme = "dark"
	}
	v.p.must("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// Await waits until the page has the selector.
func (v *Visit) Await(selector string) {
	v.p.tb.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, _, err = v.p.find(selector); err == nil {
			return
		}
	}
	v.p.tb.Fatal(err)
}

// Run runs an expression in the page, waits for it if it is a promise, and decodes its value.
func (v *Visit) Run(expression string, result any) {
	v.p.tb.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	v.p.must("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		v.p.tb.Fatal(out.ExceptionDetails.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(out.Result.Value, result); err != nil {
			v.p.tb.Fatal(err)
		}
	}
}

//go:embed look.js
var look string

// Seen is what a look at a page found.
type Seen struct {
	Width int      // of what the page needs, px
	Texts int      // that were read
	Small []string // controls of less than 24 px; a link in a sentence may be as high as its line
	Faint []string // texts whose contrast with what is below them is less than 4.5
	Met   []string // labels of one picture that cover each other
}

// Look reads the page.
func (v *Visit) Look() Seen {
	v.p.tb.Helper()
	var s Seen
	v.Run(look, &s)
	return s
}

// keys that tests press: the code of each, and what it types.
var keys = map[string]struct {
	code int
	text string
}{"Tab": {9, ""}, "Enter": {13, "\r"}, "Space": {32, " "}, "ArrowDown": {40, ""}, "ArrowRight": {39, ""}}

// Press presses a key, and answers the dialog that it opens, which is the browser's own: "" is
// its Escape. It gives the words of the dialog, "" for none.
func (v *Visit) Press(key, answer string) (dialog string) {
	v.p.tb.Helper()
	v.p.answer, v.p.dialog = answer, ""
	k, name := keys[key], key
	if key == "Space" {
		name = " "
	}
	m := map[string]any{"type": "rawKeyDown", "key": name, "code": key, "windowsVirtualKeyCode": k.code}
	if k.text != "" {
		m["type"], m["text"] = "keyDown", k.text
	}
	v.p.must("Input.dispatchKeyEvent", m, nil)
	v.p.must("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": key, "windowsVirtualKeyCode": k.code}, nil)
	return v.p.dialog
}

// Focus is what has the keyboard: its name, "" for nothing, and whether the page shows it.
type Focus struct {
	Name  string
	Shown bool
	Place int // among the controls; -1: it is none of them
}

// Focus says what has the keyboard.
func (v *Visit) Focus() Focus {
	v.p.tb.Helper()
	var f Focus
	v.Run(`(() => { const e = document.activeElement;
		if (!e || e === document.body || e === document.documentElement) return { name: "", shown: false, place: -1 };
		const s = getComputedStyle(e), r = e.getBoundingClientRect();
		return { name: `+named+`(e), shown: e.matches(":focus-visible") && s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 && r.bottom > 0 && r.top < innerHeight, place: `+controls+`.indexOf(e) };
	})()`, &f)
	return f
}

// named is a function that gives an element the name by which tests know it.
const named = `((e) => e.getAttribute("aria-label") || e.id || e.name || e.getAttribute("href") || (e.localName + (e.getAttribute("class") ? "." + e.getAttribute("class") : "") + " " + e.textContent.trim().slice(0, 40)).trim())`

// controls are what the keyboard must reach, in order.
const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length)`

// Controls are the names of what the keyboard must reach, in order.
func (v *Visit) Controls() []string {
	v.p.tb.Helper()
	var out []string
	v.Run(controls+`.map(`+named+`)`, &out)
	return out
}

// Tabs presses Tab until the focus has been everywhere, and gives what it met in order; a field
// of several parts is met once. It complains of what does not show that it has the focus.
func (v *Visit) Tabs() []string {
	v.p.tb.Helper()
	var out []string
	var first, last Focus
	for range 500 {
		v.Press("Tab", "")
		f := v.Focus()
		if f.Name == "" || len(out) > 1 && f == first {
			return out
		}
		if !f.Shown {
			v.p.tb.Errorf("nothing shows that %s has the focus", f.Name)
		}
		if len(out) == 0 {
			first = f
		}
		if f != last {
			out = append(out, f.Name)
		}
		last = f
	}
	v.p.tb.Fatalf("Tab does not come to an end: %q", out)
	return nil
}

// Shoot writes a picture of the whole page to the folder that NETSPLIT_SHOTS names, if any.
func (v *Visit) Shoot(name string) {
	v.p.tb.Helper()
	dir := os.Getenv("NETSPLIT_SHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data []byte }
	v.p.must("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": v.whole()}, &shot)
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o644); err != nil {
		v.p.tb.Fatal(err)
	}
}

func (v *Visit) whole() map[string]any {
	var size struct{ Width, Height float64 }
	v.Run(`({ width: document.documentElement.clientWidth, height: document.documentElement.scrollHeight })`, &size)
	return map[string]any{"x": 0, "y": 0, "width": size.Width, "height": size.Height, "scale": 1}
}
