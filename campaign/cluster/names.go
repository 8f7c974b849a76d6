package cluster

import (
	"regexp"
	"strings"
	"time"

	"netsplit/model"
)

// DefaultName is what streams, buckets and subjects of a daemon begin with.
const DefaultName = "netsplit"

// times are those of the protocol. A lease is renewed three times before it ends, and a runner
// is gone after three beats that did not come. A campaign that a machine cannot run is left
// alone for retry: memory may be free later, or a program installed.
// A piece of a record that is older than half belongs to none that still comes.
type times struct{ lease, beat, retry, half time.Duration }

var usual = times{lease: 15 * time.Second, beat: 3 * time.Second, retry: 15 * time.Second, half: time.Hour}

func (t times) renewal() time.Duration { return t.lease / 3 }
func (t times) gone() time.Duration    { return 3 * t.beat }

// maxFailures is how many runs in a row may fail on a machine for reasons that are not the
// target's, before it takes no more for a while: others may do better.
const maxFailures = 2

// maxTakers is how many runners take an item before it is given up.
const maxTakers = 3

// token is what a name may be made of: it is a word of a subject of NATS.
var token = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$`)

// names gives the subjects, streams and buckets of one daemon.
type names string

func (n names) items() string     { return string(n) + "-items" }
func (n names) results() string   { return string(n) + "-results" }
func (n names) givenUp() string   { return string(n) + "-given-up" }
func (n names) campaigns() string { return string(n) + "-campaigns" }
func (n names) files() string     { return string(n) + "-files" }

// recordsOf is between the name of a cluster and that of a runner.
const recordsOf = "-records-"

// records is where a runner puts its records: it has no right to those of others.
func (n names) records(runner string) string { return string(n) + recordsOf + runner }

// subject joins words: item.<campaign>.<run>, result.<campaign>.<run>.<runner>,
// stop.<campaign>.<run>, doing.<runner>.<run>, runner.<runner>, software.<runner>,
// back.<runner>, live.<run>, hello.
func (n names) subject(words ...string) string {
	return string(n) + "." + strings.Join(words, ".")
}

// word is one of a subject's words; the first is the name of the cluster, the second says what
// it is about.
func word(subject string, i int) string {
	words := strings.Split(subject, ".")
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// Work is what the runs of a campaign need, whatever they do.
type Work struct {
	Campaign string            `json:"campaign"`
	Version  string            `json:"version"` // of the daemon: a runner of another one makes other records
	Target   string            `json:"target"`  // as sut.Uploads loads it
	Archive  string            `json:"archive"` // SHA-256 of the target's files among the files; "": it comes with netsplit
	Args     map[string]string `json:"args,omitempty"`
	Seed     uint64            `json:"seed"`
	Gate     model.Gate        `json:"gate,omitempty"`
	Needs    []string          `json:"needs,omitempty"` // what a runner must have
	// Script is what runs play in place of the target's workloads; nil: nothing.
	Script *model.ScriptFile `json:"script,omitempty"`
}

// result is what a runner says of a run; the subject says which.
type result struct {
	// Record is the object with the run's record; "" if there is none.
	Record string `json:"record,omitempty"`
	// Error says what of netsplit or the testbed failed.
	Error string `json:"error,omitempty"`
	// Instance is that of the runner.
	Instance string `json:"instance"`

	runner string
}

// doing is what a runner says while it makes a run.
type doing struct {
	Campaign string `json:"campaign"`
	What     string `json:"what"` // "": it took the run
	Instance string `json:"instance"`
}

// back is a run that a runner gives back: it was stopped, or its disk is full.
type back struct {
	Campaign string `json:"campaign"`
	Run      string `json:"run"`
	Item     uint64 `json:"item"` // its place in the stream of items
	Instance string `json:"instance"`
}
