package campaign

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestAClientOfADaemonNamesNoPath: whatever is at the path, it is not opened and
// not quoted. In the user's own process it is.
func TestAClientOfADaemonNamesNoPath(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "target.yaml")
	write(t, file, "secret: yes\n")
	for _, spec := range []model.CampaignSpec{{Target: file}, {Target: filepath.Dir(file)}, {Target: file + "@1"}, {Target: "./target.yaml"}, {Target: file, Replay: "c-1-r0001"}} {
		_, err := s.CreateCampaign(t.Context(), spec)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "POST /v1/targets") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), file) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	s.cfg.InProcess = true
	if _, err := s.CreateCampaign(t.Context(), model.CampaignSpec{Target: file}); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Errorf("the user's own file: %v", err)
	}
}

// TestATargetInUseIsNotDeleted, whichever of its releases a campaign is on.
func TestATargetInUseIsNotDeleted(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), jobs: map[string]*job{}}
	k, err := s.UploadTarget(t.Context(), archiveOf(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{k.Name, k.Name + "@1.2"} {
		s.jobs["c-1"] = &job{c: model.Campaign{Spec: model.CampaignSpec{Target: on}}}
		if err := s.DeleteTarget(t.Context(), k.Name); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "c-1") {
			t.Errorf("a campaign is on %s: %v", on, err)
		}
	}
	delete(s.jobs, "c-1")
	if err := s.DeleteTarget(t.Context(), k.Name); err != nil {
		t.Error(err)
	}
}

// TestAnUploadOutlivesADeletion of what was the only version of its name meanwhile.
func TestAnUploadOutlivesADeletion(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	put := func(n int) (string, error) {
		k, err := s.UploadTarget(t.Context(), archiveOf(t, n))
		return k.Name, err
	}
	last, err := put(0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		deleted := make(chan error, 1)
		go func(ref string) { deleted <- s.DeleteTarget(t.Context(), ref) }(last)
		next, err := put(n + 1)
		if derr := <-deleted; err != nil || derr != nil {
			t.Fatalf("upload: %v, deletion: %v", err, derr)
		}
		if _, _, err := s.uploads().Load(next); err != nil {
			t.Fatalf("it was uploaded, and is gone: %v", err)
		}
		if name, err := s.uploads().Named("mine"); err != nil || name != next {
			t.Fatalf("mine is %s, %v, not %s", name, err, next)
		}
		last = next
	}
}

// archiveOf is an upload of a target whose content is n's own.
func archiveOf(t *testing.T, n int) []byte {
	t.Helper()
	text := fmt.Sprintf("name: mine\nnodes: [n1]\nclients: [c1]\nprocesses: [{name: s, hosts: [n1], command: [run, '%d']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
		"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n", n)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "target.yaml", Mode: 0o600, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
