package script

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"netsplit/campaign"
	"netsplit/deploy/targets"
	"netsplit/model"
)

// Text reads a script for a daemon, which checks it: a file, or the name of one that comes with
// netsplit. target is what the script names; the path of a target is one from here.
func Text(file string) (f model.ScriptFile, target string, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(targets.FS, known(file)); err != nil {
			return f, "", noScript(file)
		}
		return model.ScriptFile{Name: file}, "", nil
	}
	if err != nil {
		return f, "", fmt.Errorf("%w: read the script: %w", model.ErrInvalid, err)
	}
	if len(b) > maxText {
		return f, "", fmt.Errorf("%w: %s has %d bytes: a daemon takes scripts of %d at most; play it without --api", model.ErrInvalid, file, len(b), maxText)
	}
	s, _, err := decode(file, b, func(*File, func(string, string, ...any)) {})
	if err != nil {
		return f, "", err
	}
	return model.ScriptFile{Name: filepath.Base(file), Text: string(b)}, beside(file, s.Target), nil
}

// maxText is the longest text that the API takes, in bytes.
const maxText = 32 << 10

// Files reads script files for a campaign.Service.
type Files struct{}

// Read reads a script by its text or, without one, by the name of one that comes with netsplit.
// A target is a name: no path is opened.
func (Files) Read(s model.ScriptFile, other string, load func(target string) (*model.Target, error)) (*campaign.Script, error) {
	if s.Text == "" {
		b, err := fs.ReadFile(targets.FS, known(s.Name))
		if err != nil {
			return nil, fmt.Errorf("no script %q comes with netsplit: there are %s; or send its text", s.Name, strings.Join(Known(), ", "))
		}
		s.Text = string(b)
	}
	f, err := parse(s.Name, []byte(s.Text), func(named string) string { return cmp.Or(other, named) }, load)
	if err != nil {
		return nil, err
	}
	return &campaign.Script{File: s, Name: f.Name, Target: f.Target, Set: f.Set, Class: model.FailureClass(f.Class), Quote: f.Quote, Play: play(nil, f.Play)}, nil
}

// Known lists the scripts that come with netsplit, sorted by name.
func (Files) Known() ([]model.KnownScript, error) {
	var out []model.KnownScript
	for _, name := range Known() {
		b, err := fs.ReadFile(targets.FS, known(name))
		if err != nil {
			return nil, err
		}
		f, err := parse(name, b, func(named string) string { return named }, loadHere)
		if err != nil {
			return nil, err
		}
		out = append(out, model.KnownScript{Name: name, Title: f.Title, Target: f.Target, Text: string(b)})
	}
	return out, nil
}
