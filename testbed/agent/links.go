package agent

import (
	"context"
	"fmt"
	"net"
)

// Link is a network interface of a host.
type Link struct {
	Name  string   `json:"name"`
	MAC   string   `json:"mac,omitempty"`
	MTU   int      `json:"mtu"`
	Up    bool     `json:"up"`
	Addrs []string `json:"addrs,omitempty"` // with prefix length, as 192.0.2.1/24
}

// links lists the interfaces of the agent's network namespace but loopback.
func links() ([]Link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("network interfaces: %w", err)
	}
	var out []Link
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		l := Link{Name: i.Name, MAC: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagUp != 0}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			l.Addrs = append(l.Addrs, a.String())
		}
		out = append(out, l)
	}
	return out, nil
}

// Links lists the host's network interfaces. An error with a list says that the
// agent cannot count packets there.
func (c *Client) Links(ctx context.Context) ([]Link, error) {
	r, err := c.call(ctx, request{Op: opLinks})
	return r.Links, err
}
