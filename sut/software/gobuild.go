package software

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// program is the name that go install gives to what it builds of
// package@version: the last element of the path that is no major version.
func program(spec string) string {
	p, _, _ := strings.Cut(spec, "@")
	if majorVersion.MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return path.Base(p)
}

// builtHere says whether a file of the set is a program built from Go.
func (r Release) builtHere(file string) bool {
	return slices.ContainsFunc(r.Go, func(spec string) bool { return program(spec) == file })
}

// split separates the files that the list of hashes has from the programs that
// were built here: their bytes depend on the Go that built them.
func (r Release) split(entries []entry) (listed, built []entry) {
	for _, e := range entries {
		if r.builtHere(e.path) {
			built = append(built, e)
		} else {
			listed = append(listed, e)
		}
	}
	return listed, built
}

// built are the programs that were built here, as they were.
func (s stamp) built() []entry {
	var out []entry
	for _, f := range s.Files {
		if f.Sum != "" {
			out = append(out, entry{f.Path, f.Sum})
		}
	}
	return out
}

// runGo builds the release's programs into dir, each with its list of modules
// beside it. It works in a module cache of its own, so what is compiled was
// fetched just now and compared with the checksum database (go help
// module-auth), unless the user turned that off.
func runGo(ctx context.Context, root string, r Release, dir string, p *printer) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("go is not installed: install a Go that is as new as the release asks for and put it in PATH")
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-go-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	bin := filepath.Join(work, "bin")
	env := []string{
		"GOBIN=" + bin, "GOMODCACHE=" + filepath.Join(work, "mod"), "GOFLAGS=-trimpath -modcacherw",
		"GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0", "GOOS=", "GOARCH=",
	}
	for _, spec := range r.Go { // one go install takes packages of one module only
		p.printf("%s: building %s with Go", r, spec)
		install := client{name: "go", pkg: "golang", args: []string{"go", "install", spec}, env: env}
		_, err := install.fetch(ctx, root, r, p)
		var failed *clientError
		if errors.As(err, &failed) {
			failed.output = progress.ReplaceAllString(failed.output, "")
		}
		if err != nil {
			return condense(err, "go: ", "GOPROXY and GOSUMDB (go env)")
		}
		name := program(spec)
		built := filepath.Join(bin, name)
		info, err := buildinfo.ReadFile(built)
		if err != nil {
			return fmt.Errorf("go: %s gave no program %s: %w: name a package that is a program", spec, name, err)
		}
		if err := os.Rename(built, filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".modules"), modules(info), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var progress = regexp.MustCompile(`(?m)^go: downloading .*\n`)

// modules lists what a program was built from: "module version hash" lines with
// the hashes of go.sum, the program's own module first.
func modules(info *debug.BuildInfo) []byte {
	var b strings.Builder
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		fmt.Fprintf(&b, "%s %s %s\n", m.Path, m.Version, m.Sum)
	}
	return []byte(b.String())
}
