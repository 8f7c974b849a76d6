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
type times struct{ lease, beat, retry time.Duration }

var usual = times{lease: 15 * time.Second, beat: 3 * time.Second, retry: 15 * time.Second}

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
func (n names) records() string   { return string(n) + "-records" }

// subject joins words: item.<campaign>.<run>, result.<campaign>.<run>, runner.<name>,
// doing.<run>, live.<run>, stop.<campaign>.<run>, hello, software.
func (n names) subject(words ...string) string {
	return string(n) + "." + strings.Join(words, ".")
}

// runOf is the last word of a subject of an item or a result, campaignOf the one before.
func runOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

func campaignOf(subject string) string {
	words := strings.Split(subject, ".")
	if len(words) < 2 {
		return ""
	}
	return words[len(words)-2]
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
	Needs    []string          `json:"needs,omitempty"` // words that a runner must have
}

// result is what a runner says of a run.
type result struct {
	Campaign string `json:"campaign"`
	Run      string `json:"run"`
	Runner   string `json:"runner"`
	// Record is the object with the run's record; "" if there is none.
	Record string `json:"record,omitempty"`
	// Error says what of netsplit or the testbed failed.
	Error string `json:"error,omitempty"`
}

// doing is what a runner says while it makes a run.
type doing struct {
	Campaign string `json:"campaign"`
	Runner   string `json:"runner"`
	What     string `json:"what"` // "": it took the run
}
