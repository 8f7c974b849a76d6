package run

import "netsplit/model"

// silence makes the kernel of a host whose servers have just died forget their connections,
// as one that has lost its power does: else it sends their FIN again, which goes through as
// the host comes back. Nothing of the host has passed the gate since they died, and its cut
// begins next. The caller holds mu.
func (s *session) silence(d model.Decision, held *heldFrame) {
	host := s.scn.Steps[d.Step-1].Do.Node.Host
	for _, c := range s.pipe.Connections() {
		if c.HostA == host || c.HostB == host {
			s.resetConn(c, held, host)
		}
	}
}
