package judge

import (
	"netsplit/explorer"
	"netsplit/model"
)

// Past reads from a run's record what is needed to play a part of its scenario.
func Past(dir string) (explorer.Past, error) {
	f, err := readRun(dir)
	if err != nil {
		return explorer.Past{}, err
	}
	out := explorer.Past{Steps: f.evidence.Result.Steps}
	on := false
	for i := range f.events {
		switch e := &f.events[i]; e.Kind {
		case model.EventWorkload:
			on, out.Start = true, e.At
		case model.EventStop:
			on = false
		case model.EventMessage:
			if on && e.Message != nil {
				out.Messages = append(out.Messages, explorer.Came{At: e.At, Type: e.Message.Type, From: e.Message.From, To: e.Message.To})
			}
		}
	}
	return out, nil
}
