package nodes

import (
	"context"
	"strings"
	"sync"
	"time"

	"netsplit/model"
)

// versionLimit is how long the command of a target's version may take.
const versionLimit = 10 * time.Second

// version is what a target says of its version, once known.
type version struct {
	mu    sync.Mutex
	known bool
	text  string
}

// Version is the first line that the command of the target's version prints on the
// first node, or that text itself where it is no command there; "" where the file
// has none, or names releases. It is asked for once in a campaign.
func (p *Processes) Version(ctx context.Context) string {
	t := p.c.Kit.Target
	if t.Version == "" || t.Release != "" || len(t.Nodes) == 0 {
		return ""
	}
	v := &p.c.Kit.version
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known {
		return v.text
	}
	out, err := p.c.Bed.Ask(ctx, t.Nodes[0], model.Probe{Command: strings.Fields(t.Version), Limit: versionLimit})
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if line = strings.TrimSpace(line); err != nil || line == "" {
		line = t.Version
	}
	if ctx.Err() == nil {
		v.known, v.text = true, model.Excerpt(line)
	}
	return line
}
