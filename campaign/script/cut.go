package script

import (
	"fmt"
	"strings"

	"netsplit/model"
)

// Cut is a partition that was put in force.
type Cut struct {
	Name string
	// Partition is what was cut, with its groups filled in.
	Partition model.Partition
}

// Complete cuts groups that together hold every host from one another (NEAT's
// complete). As all cuts, it returns once it is proved that nothing passes.
func (s *Script) Complete(groups ...[]Host) *Cut {
	return s.Cut("", model.Partition{Shape: model.Complete, Groups: groups})
}

// Partial cuts two groups from each other; all others reach both (NEAT's
// partial).
func (s *Script) Partial(a, b []Host) *Cut {
	return s.Cut("", model.Partition{Shape: model.Partial, Groups: [][]Host{a, b}})
}

// Simplex lets packets flow from src to dst, but not back (NEAT's simplex).
func (s *Script) Simplex(src, dst []Host) *Cut {
	return s.Cut("", model.Partition{Shape: model.Simplex, Groups: [][]Host{src, dst}})
}

// Isolate cuts a group from all other hosts.
func (s *Script) Isolate(hosts ...Host) *Cut {
	return s.Cut("", model.Partition{Shape: model.Isolated, Groups: [][]Host{hosts}})
}

// Cut puts any partition in force, of any shape (see flowrules.Resolve),
// under a name; "" stands for the next number. Who has a role is looked up now,
// among the target's roles.
func (s *Script) Cut(name string, p model.Partition) *Cut {
	name = s.named(&s.cuts, name)
	c := &Cut{Name: name, Partition: p}
	if p.Effect == "" {
		p.Effect = model.Drop
	}
	s.step("cut", fmt.Sprintf("cut %s: %s", name, p), func() (string, error) {
		got, err := s.live.Cut(s.ctx, name, p)
		if err != nil {
			return "", err
		}
		c.Partition = got.Partition
		result := fmt.Sprintf("nothing passes %d links since %.3f s after it was asked for", len(got.Proof.Links), (got.Proof.InForceAt - got.Proof.CutAt).Seconds())
		if got.Partition.String() != p.String() {
			result = got.Partition.String() + ": " + result
		}
		return result, nil
	})
	return c
}

// Heal lifts a cut and returns once packets pass again. What is not healed when
// the script ends is healed then.
func (s *Script) Heal(c *Cut) {
	s.step("heal", "heal "+c.Name, func() (string, error) {
		got, err := s.live.Heal(s.ctx, c.Name)
		if err != nil {
			return "", err
		}
		p := got.Proof
		leaked := fmt.Sprint(p.Leaked)
		if !p.LeakKnown {
			leaked = "an unknown number"
		}
		return fmt.Sprintf("%d packets wanted to cross, %d were dropped, %s leaked", p.Wanted, p.Dropped, leaked), nil
	})
}

// Client is a host from which operations of the target are done.
type Client struct {
	Host Host
	s    *Script
}

// Client is a host as a client of the target.
func (s *Script) Client(h Host) *Client {
	s.Hosts(h)
	return &Client{Host: h, s: s}
}

// Op is how an operation ended.
type Op struct {
	// Type is model.OpOK (it happened, and Value is its answer), model.OpFail (it
	// was refused) or model.OpInfo (nobody knows); Error says why, and Value is "",
	// which is no answer: look at OK before Value is compared with anything.
	Type         model.OpType
	Value, Error string
}

// OK says whether the operation was acknowledged.
func (o Op) OK() bool { return o.Type == model.OpOK }

// String is the outcome in words.
func (o Op) String() string {
	switch {
	case o.OK() && o.Value == "":
		return "ok"
	case o.OK():
		return "ok, " + o.Value
	case o.Type == model.OpFail:
		return "refused: " + o.Error
	}
	return "unknown: " + o.Error
}

// Do does an operation of the target (operations in its file) and returns when
// it is over. It stands in the run's history, with invocation and answer.
func (c *Client) Do(operation string, args ...string) (op Op) {
	c.s.step("op", opText(c.Host, operation, args), func() (string, error) {
		var err error
		op, err = c.do(operation, args)
		return op.String(), err
	})
	return op
}

func (c *Client) do(operation string, args []string) (Op, error) {
	r, err := c.s.live.Do(c.s.ctx, c.Host, operation, args...)
	return Op{Type: r.Type, Value: r.Value, Error: r.Error}, err
}

func opText(h Host, operation string, args []string) string {
	return fmt.Sprintf("%s: %s", h, strings.Join(append([]string{operation}, args...), " "))
}
