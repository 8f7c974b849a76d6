package judge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record/relation"
)

// relationsTime bounds the checks of a run's relations together.
const relationsTime = time.Minute

// relations asks the checks of the target's relations. One that cannot be asked leaves
// the run unknown.
func (f *runFiles) relations(dir string, rec *check.Record) {
	if f.target.Relations == "" || len(rec.Incomplete) > 0 {
		return
	}
	found, err := ask(f.target.Relations, f.target.RelationsText, dir)
	if err != nil {
		rec.Unrelated = "relations: " + strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")
		return
	}
	for _, o := range found.Outcomes {
		rec.Relations = append(rec.Relations, check.Relation{Name: o.Check.Name, Failure: failure(o), Idle: o.Moments == 0, Unknown: o.Unsure})
	}
}

func ask(name, text, dir string) (*relation.Findings, error) {
	file, err := relation.Parse(name, []byte(text))
	if err != nil {
		return nil, err
	}
	return file.Judge(context.Background(), dir, relationsTime)
}

// failure is what violates a check; nil: nothing does. Warnings are no failures.
func failure(o relation.Outcome) *model.Failure {
	f := &model.Failure{Check: o.Check.Name, Signature: "violated: " + o.Check.Name, Class: o.Check.Class, Quote: o.Check.Quote, Amount: o.More}
	for _, v := range o.Violations {
		if v.Warning {
			continue
		}
		if f.Amount++; len(f.Detail) == 0 {
			f.Summary, f.First = fmt.Sprintf("%s: %s at %v", o.Check.Name, v, v.T.Round(time.Millisecond)), v.T
		}
		line := fmt.Sprintf("%v, event %d: %s", v.T.Round(time.Millisecond), v.N, v)
		if len(v.Messages) > 0 {
			line += fmt.Sprint(" [m", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v.Messages)), " m"), "[]"), "]")
		}
		f.Detail, f.Last = append(f.Detail, line), max(f.Last, v.T)
	}
	if len(f.Detail) == 0 {
		return nil
	}
	if f.Amount > 1 {
		f.Summary += fmt.Sprintf(", and %d more", f.Amount-1)
	}
	if o.More > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("and %d more", o.More))
	}
	return f
}
