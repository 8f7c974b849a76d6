package model

import "time"

// Schedule makes campaigns by itself: one at a time, or one at each time of a cron
// expression.
type Schedule struct {
	Name string       `json:"name"`
	Spec CampaignSpec `json:"spec"` // with seed 0, each campaign has a seed of its own
	// At is when, once; or Cron is a cron expression of five fields (or a descriptor such
	// as @daily) in TimeZone, a name of the IANA database ("": the daemon's).
	At       time.Time `json:"at,omitzero"`
	Cron     string    `json:"cron,omitempty"`
	TimeZone string    `json:"timeZone,omitempty"`
	Overlap  Overlap   `json:"overlap"`
	Paused   bool      `json:"paused,omitempty"`
	Created  time.Time `json:"created"`
	// Next is when it makes the next campaign; zero: never.
	Next time.Time `json:"next,omitzero"`
	// Last is the last campaign that it made, LastTime when it was to make one, and Note
	// why it then made none.
	Last     string    `json:"last,omitempty"`
	LastTime time.Time `json:"lastTime,omitzero"`
	Note     string    `json:"note,omitempty"`
}

// Overlap says what a schedule does while its last campaign has not ended.
type Overlap string

// Kinds of overlap.
const (
	OverlapSkip  Overlap = "skip"  // it makes none this time
	OverlapQueue Overlap = "queue" // it makes one, unless one of its campaigns is queued already
)
