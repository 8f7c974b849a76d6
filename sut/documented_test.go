package sut

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
)

func page(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// example is a block of the reference that begins with a key, indented.
func example(t *testing.T, key, indent string) string {
	t.Helper()
	_, from, ok := strings.Cut(page(t, "docs", "target-reference.md"), "\n```\n"+key+":\n")
	block, _, ended := strings.Cut(from, "\n```\n")
	if !ok || !ended {
		t.Fatalf("no example of %s", key)
	}
	return strings.ReplaceAll("\n"+key+":\n"+block, "\n", "\n"+indent) + "\n"
}

// TestTheDocumentedExamplesAreRead: who copies them and changes the numbers has a file in order.
func TestTheDocumentedExamplesAreRead(t *testing.T) {
	protocol := func(dissector, more string) model.Protocol {
		tg, err := Parse("t.yaml", []byte(strings.Replace(small, "  - {port: 7000, transport: tcp, dissector: text}\n",
			"  - port: 7000\n    transport: tcp\n    dissector: "+dissector+more, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return tg.Protocols[0]
	}
	if f := protocol("frames", example(t, "frames", "    ")).Frames; f == nil || f.Length.Plus != 8 || len(f.Type) != 2 || f.Answer == nil || f.Correlation.Answer.At != 12 || f.Fields["term"].Size != 8 {
		t.Errorf("%+v", f)
	}
	if l := protocol("text", example(t, "lines", "    ")).Lines; len(l) != 2 || l[0].Plus != 2 || l[0].Fields["term"].At != 8 {
		t.Errorf("%+v", l)
	}
	if f := protocol("frames", "\n    frames:\n      length: {at: 1, size: 4, plus: 1}"+example(t, "first", "      ")).Frames.First; len(f) != 2 || f[0].Length.Size != 4 || !f[1].Answer || f[1].Size != 1 {
		t.Errorf("%+v", f)
	}
}

func TestTheSmallestTargetIsOne(t *testing.T) {
	_, from, _ := strings.Cut(page(t, "deploy", "targets", "README.md"), "\n```yaml\n")
	file, _, ok := strings.Cut(from, "\n```\n")
	if !ok {
		t.Fatal("the guide shows no file")
	}
	if _, err := Parse("t.yaml", []byte(file)); err != nil {
		t.Error(err)
	}
}

func TestTheExampleOfTheTutorialIsATarget(t *testing.T) {
	if _, _, err := Load("../e2e/targets/my-redis"); err != nil {
		t.Fatal(err)
	}
	file := page(t, "e2e", "targets", "my-redis", FileName)
	blocks := strings.Split(page(t, "docs", "add-a-system.md"), "\n```yaml\n")[1:]
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```\n")
		if !strings.Contains(file, b) {
			t.Errorf("the example lacks\n%s", b)
		}
	}
	if len(blocks) < 4 {
		t.Errorf("the tutorial shows %d pieces of it", len(blocks))
	}
}

// TestTheTableOfSystems names every target that comes with netsplit, all its releases with its
// default, workloads that it has, and every finding.
func TestTheTableOfSystems(t *testing.T) {
	table := page(t, "docs", "systems.md")
	folders, err := filepath.Glob("../deploy/targets/*/" + FileName)
	if err != nil || len(folders) < 10 {
		t.Fatalf("%q, %v", folders, err)
	}
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		tg, _, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		row := ""
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, " | "); len(cells) == 4 && strings.Contains(cells[0], "`"+name+"`") {
				row = line
			}
		}
		want := []string{"Debian's"}
		if tg.Software != nil {
			want = nil
			for _, v := range tg.Software.Versions {
				switch v {
				case "debian":
					v = "Debian's"
				case tg.Software.Default:
					v = "**" + v + "**"
				}
				want = append(want, v)
			}
		}
		if releases := strings.Join(want, ", "); !strings.Contains(row, " | "+releases+" | ") {
			t.Errorf("%s has %s: %s", name, releases, row)
		}
		if w, has := tg.Args["workload"]; has {
			if !strings.Contains(row, "**`"+w.Default+"`**") && !strings.Contains(row, "`"+w.Default+"` (default of `"+name+"`)") {
				t.Errorf("the default of %s is %s: %s", name, w.Default, row)
			}
		}
	}
	findings, err := filepath.Glob("../docs/findings/*.md")
	if err != nil || len(findings) < 10 {
		t.Fatalf("%q, %v", findings, err)
	}
	for _, f := range findings {
		if link := "(findings/" + filepath.Base(f) + ")"; !strings.Contains(table, link) {
			t.Errorf("no %s", link)
		}
	}
}
