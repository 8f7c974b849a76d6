package nodes

import (
	"context"
	"errors"
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

// Version is the first line that the command of the target's version prints on its
// standard output on the first node (words, no shell and no template), or that text
// itself where there is no such program; "" where the file has none, or names
// releases, or where the command failed. It is asked for once in a campaign.
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
	out, err := p.Ask(ctx, t.Nodes[0], model.Probe{Command: strings.Fields(t.Version), Limit: versionLimit})
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	switch line = strings.TrimSpace(line); {
	case err != nil && (strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "o such file")):
		line = t.Version // no command, but what it says
	case err == nil && line != "":
	default:
		if err == nil {
			err = errors.New("it printed nothing on its standard output")
		}
		p.c.Journal.Note("the target's version is not known: %q: %v", t.Version, err)
		return "" // it may have been slow: asked again in the next run
	}
	if ctx.Err() == nil {
		v.known, v.text = true, model.Excerpt(line)
	}
	return line
}
