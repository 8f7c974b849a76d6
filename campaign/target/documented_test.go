package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
)

// documented is a target file with the example of a protocol that the page has.
func documented(t *testing.T, port, key string) *model.Target {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "targets", "README.md"))
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
	if f := documented(t, "7000", "frames:").Protocols[0].Frames; f == nil || f.Length.Plus != 8 || len(f.Type) != 2 || f.Answer == nil || f.Fields["id"].As != "hex" {
		t.Errorf("%+v", f)
	}
}

func TestTheDocumentedLinesAreRead(t *testing.T) {
	if l := documented(t, "6222", "lines:").Protocols[0].Lines; len(l) != 2 || l[0].Plus != 2 || l[0].Fields["term"].At != 8 {
		t.Errorf("%+v", l)
	}
}
