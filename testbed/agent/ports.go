package agent

import (
	"context"
	"fmt"

	"netsplit/model"
)

// A ServicePort is a port of a transport, tcp or udp.
type ServicePort struct {
	Transport string `json:"transport"`
	Port      uint16 `json:"port"`
}

// portBytes are the bytes of payload that came to a host since its agent began, by the
// ports at either end: [0] is of TCP, [1] of UDP.
type portBytes [2][1 << 16]int64

// add counts a packet to both of its ports; to one that both ends have, once.
func (p *portBytes) add(a *arrival, payload int32) {
	if p == nil || payload <= 0 || a.way == toOther || a.mac == model.ResetMAC {
		return
	}
	t := 0
	switch a.proto {
	case protoTCP:
	case protoUDP:
		t = 1
	default:
		return
	}
	p[t][a.to] += int64(payload)
	if a.from != a.to {
		p[t][a.from] += int64(payload)
	}
}

// wirePorts answers opPorts: in the order asked for.
type wirePorts struct {
	Bytes []int64 `json:"bytes"`
	// Missed counts the packets that the kernel dropped for want of buffer.
	Missed uint64 `json:"missed"`
}

// PortBytes returns how many bytes of TCP and UDP payload have come to the host since
// its agent began, to each of the ports or from it, and how many packets of whichever
// kind the agent missed meanwhile. What the host says to itself is not among them.
func (c *Client) PortBytes(ctx context.Context, ports []ServicePort) (bytes []int64, missed uint64, err error) {
	r, err := c.call(ctx, request{Op: opPorts, Ports: ports})
	if err != nil {
		return nil, 0, err
	}
	if r.Ports == nil || len(r.Ports.Bytes) != len(ports) {
		return nil, 0, fmt.Errorf("host %s: the agent's answer holds no bytes of ports", c.host)
	}
	return r.Ports.Bytes, r.Ports.Missed, nil
}

// portsOf answers opPorts, once all that came so far was counted.
func (c *capture) portsOf(ports []ServicePort) (wirePorts, error) {
	if err := c.sync(); err != nil {
		return wirePorts{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := wirePorts{Missed: c.missed}
	for _, p := range ports {
		t := 0
		if p.Transport == "udp" {
			t = 1
		}
		out.Bytes = append(out.Bytes, c.ports[t][p.Port])
	}
	return out, nil
}
