package sut

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"netsplit/model"
)

// TestEveryKeyIsDocumented: the page says that it explains them all.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "deploy", "targets", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(at string, typ reflect.Type)
	walk = func(at string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(at, typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				if key == "" || key == "-" {
					continue
				}
				if !regexp.MustCompile("(?m)(?:[`{ ]|^)" + regexp.QuoteMeta(key) + "[`:]").Match(page) {
					t.Errorf("%s.%s (%s.%s) is not on the page", at, key, typ, f.Name)
				}
				walk(at+"."+key, f.Type)
			}
		}
	}
	walk("target", reflect.TypeFor[model.Target]())
}

// documented is a target file with the example of a protocol that the page has.
func documented(t *testing.T, port, key string) *model.Target {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "deploy", "targets", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	head := "    - port: " + port + "\n"
	_, from, ok := strings.Cut(string(b), "\n"+head)
	example, _, ended := strings.Cut(head+from, "\n\n")
	if !ok || !ended || !strings.Contains(example, key) {
		t.Fatalf("no example of %s %q", key, example)
	}
	tg, err := Parse("t.yaml", []byte(strings.Replace(small, "  - {port: 7000, transport: tcp, dissector: text}\n", example+"\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

// TestTheDocumentedFramesAreRead: who copies them from the page and changes the
// numbers has a file in order.
func TestTheDocumentedFramesAreRead(t *testing.T) {
	if f := documented(t, "7000", "frames:").Protocols[0].Frames; f == nil || f.Length.Plus != 8 || len(f.Type) != 2 || f.Answer == nil || f.Correlation.Answer.At != 12 || f.Fields["id"].As != "hex" {
		t.Errorf("%+v", f)
	}
}

// TestTheDocumentedBeginningsAreRead: below the example of frames, as the page says.
func TestTheDocumentedBeginningsAreRead(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "deploy", "targets", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, from, ok := strings.Cut(string(b), "\n      first:")
	first, _, ended := strings.Cut(from, "\n\n")
	if !ok || !ended {
		t.Fatal("no example of first")
	}
	protocol := "  - port: 7000\n    transport: tcp\n    dissector: frames\n    frames:\n      length: {at: 1, size: 4, plus: 1}\n      first:" + first + "\n"
	tg, err := Parse("t.yaml", []byte(strings.Replace(small, "  - {port: 7000, transport: tcp, dissector: text}\n", protocol, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if f := tg.Protocols[0].Frames.First; len(f) != 2 || f[0].Length.Size != 4 || !f[1].Answer || f[1].Size != 1 {
		t.Errorf("%+v", f)
	}
}

func TestTheDocumentedLinesAreRead(t *testing.T) {
	if l := documented(t, "6222", "lines:").Protocols[0].Lines; len(l) != 2 || l[0].Plus != 2 || l[0].Fields["term"].At != 8 {
		t.Errorf("%+v", l)
	}
}
