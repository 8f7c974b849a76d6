package state

import (
	"time"

	"netsplit/model"
)

// Extractor reads variables out of messages and probe answers, as the target
// file's variables say.
type Extractor struct{}

// NewExtractor checks and compiles the variables.
func NewExtractor(hosts []model.TestbedHost, nodes []model.NodeID, vars []model.Variable) (*Extractor, error) {
	return &Extractor{}, nil
}

// Message returns what a message reveals, sorted by variable.
func (e *Extractor) Message(m *model.Message) []model.Observation { return nil }

// Probe returns what the answer of a variable's probe reveals, sorted by
// variable. source is the index of the probe in Variable.Sources.
func (e *Extractor) Probe(variable string, source int, host model.NodeID, at time.Duration, answer string) []model.Observation {
	return nil
}
