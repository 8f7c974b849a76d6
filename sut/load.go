package sut

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/deploy/targets"
	"netsplit/model"
)

// FileName is the name of the target file in a target's directory.
const FileName = "target.yaml"

// Load reads a target. nameOrPath is the name of a built-in target
// ("redis-sentinel"), the path of a target file, or the path of the directory with
// its target.yaml. "@" and a release of its software may follow ("hdfs@3.3.0");
// otherwise Load takes the default release (model.Target.Release).
//
// Load returns the target and the directory of its file. For a built-in target that
// is a copy in the cache, or "" if it has no files but its target.yaml. If the file
// has mistakes, Load returns an *Error that lists them all.
func Load(nameOrPath string) (*model.Target, string, error) {
	return LoadFrom(targets.FS, nameOrPath)
}

// LoadFrom is Load with the built-in targets in builtin: <name>/target.yaml and the
// other files of the target beside it.
func LoadFrom(builtin fs.FS, nameOrPath string) (*model.Target, string, error) {
	if nameOrPath == "" {
		return nil, "", fmt.Errorf("no target named: give the name of a built-in target (%s) or the path of a target file", strings.Join(Builtin(builtin), ", "))
	}
	name, release := splitRelease(nameOrPath)
	t, dir, err := load(builtin, name)
	if err != nil {
		return nil, "", err
	}
	if err := choose(t, release); err != nil {
		if others := withRelease(builtin, t, release); len(others) > 0 {
			err = fmt.Errorf("%w; target %s runs %s %s", err, strings.Join(others, ", "), t.Software.Product, release)
		}
		return nil, "", err
	}
	return t, dir, nil
}

// withRelease lists the other built-in targets that run this release of the
// target's product.
func withRelease(builtin fs.FS, t *model.Target, release string) []string {
	var out []string
	for _, name := range Builtin(builtin) {
		b, err := fs.ReadFile(builtin, path.Join(name, FileName))
		if err != nil || t.Software == nil || name == t.Name {
			continue
		}
		o, err := Parse(name, b)
		if err == nil && o.Software != nil && o.Software.Product == t.Software.Product && slices.Contains(o.Software.Versions, release) {
			out = append(out, name)
		}
	}
	return out
}

// splitRelease cuts "@release" off a name. A path that exists is a path,
// whatever is in it.
func splitRelease(s string) (name, release string) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 || strings.ContainsAny(s[i:], "/\\") {
		return s, ""
	}
	if _, err := os.Stat(s); err == nil {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// At names the target of nameOrPath on this release of its software, instead of the
// one that nameOrPath asks for; release "" means the default.
func At(nameOrPath, release string) string {
	name, _ := splitRelease(nameOrPath)
	if release == "" {
		return name
	}
	return name + "@" + release
}

// Absolute names the same target in any working directory: it makes the path of a
// target file or folder absolute. Other names, such as those of built-in targets,
// stay as they are.
func Absolute(nameOrPath string) string {
	name, _ := splitRelease(nameOrPath)
	if slices.Contains(Builtin(targets.FS), name) {
		return nameOrPath
	}
	if _, err := os.Stat(name); err != nil {
		return nameOrPath
	}
	abs, err := filepath.Abs(nameOrPath)
	if err != nil {
		return nameOrPath
	}
	return abs
}

// choose sets the release of a target; "" chooses its default.
func choose(t *model.Target, release string) error {
	switch {
	case t.Software == nil && release == "":
		return nil
	case t.Software == nil:
		return fmt.Errorf("target %s has no releases to choose from: its programs come from Debian packages; name it without @%s", t.Name, release)
	case release == "":
		t.Release = t.Software.Default
		return nil
	case !slices.Contains(t.Software.Versions, release):
		return fmt.Errorf("target %s has no release %q%s: it has %s", t.Name, release, DidYouMean(release, t.Software.Versions), strings.Join(t.Software.Versions, ", "))
	}
	t.Release = release
	return nil
}

func load(builtin fs.FS, nameOrPath string) (*model.Target, string, error) {
	if nameOrPath != "" && !strings.ContainsAny(nameOrPath, "/\\.") {
		b, err := fs.ReadFile(builtin, path.Join(nameOrPath, FileName))
		if err == nil {
			t, err := Parse(nameOrPath+"/"+FileName, b)
			if err != nil {
				return nil, "", err
			}
			if err := relations(t, func(name string) ([]byte, error) { return fs.ReadFile(builtin, path.Join(nameOrPath, name)) }); err != nil {
				return nil, "", err
			}
			dir, err := extract(builtin, nameOrPath)
			return t, dir, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("read built-in target %s: %w", nameOrPath, err)
		}
	}
	file := nameOrPath
	st, err := os.Stat(file)
	if err == nil && st.IsDir() {
		file = filepath.Join(file, FileName)
	}
	var b []byte
	if err == nil {
		b, err = read(file)
	}
	if errors.Is(err, fs.ErrNotExist) && st != nil {
		return nil, "", fmt.Errorf("no target in folder %s: it has no %s", nameOrPath, FileName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		names := Builtin(builtin)
		return nil, "", fmt.Errorf("no target %q: it is neither a built-in target (%s) nor a file that exists%s",
			nameOrPath, strings.Join(names, ", "), DidYouMean(nameOrPath, names))
	}
	if err != nil {
		return nil, "", fmt.Errorf("read target file: %w: check its path and permissions", err)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, "", fmt.Errorf("directory of target file %s: %w", file, err)
	}
	t, err := Parse(file, b)
	if err == nil {
		err = relations(t, func(name string) ([]byte, error) { return read(filepath.Join(dir, name)) })
	}
	if err != nil {
		return nil, "", err
	}
	return t, dir, nil
}

// fileMost is the size of the longest target file that read accepts: whoever names
// a file to a daemon may name any path.
const fileMost = 1 << 20

// read reads a regular file and refuses others: they may have no end.
func read(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileMost+1))
	if err == nil && len(b) > fileMost {
		err = fmt.Errorf("%s has more than %d bytes", file, fileMost)
	}
	return b, err
}

// Builtin lists the names of the built-in targets, sorted.
func Builtin(builtin fs.FS) []string {
	files, err := fs.Glob(builtin, "*/"+FileName)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		out = append(out, path.Dir(f))
	}
	slices.Sort(out)
	return out
}

// Parse reads the bytes of a target file; file names it in errors.
func Parse(file string, b []byte) (*model.Target, error) {
	t, _, err := decode(file, b, newSchema(), "docs/target-reference.md for every key", validate)
	return t, err
}

// Decode reads the bytes of another kind of file as strictly as a target file. The
// keys and types must be those of T, whose fields have yaml tags. what names the kind
// of file ("script"), manual the page that describes it. If all keys and types fit,
// Decode calls check, which reports what else is wrong, by path ("steps[2].cut").
// Decode also returns a function that gives the line of a path. The error is an
// *Error that lists every problem.
func Decode[T any](file string, b []byte, what, manual string, check func(t *T, bad func(path, format string, args ...any))) (*T, func(path string) int, error) {
	s := newSchema()
	s.what = what
	return decode(file, b, s, manual, func(t *T, s *schema) { check(t, s.addf) })
}

func decode[T any](file string, b []byte, s *schema, manual string, check func(*T, *schema)) (*T, func(string) int, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, nil, &Error{File: file, Problems: []Problem{yamlProblem(b, err)}}
	}
	if len(doc.Content) == 0 {
		return nil, nil, &Error{File: file, Problems: []Problem{{Line: 1, Text: "the file is empty: see " + manual}}}
	}
	if line := second(b); line > 0 {
		return nil, nil, &Error{File: file, Problems: []Problem{{Line: line, Text: "a second YAML document begins here: keep one, without --- between keys"}}}
	}
	s.walk(doc.Content[0], reflect.TypeFor[T](), "", 0)
	if len(s.problems) > 0 {
		return nil, nil, s.error(file)
	}
	t := new(T)
	if err := doc.Decode(t); err != nil {
		return nil, nil, &Error{File: file, Problems: []Problem{yamlProblem(nil, err)}} // it is YAML
	}
	check(t, s)
	if len(s.problems) > 0 {
		return nil, nil, s.error(file)
	}
	return t, s.lineOf, nil
}

// second is the line at which a second document begins, which netsplit would not
// read; 0 if there is none.
func second(b []byte) int {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	if dec.Decode(&doc) != nil || errors.Is(dec.Decode(&more), io.EOF) {
		return 0
	}
	return max(more.Line, 1)
}

// Problem is one mistake in a target file, or in another file that Decode reads.
type Problem struct {
	Line int    // 1-based
	Path string // e.g. workloads[1].host; "" for the file as a whole
	Text string // what is wrong and what to write instead
}

// Error lists all problems of a file, by line.
type Error struct {
	File     string
	Problems []Problem
}

// Error gives each problem on a line of its own: file:line: path: text.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d: ", e.File, p.Line)
		if p.Path != "" {
			b.WriteString(p.Path + ": ")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// yamlProblem words an error of yaml.v3, "yaml: line N: text". N is often the line at
// which the block around the mistake begins. So yamlProblem looks for the mistake: it
// is behind the last line up to which yaml.v3 can read the file. b is nil if the file
// is YAML, but does not fit.
func yamlProblem(b []byte, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if c, _ := fmt.Sscanf(text, "line %d:", &line); c == 1 {
		_, text, _ = strings.Cut(text, ": ")
	}
	for _, h := range yamlHints {
		if strings.Contains(text, h.says) {
			text += ": " + h.do
			break
		}
	}
	line = max(line, brokenLine(b))
	if lines := bytes.Split(b, []byte("\n")); line <= len(lines) && strings.HasPrefix(strings.TrimLeft(string(lines[line-1]), " "), "\t") {
		text = "a tab begins the line: indent with blanks"
	}
	return Problem{Line: line, Text: "not YAML: " + text}
}

// yamlHints say what to do about what package yaml says.
var yamlHints = []struct{ says, do string }{
	{"did not find expected key", "is the line indented like those that belong with it?"},
	{"did not find expected '-' indicator", "is the line indented like those that belong with it?"},
	{"could not find expected ':'", "is a colon missing, or is the line indented too little?"},
	{"mapping values are not allowed", `quote a value that holds ": ", and indent the line like those that belong with it`},
	{"tab character", "indent with blanks"},
	{"did not find expected ','", `close the bracket, and quote what starts with { or [, as in "{{.Dir}}"`},
	{"unknown escape character", "put regular expressions in single quotes"},
	{"cannot start any token", "quote a value that starts with @, % or a back quote"},
}

// brokenLimit is how many bytes brokenLine reads: it takes less than a second.
const brokenLimit = 16 << 20

// brokenLine is the line behind the longest beginning of a file that is YAML; 0
// if it takes too long to look.
func brokenLine(b []byte) int {
	lines := bytes.SplitAfter(b, []byte("\n"))
	end, read := len(b), 0
	for n := len(lines); n > 0 && end > 0; n-- {
		if read += end; read > brokenLimit {
			return 0
		}
		var doc yaml.Node
		if yaml.Unmarshal(b[:end], &doc) == nil {
			return n + 1
		}
		end -= len(lines[n-1])
	}
	return min(1, len(b))
}
