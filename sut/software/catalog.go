package software

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

//go:embed catalog/*.yaml catalog/*.sha256
var catalogFS embed.FS

// Release is what one release of a product consists of.
type Release struct {
	Product string `yaml:"-"`
	Version string `yaml:"-"`

	// The major version of Java that it runs on; fetched if the machine has none and netsplit can.
	// Default: none. Example: "17"
	Java string `yaml:"java"`
	// How many parts that Java's version has at most: 3 allows 11.0.13, not 11.0.20.1.
	// Default: any. Example: 3
	JavaParts int `yaml:"java_parts,omitempty"`
	// Maven coordinates `group:artifact:version[:type[:classifier]]`, fetched into `.Lib` with all they need at run time; the
	// nearest version wins.
	// Example: [org.example:server:2.1.0]
	Maven []string `yaml:"maven"`
	// `group:artifact` that no dependency may bring.
	// Example: [junit:junit]
	Exclude []string `yaml:"exclude"`
	// Maven coordinates fetched alone, into `.Files`.
	// Example: [org.example:agent:1.0:jar:agent]
	Files []string `yaml:"files"`
	// Wheels, unpacked into `.Files`.
	// Example: [package==1.0]
	Pip []string `yaml:"pip"`
	// Packages of Go modules, `package@version`, built into `.Lib` by the machine's Go. What a program is depends on that Go, so
	// the list of hashes has `PROGRAM.modules` instead: the modules that it was built from, each with the hash of go.sum.
	// Example: [example.org/server/cmd/server@v2.1.0]
	Go []string `yaml:"go,omitempty"`
	// Glob patterns below `.Files` of what to make executable; wheels do not say.
	// Example: ['bin/*']
	Executable []string `yaml:"executable"`
	// The folder in `.Files` of the Java runtime that the release itself is.
	// Example: jdk
	JavaHome string `yaml:"java_home"`
	// Programs in PATH, or absolute paths, that must be installed, with the Debian package of each.
	// Example: {/usr/share/java/mine.jar: libmine-java}
	Debian map[string]string `yaml:"debian"`
	// Files of the machine to link into `.Lib`.
	// Example: [/usr/share/java/mine.jar]
	Link []string `yaml:"link"`

	target   string // for messages: netsplit target get <target>
	lock     []byte // sha256sum lines; nil: none yet
	lockFile string // where the lock of a user's catalogue is or goes; "" for a built-in one
	recipe   string // hash of the fields above but JavaParts: another recipe is another set
}

// Catalog describes the releases of a product. Every file that `netsplit target get` fetches
// must have the hash that `PRODUCT-RELEASE.sha256` beside the catalogue lists. The first `get` writes
// that file: keep it with the catalogue, and renew it with `--write-lock` after a change.
// Files are stored in `$NETSPLIT_CACHE`, or `netsplit` in your cache directory.
type Catalog struct {
	// The name that `software.product` gives.
	// Required. Example: mine
	Product string `yaml:"product"`
	// One line for people.
	// Example: My system
	Title string `yaml:"title"`
	// What each release consists of.
	// Required.
	Releases map[string]Release `yaml:"releases"`
}

// Products lists the products that come with netsplit, sorted.
func Products() []string {
	files, _ := fs.Glob(catalogFS, "catalog/*.yaml")
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return out
}

// Releases lists the releases of a built-in product, sorted; none if there is
// no such product.
func Releases(product string) []string {
	c, err := builtin(product)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Releases))
}

// ForTarget returns the release that a target runs on, and false if the target
// has no software to fetch. dir is the directory of the target file, where its
// own catalogue is, if it has one.
func ForTarget(t *model.Target, dir string) (Release, bool, error) {
	if t.Software == nil {
		return Release{}, false, nil
	}
	file := ""
	if t.Software.Catalog != "" {
		file = filepath.Join(dir, t.Software.Catalog)
	}
	version := t.Release
	if version == "" {
		version = t.Software.Default
	}
	r, err := Load(t.Software.Product, version, file)
	if err != nil {
		return Release{}, false, fmt.Errorf("software of target %s: %w", t.Name, err)
	}
	r.target = t.Name
	if root, err := CacheDir(); err == nil && dir != "" && !strings.HasPrefix(dir, filepath.Join(root, "targets")+string(filepath.Separator)) {
		r.target = dir // no built-in one
		if own := filepath.Join(dir, "target.yaml"); fileExists(own) {
			r.target = own
		}
	}
	return r, true, nil
}

func fileExists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// Load reads a release of a product from the catalogue file, or, if file is
// "", from those that come with netsplit. The lock of a catalogue file stands
// beside it: <product>-<release>.sha256.
func Load(product, version, file string) (Release, error) {
	c, err := builtin(product)
	name := "catalog/" + product + ".yaml"
	if file != "" {
		name = file
		var b []byte
		if b, err = os.ReadFile(file); err == nil {
			c, err = parse(file, b)
		} else {
			err = fmt.Errorf("read catalogue: %w: check software.catalog of the target file", err)
		}
	}
	if err != nil {
		return Release{}, err
	}
	if c.Product != product {
		return Release{}, fmt.Errorf("catalogue %s is of product %q, not %q: name the product that it describes", name, c.Product, product)
	}
	r, ok := c.Releases[version]
	if !ok {
		return Release{}, fmt.Errorf("%s has no release %q: catalogue %s has %s", product, version, name, strings.Join(slices.Sorted(maps.Keys(c.Releases)), ", "))
	}
	r.Product, r.Version = product, version
	set := r
	set.JavaParts = 0 // says which Java serves the set, not what is in it: what is in the cache stays
	recipe, err := yaml.Marshal(set)
	if err != nil {
		return Release{}, fmt.Errorf("catalogue %s: %w", name, err)
	}
	sum := sha256.Sum256(recipe)
	r.recipe = hex.EncodeToString(sum[:])
	if file == "" {
		r.lock, err = fs.ReadFile(catalogFS, "catalog/"+r.name()+".sha256")
	} else {
		r.lockFile = filepath.Join(filepath.Dir(file), r.name()+".sha256")
		r.lock, err = os.ReadFile(r.lockFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Release{}, fmt.Errorf("read lock of %s: %w", r, err)
	}
	if r.lock != nil {
		if _, err := parseLock(r.lock); err != nil {
			return Release{}, fmt.Errorf("lock %s.sha256 beside catalogue %s: %w", r.name(), name, err)
		}
	}
	return r, nil
}

func builtin(product string) (Catalog, error) {
	file := "catalog/" + product + ".yaml"
	b, err := fs.ReadFile(catalogFS, file)
	if err != nil {
		return Catalog{}, fmt.Errorf("no product %q: netsplit has %s; a product of your own needs a catalogue beside the target file (software.catalog)", product, strings.Join(Products(), ", "))
	}
	return parse(file, b)
}

var (
	nameRE   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
	mavenRE  = regexp.MustCompile(`^[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._+-]+(:[A-Za-z0-9._-]+){0,2}$`)
	artRE    = regexp.MustCompile(`^[A-Za-z0-9._-]+:[A-Za-z0-9._*-]+$`)
	goRE     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(?:/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+@v[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$`)
	pipRE    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*$`)
	javaRE   = regexp.MustCompile(`^[0-9]{1,3}$`)
	debianRE = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
)

// parse reads a catalogue strictly: what does not belong in it is an error,
// since everything in it ends up in commands and paths.
func parse(file string, b []byte) (Catalog, error) {
	var c Catalog
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("catalogue %s: %w", file, err)
	}
	bad := func(at, have, want string) error {
		return fmt.Errorf("catalogue %s: %s: %q: want %s", file, at, have, want)
	}
	if !nameRE.MatchString(c.Product) {
		return c, bad("product", c.Product, "letters, digits, dots and dashes")
	}
	if len(c.Releases) == 0 {
		return c, fmt.Errorf("catalogue %s has no releases: add at least one", file)
	}
	for _, v := range slices.Sorted(maps.Keys(c.Releases)) {
		r, at := c.Releases[v], "release "+v
		if !nameRE.MatchString(v) {
			return c, bad("release", v, "letters, digits, dots and dashes")
		}
		if r.Java != "" && !javaRE.MatchString(r.Java) {
			return c, bad(at+": java", r.Java, `a major version such as "17"`)
		}
		if r.JavaParts < 0 || r.JavaParts > 0 && r.Java == "" {
			return c, bad(at+": java_parts", fmt.Sprint(r.JavaParts), "how many parts the version of java may have, such as 3, beside java")
		}
		for _, list := range []struct {
			key, want string
			have      []string
			re        *regexp.Regexp
		}{
			{"maven", "group:artifact:version[:type[:classifier]]", r.Maven, mavenRE},
			{"files", "group:artifact:version[:type[:classifier]]", r.Files, mavenRE},
			{"exclude", "group:artifact", r.Exclude, artRE},
			{"pip", "package==version", r.Pip, pipRE},
			{"go", "package@version with a whole version, such as v1.2.3", r.Go, goRE},
		} {
			for _, s := range list.have {
				if !list.re.MatchString(s) {
					return c, bad(at+": "+list.key, s, list.want)
				}
			}
		}
		for _, s := range append(slices.Clone(r.Executable), r.JavaHome) {
			if s != "" && !filepath.IsLocal(s) {
				return c, bad(at, s, "a path inside the release's files")
			}
		}
		for _, p := range r.Link {
			if !filepath.IsAbs(p) {
				return c, bad(at+": link", p, "an absolute path")
			}
		}
		for prog, pkg := range r.Debian {
			if prog == "" || !debianRE.MatchString(pkg) {
				return c, bad(at+": debian", prog+": "+pkg, "program: package")
			}
		}
		if !r.fetches() && len(r.Debian) == 0 && len(r.Link) == 0 && r.Java == "" {
			return c, fmt.Errorf("catalogue %s: %s is empty: give maven, files, pip, go or debian", file, at)
		}
	}
	return c, nil
}

// fetches says whether anything of the release is downloaded.
func (r Release) fetches() bool { return len(r.Maven)+len(r.Files)+len(r.Pip)+len(r.Go) > 0 }

// String is the release in words: hadoop 3.3.0.
func (r Release) String() string { return r.Product + " " + r.Version }

// name is the release in file names: hadoop-3.3.0.
func (r Release) name() string { return r.Product + "-" + r.Version }

// dirName is the name of the set's directory. That of a user's catalogue has
// the recipe in it: two catalogues may use one name.
func (r Release) dirName() string {
	if r.lockFile == "" {
		return r.name()
	}
	return r.name() + "-" + r.recipe[:8]
}

// GetCommand is the command that fetches the release.
func (r Release) GetCommand() string {
	if r.target != "" {
		return "netsplit target get " + r.target + "@" + r.Version
	}
	return "netsplit target get " + r.Product + "@" + r.Version
}
