package wire

import (
	"maps"
	"slices"

	"netsplit/model"
)

// Target is a target that a campaign can name.
type Target struct {
	Name     string `json:"name" doc:"Name for a campaign, without a release; with its version if it was uploaded" example:"gossip:3f2a91c04b1d"`
	Uploaded bool   `json:"uploaded" doc:"It was uploaded; the others come with netsplit"`
	Newest   bool   `json:"newest,omitempty" doc:"For an uploaded target: its name without a version means this upload, unless a target that comes with netsplit has the name"`
}

// TargetDetail is a target with what a campaign can choose of it.
type TargetDetail struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Release  string    `json:"release,omitempty" doc:"The release of its software that the name stands for; absent: it runs what is installed"`
	Releases []string  `json:"releases" doc:"That its file is made for"`
	Settings []Setting `json:"settings" doc:"By name; a campaign changes them with args"`
	Nodes    []string  `json:"nodes"`
	Clients  []string  `json:"clients"`
	Scripted bool      `json:"scripted,omitempty" doc:"It has no workloads: it is for scripts, and no campaign can be on it"`
}

// Setting is a value of a target file that a campaign may change.
type Setting struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"help,omitempty"`
}

// FromTarget converts a target.
func FromTarget(ref string, t *model.Target) TargetDetail {
	out := TargetDetail{Name: ref, Title: t.Title, Release: t.Release, Releases: []string{}, Settings: []Setting{},
		Nodes: each(t.Nodes, name), Clients: each(t.Clients, name), Scripted: len(t.Workloads) == 0}
	if t.Software != nil {
		out.Releases = nonNil(t.Software.Versions)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Args)) {
		out.Settings = append(out.Settings, Setting{Name: k, Default: t.Args[k].Default, Help: t.Args[k].Help})
	}
	return out
}

// Targets are all of them.
type Targets struct {
	Items []Target `json:"items"`
}
