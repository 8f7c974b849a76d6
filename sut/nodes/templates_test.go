package nodes

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed"
)

// templateRuns begins runs of a target on this machine, one after the other,
// as those of one campaign.
type templateRuns struct {
	t        *testing.T
	cache    string
	tg       *model.Target
	known    *templates
	reported []string
	mayFail  bool  // the target may not start
	failed   error // why the last run's did not
}

// newTemplateRuns has a target of one set-up command, a shell line.
func newTemplateRuns(t *testing.T, line string) *templateRuns {
	f := &templateRuns{t: t, cache: t.TempDir(), tg: &model.Target{Name: "x", Nodes: []model.NodeID{"n1"}, Template: model.TemplateSetting{Warm: true},
		Timing:    model.Timing{Settle: 20 * time.Second},
		Processes: []model.Process{{Name: "setup", Hosts: []model.NodeID{"n1"}, Once: true, Command: []string{"sh", "-c", line}}}}}
	f.campaign()
	return f
}

// campaign begins another one.
func (f *templateRuns) campaign() {
	f.reported = nil
	f.known = newTemplates(func(text string) { f.reported = append(f.reported, text) })
}

// journal keeps what processes tell of themselves.
type journal struct {
	mu    sync.Mutex
	notes string
	fails []string
}

func (j *journal) Note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes += fmt.Sprintf(format, args...) + "\n"
}

func (j *journal) Fail(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fails = append(j.fails, fmt.Sprintf(format, args...))
}

func (j *journal) Unread(format string, args ...any) { j.Fail(format, args...) }

func (j *journal) NodeDone(model.NodeAction) {}

func (j *journal) Number() uint64 { return 1 }

// run makes or finds the template, starts the target, does something, and stops
// it; it returns the run's processes and the remarks in its record. Nothing may
// keep the run from being judged.
func (f *templateRuns) run(during func(p *Processes)) (p *Processes, notes string) {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "run")
	rec, err := rundir.Create(dir, model.RunMeta{Run: "c-1-r0001"})
	if err != nil {
		f.t.Fatal(err)
	}
	defer rec.Close()
	j := &journal{}
	p = New(Config{Kit: &Kit{Target: f.tg, cache: f.cache, templates: f.known, expand: sut.ExpandInput{Netsplit: self, Cache: filepath.Join(f.cache, "cache")}},
		Run: "c-1-r0001", Dir: dir, Start: time.Now(), Record: rec, Journal: j,
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Hosts: []model.TestbedHost{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}}}})
	if err := p.MakeTemplate(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	if f.failed = p.Start(context.Background()); f.failed != nil && !f.mayFail {
		f.t.Fatal(f.failed)
	}
	if during != nil {
		during(p)
	}
	if err := p.StopAll(); err != nil {
		f.t.Fatal(err)
	}
	if len(j.fails) > 0 {
		f.t.Errorf("the run cannot be judged: %q", j.fails)
	}
	for _, x := range p.ended {
		if x.Num == 0 {
			f.t.Errorf("an exit has no number: %+v", x)
		}
	}
	return p, j.notes
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestATemplateThatCannotBeMadeIsTriedOnce: by the first run of a campaign,
// which says so; all runs start from nothing, with a cache that nobody else has.
func TestATemplateThatCannotBeMadeIsTriedOnce(t *testing.T) {
	count := filepath.Join(openDir(t), "count")
	f := newTemplateRuns(t, "{{if .Building}}echo >> "+count+"; echo half > {{.Cache}}/a.jsa; exit 3{{else}}test -z \"$(ls {{.Cache}})\" && echo mine > {{.Cache}}/a.jsa{{end}}")
	for range 3 {
		p, notes := f.run(nil)
		if p.template != nil || !strings.Contains(notes, "the run starts from nothing") || !strings.Contains(notes, "exit status 3") {
			t.Errorf("template %v, notes %s", p.template, notes)
		}
	}
	if b, _ := os.ReadFile(count); len(b) != 1 {
		t.Errorf("tried %d times in one campaign", len(b))
	}
	if len(f.reported) != 1 || !strings.Contains(f.reported[0], "every run starts from nothing") || !strings.Contains(f.reported[0], "exit status 3") || f.known.news() != f.reported[0] {
		t.Errorf("told %q", f.reported)
	}
	f.campaign()
	f.run(nil)
	if b, _ := os.ReadFile(count); len(b) != 2 {
		t.Errorf("tried %d times in two campaigns", len(b))
	}
}

// TestATemplateFromWhichNothingStartsIsMadeAnew, once: a process that was stopped as it wrote to
// .Cache leaves a part of a file, and nothing that was changed since.
func TestATemplateFromWhichNothingStartsIsMadeAnew(t *testing.T) {
	for _, c := range []struct {
		serve  string
		server bool // a server starts from it, not a command of the set-up
		starts bool
	}{{"grep -q whole {{.Cache}}/a.jsa", false, true}, {"grep -q whole {{.Cache}}/a.jsa && exec sleep 60", true, true}, {"false", false, false}} {
		count := filepath.Join(openDir(t), "count")
		build, serve := "test -s "+count+" && echo whole > {{.Cache}}/a.jsa || echo half > {{.Cache}}/a.jsa; echo >> "+count, c.serve
		if c.server {
			serve = "true"
		}
		f := newTemplateRuns(t, "{{if .Building}}"+build+"{{else}}"+serve+"{{end}}")
		f.mayFail = true
		if c.server {
			f.tg.Processes = append(f.tg.Processes, model.Process{Name: "server", Hosts: []model.NodeID{"n1"}, Command: []string{"sh", "-c", "{{if .Building}}exec sleep 60{{else}}" + c.serve + "{{end}}"}})
			// It holds once the server has had time to end.
			f.tg.Stable = []model.Condition{{Name: "up", Hosts: []model.NodeID{"n1"}, Probe: model.Probe{Command: []string{"sh", "-c", "sleep 0.5; echo up"}}, Match: "up"}}
		}
		p, _ := f.run(nil)
		if p.template == nil || f.failed == nil || len(f.reported) != 1 || !strings.Contains(f.reported[0], "did not start from its template, which is made again") {
			t.Fatalf("started from half a file: %v, told %q", f.failed, f.reported)
		}
		for range 3 {
			f.run(nil)
			if (f.failed == nil) != c.starts {
				t.Errorf("%s: %v", c.serve, f.failed)
			}
		}
		if b, _ := os.ReadFile(count); len(b) != 2 || len(f.reported) != 1 {
			t.Errorf("%s: made %d times, told %q", c.serve, len(b), f.reported)
		}
	}
}

// TestATargetThatStartsTooSlowlyKeepsItsTemplate: the machine may be busy.
func TestATargetThatStartsTooSlowlyKeepsItsTemplate(t *testing.T) {
	count := filepath.Join(openDir(t), "count")
	f := newTemplateRuns(t, "{{if .Building}}echo >> "+count+"{{else}}sleep 5{{end}}")
	f.mayFail, f.tg.Timing.Settle = true, time.Second
	for range 2 {
		if f.run(nil); f.failed == nil || !strings.Contains(f.failed.Error(), "did not become stable") {
			t.Errorf("%v", f.failed)
		}
	}
	if b, _ := os.ReadFile(count); len(b) != 1 || len(f.reported) > 0 {
		t.Errorf("made %d times, told %q", len(b), f.reported)
	}
}

// TestADamagedCacheOfATemplateIsMadeAnew: changed, missing and added files,
// each of which is named.
func TestADamagedCacheOfATemplateIsMadeAnew(t *testing.T) {
	for want, damage := range map[string]func(dir string){
		"a.jsa was changed":   func(dir string) { write(t, filepath.Join(dir, "a.jsa"), "ARCHIVF") },
		"sub/b is missing":    func(dir string) { os.Remove(filepath.Join(dir, "sub", "b")) },
		"new.list was added":  func(dir string) { write(t, filepath.Join(dir, "new.list"), "") },
		"a.jsa was changed; ": func(dir string) { os.RemoveAll(dir); os.Mkdir(dir, 0o755); write(t, filepath.Join(dir, "a.jsa"), "") },
	} {
		t.Run(want, func(t *testing.T) {
			f := newTemplateRuns(t, "{{if .Building}}printf ARCHIVE > {{.Cache}}/a.jsa && mkdir {{.Cache}}/sub && ln -s ../a.jsa {{.Cache}}/sub/b{{end}}")
			f.known.quiet = 0
			p, _ := f.run(nil)
			if p.template == nil || len(p.template.Cache) != 3 {
				t.Fatalf("template %+v", p.template)
			}
			dir := p.template.cache()
			for range 2 { // the second one looks at no more than stamps
				f.run(nil)
			}
			if len(f.reported) > 0 || len(f.known.hashed) != 1 {
				t.Fatalf("nothing was changed, told %q; %d digests kept", f.reported, len(f.known.hashed))
			}
			time.Sleep(20 * time.Millisecond) // the clock of the file system ticks
			damage(dir)
			p, notes := f.run(nil)
			if b, _ := os.ReadFile(filepath.Join(dir, "sub", "b")); p.template == nil || string(b) != "ARCHIVE" {
				t.Errorf("template %+v with %q", p.template, b)
			}
			if _, err := os.Stat(filepath.Join(dir, "new.list")); err == nil {
				t.Error("what was added is there still")
			}
			if len(f.reported) != 1 || !strings.Contains(f.reported[0], want) || !strings.Contains(f.reported[0], "made again") || !strings.Contains(notes, want) {
				t.Errorf("told %q, notes %s, want %q", f.reported, notes, want)
			}
		})
	}
}

// TestARunThatChangesTheCacheOfATemplateIsNamed, with the file; the next one
// makes the template anew, but not for ever.
func TestARunThatChangesTheCacheOfATemplateIsNamed(t *testing.T) {
	f := newTemplateRuns(t, "{{if .Building}}printf ARCHIVE > {{.Cache}}/a.jsa{{end}}")
	spoil := func(p *Processes) { write(t, filepath.Join(p.template.cache(), "a.jsa"), "ARCHIVF") }
	_, notes := f.run(spoil)
	if want := "during run c-1-r0001"; len(f.reported) != 1 || !strings.Contains(f.reported[0], want) || !strings.Contains(f.reported[0], "a.jsa was changed") || !strings.Contains(notes, want) {
		t.Errorf("told %q, notes %s", f.reported, notes)
	}
	p, _ := f.run(spoil)
	if p.template == nil || len(f.reported) != 2 || !strings.Contains(f.reported[1], "made again") {
		t.Errorf("template %v, told %q", p.template, f.reported)
	}
	p, notes = f.run(nil)
	if p.template != nil || len(f.reported) != 3 || !strings.Contains(f.reported[2], "every run starts from nothing") || !strings.Contains(notes, "a.jsa was changed") {
		t.Errorf("template %v, told %q, notes %s", p.template, f.reported, notes)
	}
}
