package model

import (
	"slices"
	"time"
)

// RunMetrics is what a run on another machine adds to the daemon's metrics. Whoever made it may lie:
// what is counted is checked by whoever adds it.
type RunMetrics struct {
	Links []Link        `json:"links,omitempty"` // that the run might have cut
	Cuts  map[Shape]int `json:"cuts,omitempty"`
	Heals []MetricCount `json:"heals,omitempty"` // Name: the reason
	// CutTime is how long each link was cut.
	CutTime []MetricTime `json:"cutTime,omitempty"`
	LastCut time.Time    `json:"lastCut,omitzero"`
	// Packets counts the packets of cut links; Name is the fate.
	Packets []MetricPackets `json:"packets,omitempty"`
	// Messages: Name is the type, Of the verdict. Faults: Name is the kind, Of the reason.
	Messages []MetricCount `json:"messages,omitempty"`
	Faults   []MetricCount `json:"faults,omitempty"`
	// Gate is how long the gate held packets: Name is its transport.
	Gate []MetricDelays `json:"gate,omitempty"`
	// HealTimes are from the decision to heal to the first packet across.
	HealTimes []time.Duration `json:"healTimes,omitempty"`
}

// MetricCount counts something with a name.
type MetricCount struct {
	Name string `json:"name"`
	Of   string `json:"of,omitempty"`
	N    int    `json:"n"`
}

// MetricTime is a time of a link.
type MetricTime struct {
	Link Link          `json:"link"`
	Time time.Duration `json:"time"`
}

// MetricPackets counts packets of a link.
type MetricPackets struct {
	Link Link `json:"link"`
	Fate Fate `json:"fate"`
	N    int  `json:"n"`
}

// MetricDelays counts delays of about the same length.
type MetricDelays struct {
	Name string        `json:"name"`
	N    int           `json:"n"`
	Sum  time.Duration `json:"sum"`
}

// HealReasons are those with which cuts end.
func HealReasons() []string {
	return []string{ReasonNewClass, ReasonHealClass, ReasonTime, ReasonMessage, ReasonFile, ReasonRole, ReasonMaxCut, ReasonStop, ReasonScript, ReasonHand, ReasonLost, ReasonBroken}
}

// Within leaves out links of other hosts.
func (t RunMetrics) Within(hosts []NodeID) RunMetrics {
	inside := func(l Link) bool { return slices.Contains(hosts, l.Src) && slices.Contains(hosts, l.Dst) }
	t.Links = slices.DeleteFunc(slices.Clone(t.Links), func(l Link) bool { return !inside(l) })
	t.CutTime = slices.DeleteFunc(slices.Clone(t.CutTime), func(c MetricTime) bool { return !inside(c.Link) })
	t.Packets = slices.DeleteFunc(slices.Clone(t.Packets), func(p MetricPackets) bool { return !inside(p.Link) })
	return t
}
