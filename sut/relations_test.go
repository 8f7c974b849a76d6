package sut

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
)

// TestATargetHasItsRelations: they are read with it, from a folder and from an upload,
// and what is wrong in them is told with its line.
func TestATargetHasItsRelations(t *testing.T) {
	check := "checks:\n  - {name: %, class: broken, quote: q, select: select n from message}\n"
	good := strings.Replace(check, "%", "mine", 1)
	target := minimalTarget + "\nrelations: rules/r.yaml\n"
	for text, want := range map[string]string{
		good: "",
		"-":  "there is no file rules/r.yaml beside the target file",
		strings.Replace(good, "message", "nosuch", 1): "rules/r.yaml:2: check mine: SQL logic error: no such table: nosuch",
		strings.Replace(check, "%", "recovery", 1):    "rules/r.yaml:2: recovery is a check of netsplit",
		"checks: x": "rules/r.yaml:1: checks must be a list",
	} {
		dir := t.TempDir()
		files := []tar.Header{file(FileName, target), file("run.sh", "#!/bin/sh\n")}
		if text != "-" {
			files = append(files, file("rules/r.yaml", text))
		}
		if err := os.MkdirAll(filepath.Join(dir, "rules"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{FileName: target, "run.sh": "#!/bin/sh\n", "rules/r.yaml": text} {
			if text == "-" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		loaded, _, err := Load(dir)
		u := Uploads{Dir: filepath.Join(t.TempDir(), "targets")}
		sent, ref, uerr := u.Put(archive(t, files...))
		if want != "" {
			for _, err := range []error{err, uerr} {
				if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
					t.Errorf("%q: %v, want %q", text, err, want)
				}
			}
			continue
		}
		again, _, aerr := u.Load(ref)
		if err := errors.Join(err, uerr, aerr); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []*model.Target{loaded, sent, again} {
			if tt.RelationsText != text {
				t.Errorf("read %q", tt.RelationsText)
			}
		}
		b, _, err := Pack(dir)
		packed, perr := unpack(b)
		if err := errors.Join(err, perr); err != nil || string(packed["rules/r.yaml"].text) != text {
			t.Errorf("packed %v, %v", packed, err)
		}
	}
	if _, err := Parse(FileName, []byte(minimalTarget+"\nrelations: ../r.yaml\n")); err == nil || !strings.Contains(err.Error(), "must stand beside the target file") {
		t.Errorf("%v", err)
	}
}
