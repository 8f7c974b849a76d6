package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A look sees each fault, and none where there is none.
func TestALookSees(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	page := `<!doctype html><meta name="viewport" content="width=device-width"><style>:root { color-scheme: light dark } button { padding: 8px }</style>
		<p>In a sentence, <a href="#a">i</a> is small.</p><p><a href="#b">b</a></p><button>large</button>
		<p style="color: #888; opacity: .9">faint</p><p style="color: #767676">clear in light</p>
		<svg width="300" height="60"><rect width="300" height="60" fill="#222"/><text x="5" y="20" fill="#eee">one</text><text x="15" y="22" fill="#eee">two</text><text x="5" y="45" fill="#444">dim</text></svg>
		<div style="width: 500px">wide</div>`
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	devices := Devices()
	v := devices["telephone"].Open(t, "file://"+path, "div")
	s := v.Look()
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"small", unmeasured(s.Small), []string{"a b"}}, // fonts differ
		{"faint", s.Faint, []string{`3.04: "faint" in p. of body.`, `1.63: "dim" in text. of svg.`}},
		{"met", s.Met, []string{`"one" and "two"`}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if s.Width < 500 || s.Texts != 11 {
		t.Errorf("%d px, %d texts", s.Width, s.Texts)
	}
	v.Take(devices["dark"])
	if s := v.Look(); s.Width != 1280 || !slices.Equal(unmeasured(s.Faint), []string{`"clear in light" in p. of body.`, `"dim" in text. of svg.`}) {
		t.Errorf("in dark: %+v", s)
	}
	if got, want := v.Tabs(), []string{"#a", "#b", "button large"}; !slices.Equal(got, want) {
		t.Errorf("Tab met %q, want %q", got, want)
	}
}

// unmeasured leaves out what was measured.
func unmeasured(in []string) []string {
	var out []string
	for _, s := range in {
		_, what, _ := strings.Cut(s, ": ")
		out = append(out, what)
	}
	return out
}
