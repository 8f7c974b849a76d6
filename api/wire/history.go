package wire

import (
	"time"

	"netsplit/model"
)

// FindingHistory is what campaigns on a target showed of one failure.
type FindingHistory struct {
	ID        string     `json:"id"`
	Target    string     `json:"target"`
	Check     string     `json:"check"`
	Signature string     `json:"signature"`
	State     string     `json:"state" enum:"new,known,back,gone" doc:"By the newest search that shows it and those like it (release, strategy, settings, effect and choice of faults) that show it or judged a fault run: new: one campaign shows it; back: the newest shows it, the one before did not, an earlier one did; gone: the newest does not show it, which is no proof that it is mended, nor does a later campaign; known: the rest"`
	Newest    Finding    `json:"newest" doc:"Of the newest campaign that shows it"`
	Campaigns []string   `json:"campaigns" doc:"That show it, newest first"`
	First     time.Time  `json:"first" doc:"When the first of them was made"`
	Last      time.Time  `json:"last" doc:"When the last of them was made"`
	Note      string     `json:"note,omitempty" doc:"What somebody wrote about it"`
	Noted     *time.Time `json:"noted,omitempty" doc:"When"`
}

// FindingHistories is one page of them.
type FindingHistories struct {
	Items []FindingHistory `json:"items" doc:"What is new or came back first, then what is known, then what is gone"`
	Next  string           `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// FindingNote is what somebody writes about a failure.
type FindingNote struct {
	Text string `json:"text" maxLength:"2000" doc:"Empty: forget the note"`
}

// FromHistory makes a FindingHistory.
func FromHistory(h model.FindingHistory) FindingHistory {
	out := FindingHistory{ID: h.ID, Target: h.Target, Check: h.Check, Signature: h.Signature, State: string(h.State), Newest: FromFinding(h.Newest),
		Campaigns: h.Campaigns, First: h.First, Last: h.Last, Note: h.Note.Text}
	if !h.Note.At.IsZero() {
		out.Noted = &h.Note.At
	}
	return out
}
