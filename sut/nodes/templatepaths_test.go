package nodes

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"netsplit/model"
)

// TestATemplateThatNamesItsFolderIsNone: every run that started from a copy would
// work in the folder of the run that made it, and meet there what others left.
func TestATemplateThatNamesItsFolderIsNone(t *testing.T) {
	for line, tied := range map[string]string{
		"printf dir={{.Dir}}/data > {{.Dir}}/data/config":                     "n1/data/config",
		"ln -s {{.Dir}}/data/a {{.Dir}}/data/b":                               "n1/data/b",
		"printf dir={{.Dir}} > {{.Dir}}/log":                                  "", // is not kept
		"printf dir=. > {{.Dir}}/data/config; ln -s config {{.Dir}}/data/cur": "",
		"true": "", // is written anew for each run
	} {
		f := newTemplateRuns(t, "mkdir -p {{.Dir}}/data; {{if .Building}}"+line+"{{end}}")
		f.tg.Template = model.TemplateSetting{Keep: []string{"data"}}
		f.tg.Processes = append(f.tg.Processes, model.Process{Name: "server", Hosts: []model.NodeID{"n1"}, MayExit: true,
			Command: []string{"true"}, Files: map[string]string{"data/server.conf": "dir={{.Dir}}"}})
		p, notes := f.run(nil)
		if tied == "" {
			if p.template == nil || len(f.reported) > 0 {
				t.Errorf("%s: template %v, told %q, notes %s", line, p.template, f.reported, notes)
			}
			continue
		}
		if p.template != nil || len(f.reported) != 1 || !strings.Contains(f.reported[0], "("+tied+")") || !strings.Contains(notes, "the run starts from nothing") {
			t.Errorf("%s: template %v, told %q, notes %s", line, p.template, f.reported, notes)
		}
		if left, _ := filepath.Glob(filepath.Join(f.cache, "template-*", manifestFile)); len(left) > 0 {
			t.Errorf("%s: the next campaign would take %s", line, left)
		}
	}
}

// TestANameIsFoundWhereverItStands, across two parts of a reading as well.
func TestANameIsFoundWhereverItStands(t *testing.T) {
	names := [][]byte{[]byte("/runs/r0001/work"), []byte("/real/work")}
	for _, at := range []int{0, 1, 256<<10 - 5, 256<<10 + 3, 256<<10 + 16, 600 << 10} {
		text := append(bytes.Repeat([]byte("x"), at), "/runs/r0001/work/n1"...)
		for _, r := range []func() (bool, error){
			func() (bool, error) { return occur(bytes.NewReader(text), names) },
			func() (bool, error) { return occur(iotest.HalfReader(bytes.NewReader(text)), names) },
		} {
			if found, err := r(); !found || err != nil {
				t.Errorf("at %d: found %v, %v", at, found, err)
			}
		}
		if found, err := occur(bytes.NewReader(text[:at+10]), names); found || err != nil {
			t.Errorf("half of it at %d: found %v, %v", at, found, err)
		}
	}
	if _, err := occur(iotest.ErrReader(os.ErrPermission), names); err == nil {
		t.Error("what could not be read has no name")
	}
}
