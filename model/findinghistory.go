package model

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// FindingState says how a failure stands, by the campaigns on its target.
type FindingState string

// States of a finding over campaigns. They go by the newest search that shows it and those like
// it that show it, or are done and judged a fault run.
const (
	FindingNew   FindingState = "new"   // one campaign shows it
	FindingKnown FindingState = "known" // several do
	FindingBack  FindingState = "back"  // the newest search shows it; one before did, but not the last one
	FindingGone  FindingState = "gone"  // the newest does not show it, nor a later campaign, which is no proof that it is mended
)

// FindingHistory is what campaigns on a target showed of one failure: the same check with the
// same signature.
type FindingHistory struct {
	ID        string // HistoryID
	Target    string
	Check     string
	Signature string
	State     FindingState
	// Newest is the finding of the newest campaign that shows it.
	Newest Finding
	// Campaigns show it, the newest first; First and Last are when the first and the last of
	// them were made.
	Campaigns []string
	First     time.Time
	Last      time.Time
	Note      FindingNote // the zero value: nobody wrote one
}

// FindingNote is what somebody wrote about a failure.
type FindingNote struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// MaxNote bounds a note, in characters.
const MaxNote = 2000

// HistoryID is "h-" and a hash of what makes a failure the same in all campaigns.
func HistoryID(target, check, signature string) string {
	sum := sha256.Sum256([]byte(target + "\x00" + check + "\x00" + signature))
	return "h-" + hex.EncodeToString(sum[:6])
}
