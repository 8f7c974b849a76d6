package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"netsplit/model"
)

// phase of a lab's life. Only labs in phaseUp are whole; a state file in any
// other phase whose lock is free is what an interrupted command left.
type phase string

const (
	phaseCreating phase = "creating"
	phaseUp       phase = "up"
	phaseRemoving phase = "removing"
)

// state is what is known of a lab, as stored in its state file.
type state struct {
	Name       string           `json:"name"`
	Phase      phase            `json:"phase"`
	ID         string           `json:"id"`    // part of its interface names
	Index      int              `json:"index"` // its subnet
	Owner      process          `json:"owner"`
	Created    time.Time        `json:"created"`
	Controller string           `json:"controller,omitempty"`
	Datapath   model.DatapathID `json:"datapath"`
	Bridge     string           `json:"bridge"`
	OVSRunDir  string           `json:"ovs_run_dir"`
	OwnOVS     bool             `json:"own_ovs"` // netsplit started that Open vSwitch
	Hosts      []hostState      `json:"hosts"`

	MirrorSwitch string   `json:"mirror_switch"` // switch end of the mirror veth
	MirrorReader string   `json:"mirror_reader"`
	GateSwitch   string   `json:"gate_switch,omitempty"` // switch end of the gate veth; "" where there is none
	GateReader   string   `json:"gate_reader,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

// hostState is one host. IP is kept as text: a JSON file is for reading.
type hostState struct {
	Name  model.NodeID `json:"name"`
	Netns string       `json:"netns"`
	Link  string       `json:"link"` // switch end
	Port  uint32       `json:"port"`
	MAC   string       `json:"mac"`
	IP    string       `json:"ip"`
}

// hostLink is the name of the interface inside every host.
const hostLink = "e0"

func (s *state) ports() []string {
	var out []string
	for _, h := range s.Hosts {
		out = append(out, h.Link)
	}
	out = append(out, s.MirrorSwitch)
	if s.GateSwitch != "" {
		out = append(out, s.GateSwitch)
	}
	return out
}

// mark is written on links as alias and says whose they are, so that they can
// be told apart from other people's without a state file.
type mark struct {
	Lab    string
	RunDir string
	Owner  process
}

func (m *Manager) markOf(s *state) mark { return mark{Lab: s.Name, RunDir: m.RunDir, Owner: s.Owner} }

func (k mark) String() string {
	return fmt.Sprintf("netsplit-lab=%s owner=%s run=%s", k.Lab, k.Owner, k.RunDir)
}

func parseMark(s string) (mark, bool) {
	var k mark
	rest, ok := strings.CutPrefix(s, "netsplit-lab=")
	if !ok {
		return k, false
	}
	k.Lab, rest, ok = strings.Cut(rest, " owner=")
	if !ok {
		return k, false
	}
	var owner string
	owner, k.RunDir, ok = strings.Cut(rest, " run=")
	if !ok {
		return k, false
	}
	var err error
	k.Owner, err = parseProcess(owner)
	return k, err == nil
}

// rubbish says whether a thing that carries the mark and belongs to none of
// the labs may be removed by this manager.
func (m *Manager) rubbish(k mark, labs map[string]*state) bool {
	_, known := labs[k.Lab]
	return !known && k.RunDir == m.RunDir && (k.Owner.PID == 0 || !k.Owner.alive())
}

func (m *Manager) labsDir() string              { return filepath.Join(m.RunDir, "labs") }
func (m *Manager) statePath(name string) string { return filepath.Join(m.labsDir(), name+".json") }

func (m *Manager) save(s *state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("lab %s: state: %w", s.Name, err)
	}
	if err := renameio.WriteFile(m.statePath(s.Name), append(data, '\n'), 0o600, renameio.WithTempDir(m.labsDir())); err != nil {
		return fmt.Errorf("lab %s: cannot write its state: %w", s.Name, err)
	}
	return nil
}

// load reads a lab's state. A file that cannot be read as one is returned as
// an error that is not ErrNoLab.
func (m *Manager) load(name string) (*state, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(m.statePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w; `netsplit lab status` lists the labs there are", name, ErrNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("lab %s: cannot read its state: %w", name, err)
	}
	s := new(state)
	if err := json.Unmarshal(data, s); err != nil || s.Name != name {
		return nil, fmt.Errorf("lab %s: %s is damaged (%v)", name, m.statePath(name), err)
	}
	return s, nil
}

// loadAll reads the states of all labs by name. Files that are no state are
// returned by path.
func (m *Manager) loadAll() (labs map[string]*state, damaged []string, err error) {
	entries, err := os.ReadDir(m.labsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("lab: cannot list labs: %w", err)
	}
	labs = map[string]*state{}
	for _, e := range entries {
		path := filepath.Join(m.labsDir(), e.Name())
		name, isState := strings.CutSuffix(e.Name(), ".json")
		if !isState {
			if strings.HasPrefix(e.Name(), ".") { // what a save began that was killed
				damaged = append(damaged, path)
			}
			continue
		}
		s, err := m.load(name)
		switch {
		case errors.Is(err, ErrNoLab): // removed meanwhile
		case err != nil:
			damaged = append(damaged, path)
		default:
			labs[name] = s
		}
	}
	return labs, damaged, nil
}

func sortedNames(labs map[string]*state) []string {
	names := make([]string, 0, len(labs))
	for n := range labs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
