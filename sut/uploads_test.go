package sut

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

const minimalTarget = "name: mine\nnodes: [n1]\nclients: [c1]\nprocesses: [{name: s, hosts: [n1], command: ['{{.TargetDir}}/run.sh']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n" +
	"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n"

// archive makes a tar archive of headers; a regular file holds its Linkname.
func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text, h.Linkname, h.Size = h.Linkname, "", int64(len(h.Linkname))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: text, Mode: 0o600}
}

// TestAnUploadStaysWhatItIs: its versions are kept side by side, its bare name is
// the newest one, and its scripts can be run by others whatever the umask.
func TestAnUploadStaysWhatItIs(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := t.TempDir()
	u := Uploads{Dir: filepath.Join(t.TempDir(), "targets")}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "lib", "run.sh")
	try(os.Mkdir(filepath.Dir(script), 0o700))
	try(os.WriteFile(filepath.Join(dir, FileName), []byte(minimalTarget), 0o600))
	try(os.WriteFile(filepath.Join(dir, ".secret"), nil, 0o600))
	var refs []string
	for _, text := range []string{"one", "two"} {
		try(os.WriteFile(script, []byte(text), 0o700))
		b, _, err := Pack(dir)
		try(err)
		_, ref, err := u.Put(b)
		try(err)
		if _, again, err := u.Put(b); err != nil || again != ref {
			t.Errorf("sent again it is %s, %v, not %s", again, err, ref)
		}
		refs = append(refs, ref)
	}
	if name, err := u.Named("mine"); err != nil || name != refs[1] || refs[0] == refs[1] {
		t.Errorf("mine is %s, %v, of %v", name, err, refs)
	}
	for i, text := range []string{"one", "two"} {
		tg, at, err := u.Load(refs[i])
		if err != nil || tg.Name != "mine" {
			t.Fatal(tg, err)
		}
		for p, want := range map[string]os.FileMode{".": 0o755, "lib": 0o755, "lib/run.sh": 0o755, FileName: 0o644} {
			if st, err := os.Stat(filepath.Join(at, p)); err != nil || st.Mode().Perm() != want {
				t.Errorf("%s: %v, %v, want mode %o", p, st, err, want)
			}
		}
		if b, err := os.ReadFile(filepath.Join(at, "lib/run.sh")); err != nil || string(b) != text {
			t.Errorf("%s holds %q, %v", refs[i], b, err)
		}
		if _, err := os.Stat(filepath.Join(at, ".secret")); err == nil {
			t.Error("a hidden file was sent")
		}
	}
	if st, err := os.Stat(u.Dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder of all uploads: %v, %v", st, err)
	}
	if l := u.List(); len(l) != 2 || l[0] != (Upload{refs[1], true}) || l[1] != (Upload{refs[0], false}) {
		t.Errorf("listed %v", l)
	}
}

// TestOnlyNamesAreNames: a path is refused before anything is looked for.
func TestOnlyNamesAreNames(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("there", []byte("secret: x"), 0o600), os.Mkdir("folder", 0o700)); err != nil {
		t.Fatal(err)
	}
	u := Uploads{Dir: t.TempDir()}
	for _, name := range []string{"/etc/shadow", "./x", "../x", "a/b", `a\b`, ".", "..", "redis-sentinel/../x", "x@/etc/passwd", "x@..", "there.yaml", "", "a:b", "a:../../000000000"} {
		if got, err := u.Named(name); err == nil || !strings.Contains(err.Error(), "name the target") || len(name) > 2 && strings.Contains(err.Error(), name) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"there", "folder", "redis-sentinle"} { // names, of nothing that is known
		if got, err := u.Named(name); err == nil || !strings.Contains(err.Error(), "no target") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"redis-sentinel", "hdfs@3.3.0"} {
		if got, err := u.Named(name); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if _, _, err := u.Load("mine:0123456789ab"); err == nil || !strings.Contains(err.Error(), "not uploaded") {
		t.Errorf("a version that nobody sent: %v", err)
	}
}

// TestABadUploadIsRefused with what is wrong with it, and leaves nothing.
func TestABadUploadIsRefused(t *testing.T) {
	u := Uploads{Dir: filepath.Join(t.TempDir(), "targets")}
	good := file(FileName, minimalTarget)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(archive(t, good, file("big", strings.Repeat("0", UploadMost)))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{
		"tar archive":             []byte("name: mine\n"),
		"no target.yaml":          archive(t, file("x.yaml", minimalTarget)),
		"target.yaml:1":           archive(t, file(FileName, "nmae: mine\n")),
		"soft is no regular file": archive(t, good, tar.Header{Typeflag: tar.TypeSymlink, Name: "soft", Linkname: "/etc/shadow"}),
		"hard is no regular file": archive(t, good, tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "/etc/shadow"}),
		"without ..":              archive(t, good, file("../../x", "")),
		"paths of an archive":     archive(t, good, file("/etc/cron.d/x", "")),
		"twice":                   archive(t, good, file("a", ""), file("./a", "")),
		"a file and a folder":     archive(t, good, file("a", ""), file("a/b", "")),
		"more than 32 MiB":        bomb.Bytes(),
	} {
		if _, ref, err := u.Put(b); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v, want %q", ref, err, want)
		}
	}
	if _, err := os.Stat(u.Dir); err == nil {
		t.Error("it left something")
	}
}

// TestATargetIsPackedWithWhatItNames: a folder full of other things is neither sent
// where the file names nothing beside it, nor sent in part.
func TestATargetIsPackedWithWhatItNames(t *testing.T) {
	dir := t.TempDir()
	alone := strings.Replace(minimalTarget, "{{.TargetDir}}/run.sh", "sleep", 1)
	big := filepath.Join(dir, "big")
	for name, text := range map[string]string{"alone.yaml": alone, "mine.yaml": minimalTarget, "run.sh": "#!/bin/sh\n", "big": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(big, UploadMost); err != nil {
		t.Fatal(err)
	}
	b, _, err := Pack(filepath.Join(dir, "alone.yaml"))
	if files, uerr := unpack(b); err != nil || uerr != nil || len(files) != 1 || string(files[FileName].text) != alone {
		t.Errorf("%v, %v, %d files", err, uerr, len(files))
	}
	if _, _, err := Pack(filepath.Join(dir, "mine.yaml")); err == nil || !strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("too big a folder: %v", err)
	}
	if err := os.Remove(big); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "runs", "c-1"), 0o700), os.WriteFile(filepath.Join(dir, "runs", "netsplit.db"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "runs", "c-1", "report.html"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	b, release, err := Pack(filepath.Join(dir, "mine.yaml") + "@1.0")
	files, uerr := unpack(b)
	if err != nil || uerr != nil || release != "1.0" || string(files[FileName].text) != minimalTarget || !files["run.sh"].runs {
		t.Errorf("%v, %v, release %s, %v", err, uerr, release, files)
	}
	for name := range files {
		if strings.HasPrefix(name, "runs/") {
			t.Errorf("%s of the records is packed", name)
		}
	}
}

// TestUploadsHaveRoomAgain: what all uploads take is bounded, and a deleted one
// makes room; the bare name then stands for the version before.
func TestUploadsHaveRoomAgain(t *testing.T) {
	defer func(n int) { uploadsVersions = n }(uploadsVersions)
	uploadsVersions = 2
	u := Uploads{Dir: filepath.Join(t.TempDir(), "targets")}
	put := func(n string) (string, error) {
		_, ref, err := u.Put(archive(t, file(FileName, minimalTarget), file("n", n)))
		return ref, err
	}
	one, err1 := put("1")
	two, err2 := put("2")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if _, err := put("3"); !errors.Is(err, model.ErrFull) || !strings.Contains(err.Error(), "delete some") {
		t.Errorf("a version too many: %v", err)
	}
	if _, err := put("1"); err != nil {
		t.Errorf("one that is there takes no room: %v", err)
	}
	for ref, want := range map[string]error{"mine": model.ErrInvalid, "../mine": model.ErrInvalid, "mine:000000000000": model.ErrNotFound, "redis-sentinel": model.ErrInvalid} {
		if err := u.Delete(ref); !errors.Is(err, want) {
			t.Errorf("delete %s: %v, want %v", ref, err, want)
		}
	}
	if err := u.Delete(one); err != nil { // the newest: it was sent last
		t.Fatal(err)
	}
	if name, err := u.Named("mine"); err != nil || name != two {
		t.Errorf("mine is %s, %v, not %s", name, err, two)
	}
	if _, _, err := u.Load(one); err == nil {
		t.Errorf("%s can still be loaded", one)
	}
	defer func(n int64) { uploadsBytes = n }(uploadsBytes)
	uploadsBytes = 2 * int64(len(minimalTarget))
	if _, err := put("3"); !errors.Is(err, model.ErrFull) {
		t.Errorf("bytes too many: %v", err)
	}
	if err := u.Delete(two); err != nil {
		t.Fatal(err)
	}
	for _, killed := range []string{"mine/.gone-1/000000000000", "mine/.new-1"} {
		if err := os.MkdirAll(filepath.Join(u.Dir, killed), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := put("3"); err != nil {
		t.Errorf("there is room, but %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(u.Dir, "mine")); err != nil || len(left) != 2 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
