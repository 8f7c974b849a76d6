package software

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// dependencyPlugin is pinned, since the set depends on how it resolves.
const dependencyPlugin = "3.6.1"

// The parts of a pom (Maven's model 4.0.0) that fetching needs.
type (
	pom struct {
		XMLName      xml.Name        `xml:"http://maven.apache.org/POM/4.0.0 project"`
		Model        string          `xml:"modelVersion"`
		Group        string          `xml:"groupId"`
		Artifact     string          `xml:"artifactId"`
		Version      string          `xml:"version"`
		Packaging    string          `xml:"packaging"`
		Dependencies []pomDependency `xml:"dependencies>dependency"`
		Plugin       pomPlugin       `xml:"build>plugins>plugin"`
	}
	pomDependency struct {
		Group      string         `xml:"groupId"`
		Artifact   string         `xml:"artifactId"`
		Version    string         `xml:"version,omitempty"`
		Type       string         `xml:"type,omitempty"`
		Classifier string         `xml:"classifier,omitempty"`
		Exclusions *pomExclusions `xml:"exclusions"`
	}
	pomExclusions struct {
		List []pomExclusion `xml:"exclusion"`
	}
	pomExclusion struct {
		Group    string `xml:"groupId"`
		Artifact string `xml:"artifactId"`
	}
	pomPlugin struct {
		Group      string         `xml:"groupId"`
		Artifact   string         `xml:"artifactId"`
		Version    string         `xml:"version"`
		Executions []pomExecution `xml:"executions>execution"`
	}
	pomExecution struct {
		ID     string   `xml:"id"`
		Phase  string   `xml:"phase"`
		Goals  []string `xml:"goals>goal"`
		Config pomCopy  `xml:"configuration"`
	}
	pomCopy struct {
		Scope  string    `xml:"includeScope,omitempty"`
		Output string    `xml:"outputDirectory"`
		Items  *pomItems `xml:"artifactItems"`
	}
	pomItems struct {
		List []pomDependency `xml:"artifactItem"`
	}
)

// writePom makes the project that copies a release into dir: its dependencies
// with what they need at run time, its files alone.
func writePom(r Release, dir string) ([]byte, error) {
	p := pom{Model: "4.0.0", Group: "netsplit", Artifact: r.Product, Version: r.Version, Packaging: "pom",
		Plugin: pomPlugin{Group: "org.apache.maven.plugins", Artifact: "maven-dependency-plugin", Version: dependencyPlugin}}
	var exclude *pomExclusions
	for _, e := range r.Exclude {
		group, artifact, _ := strings.Cut(e, ":")
		if exclude == nil {
			exclude = new(pomExclusions)
		}
		exclude.List = append(exclude.List, pomExclusion{group, artifact})
	}
	for _, c := range r.Maven {
		d := coordinate(c)
		d.Exclusions = exclude
		p.Dependencies = append(p.Dependencies, d)
	}
	if len(r.Maven) > 0 {
		p.Plugin.Executions = append(p.Plugin.Executions, pomExecution{ID: "lib", Phase: "validate", Goals: []string{"copy-dependencies"},
			Config: pomCopy{Scope: "runtime", Output: dir}})
	}
	if len(r.Files) > 0 {
		items := new(pomItems)
		for _, c := range r.Files {
			items.List = append(items.List, coordinate(c))
		}
		x := pomExecution{ID: "files", Phase: "validate", Goals: []string{"copy"}, Config: pomCopy{Output: filepath.Join(dir, "files"), Items: items}}
		p.Plugin.Executions = append(p.Plugin.Executions, x)
	}
	return xml.MarshalIndent(p, "", " ")
}

// coordinate reads group:artifact:version[:type[:classifier]].
func coordinate(c string) pomDependency {
	f := append(strings.Split(c, ":"), "", "")
	return pomDependency{Group: f[0], Artifact: f[1], Version: f[2], Type: f[3], Classifier: f[4]}
}

// runMaven copies the release into dir. It returns names of what looked damaged
// in Maven's repository, which changes what a release needs without an error.
func runMaven(ctx context.Context, root string, r Release, dir string, p *printer) (bad []string, err error) {
	text, err := writePom(r, dir)
	if err != nil {
		return nil, fmt.Errorf("write the pom of %s: %w", r, err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-pom-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	m2 := filepath.Join(root, "m2")
	count := &counter{p: p, what: r.String()}
	mvn := client{name: "mvn", pkg: "maven", line: count.line,
		args: []string{"mvn", "-B", "-U", "-f", file, "-Dmaven.repo.local=" + m2, "validate"}}
	// One mvn at a time: its repository was not made for several.
	err = locked(ctx, filepath.Join(m2, ".netsplit-lock"), "Maven's repository", p, func() error {
		p.printf("%s: asking Maven", r)
		out, err := mvn.fetch(ctx, root, r, p)
		var failed *clientError
		if errors.As(err, &failed) {
			// A damaged file in the repository of the cache stays damaged until
			// somebody drops it.
			if paths := damagedPaths(m2, failed.output); len(paths) > 0 {
				p.printf("%s: damaged files in Maven's repository: fetching them again", r)
				for _, d := range paths {
					if err := os.RemoveAll(d); err != nil {
						return err
					}
				}
				out, err = mvn.fetch(ctx, root, r, p)
			}
		}
		bad = invalidPoms(out)
		return err
	})
	return bad, condense(err, "[ERROR]", "the mirrors and proxies of ~/.m2/settings.xml")
}

// damagedPaths lists directories of the repository whose files Maven could not
// read.
func damagedPaths(m2, output string) []string {
	re := regexp.MustCompile(regexp.QuoteMeta(m2) + `/[^\s:;,'"]+\.(?:jar|pom)`)
	var out []string
	for _, l := range strings.Split(output, "\n") {
		low := strings.ToLower(l)
		if !strings.Contains(low, "non-parseable") && !strings.Contains(low, "zip") && !strings.Contains(low, "malformed") && !strings.Contains(low, "invalid loc") {
			continue
		}
		for _, f := range re.FindAllString(l, -1) {
			if d := filepath.Dir(f); !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

var invalidPom = regexp.MustCompile(`The POM for [^:\s]+:([^:\s]+):[^:\s]+(?::[^:\s]+)?:([^:\s]+) is (?:invalid|missing)`)

// invalidPoms names poms that Maven could not use.
func invalidPoms(output string) []string {
	var out []string
	for _, m := range invalidPom.FindAllStringSubmatch(output, -1) {
		out = append(out, m[1]+"-"+m[2]+".pom")
	}
	return out
}

// evict removes files, by name, from Maven's repository with all that was
// fetched of the same version, so that the next run fetches them again.
func evict(m2 string, paths []string) error {
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	var dirs []string
	err := filepath.WalkDir(m2, func(p string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains(names, d.Name()) && !d.IsDir() {
			dirs = append(dirs, filepath.Dir(p))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	return nil
}

// counter says every few seconds how much Maven downloaded.
type counter struct {
	p     *printer
	what  string
	files int
	bytes float64
	last  time.Time
}

// downloaded is mvn's line: Downloaded from <id>: <url> (1.2 kB at 3.4 kB/s).
var downloaded = regexp.MustCompile(`Downloaded from [^ ]+: [^ ]+ \(([0-9.]+) (B|kB|MB|GB)`)

func (c *counter) line(l string) {
	m := downloaded.FindStringSubmatch(l)
	if m == nil {
		return
	}
	var n float64
	if _, err := fmt.Sscan(m[1], &n); err != nil {
		return
	}
	c.files++
	c.bytes += n * map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[m[2]]
	if now := time.Now(); now.Sub(c.last) > 5*time.Second {
		if !c.last.IsZero() {
			c.p.printf("%s: %d files, %.1f MB downloaded", c.what, c.files, c.bytes/1e6)
		}
		c.last = now
	}
}
