package wire

import "netsplit/model"

// LiveState is what a run under way shows.
type LiveState struct {
	Run      string       `json:"run"`
	Campaign string       `json:"campaign"`
	Target   string       `json:"target"`
	Phase    string       `json:"phase,omitempty" doc:"template (makes, or waits for, the state that runs start from), start, workload or recovery; absent: it waits for its lab"`
	At       Duration     `json:"at" doc:"Time since the run started"`
	Nodes    []string     `json:"nodes"`
	Clients  []string     `json:"clients"`
	Cuts     []LiveCut    `json:"cuts" doc:"Those that are not healed"`
	Steps    []StepResult `json:"steps" doc:"Those of the scenario, and of a script those that have begun. One without by and lacked waits, one without endedBy acts"`
	Events   []LiveEvent  `json:"events" doc:"In their order; the last 2,000 are kept"`
	Last     uint64       `json:"last" doc:"Number of the last event so far: send it as after"`
}

// LiveCut is a cut that is not healed.
type LiveCut struct {
	Name      string       `json:"name" doc:"Of a step of the scenario, or of a script's cut"`
	Partition string       `json:"partition" doc:"Shape, groups and what else it is of, as text"`
	Links     []model.Link `json:"links" doc:"The directed links that it cuts"`
	Some      bool         `json:"some,omitempty" doc:"It cuts some of the links' traffic only"`
	InForce   bool         `json:"inForce" doc:"Confirmed by the switch; of a script also proved"`
}

// LiveEvent is one thing that happened in a run under way.
type LiveEvent struct {
	Number uint64   `json:"number" doc:"From 1, without a gap"`
	At     Duration `json:"at" doc:"Since the run started"`
	Kind   string   `json:"kind" enum:"message,cut,heal,in-force,server,disk,fault,phase"`
	From   string   `json:"from,omitempty"`
	To     string   `json:"to,omitempty"`
	Type   string   `json:"type,omitempty" doc:"Message type"`
	Bytes  int      `json:"bytes,omitempty" doc:"Length of the message on the wire, headers excluded"`
	Action string   `json:"action,omitempty" enum:"pass,drop,hold,copy,skip,reset" doc:"What became of the packet that completed the message when it came"`
	Name   string   `json:"name,omitempty" doc:"The step, or the cut or fault of a script, that begins or ends"`
	Host   string   `json:"host,omitempty" doc:"Of kinds server and disk"`
	Text   string   `json:"text,omitempty" doc:"Of all kinds but message"`
}

// FromLiveState converts what a run shows.
func FromLiveState(m model.LiveState) LiveState {
	return LiveState{
		Run: m.Run, Campaign: m.Campaign, Target: m.Target, Phase: m.Phase, At: Duration(m.At), Nodes: each(m.Nodes, name), Clients: each(m.Clients, name),
		Cuts: each(m.Cuts, func(c model.LiveCut) LiveCut {
			return LiveCut{Name: c.Name, Partition: c.Partition.String(), Links: nonNil(c.Partition.Links()), Some: len(c.Partition.Only) > 0, InForce: c.InForce}
		}),
		Steps: each(m.Steps, func(s model.LiveStep) StepResult { return fromStepResult(s.StepResult, s.Text) }),
		Events: each(m.Events, func(e model.LiveEvent) LiveEvent {
			return LiveEvent{Number: e.Num, At: Duration(e.At), Kind: string(e.Kind), From: string(e.From), To: string(e.To), Type: e.Type, Bytes: e.Bytes,
				Action: string(e.Action), Name: e.Name, Host: string(e.Host), Text: e.Text}
		}),
		Last: m.Last,
	}
}
