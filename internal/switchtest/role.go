package switchtest

import "netsplit/controller/of13"

// Demote makes the controller a slave, as when another one has become master
// with this generation id. Nothing is sent: 1.3 has no message for it.
func (s *Switch) Demote(generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.role, s.generation = of13.RoleSlave, generation
}

// takeRole answers a role request. A stale generation id is one whose signed
// distance to the last is negative (6.3.4).
func (s *Switch) takeRole(m *of13.RoleRequest) of13.Message {
	if s.cfg.NoRoles {
		return &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBadType}
	}
	switch m.Role {
	case of13.RoleMaster, of13.RoleSlave:
		if s.generation != ^uint64(0) && int64(m.GenerationID-s.generation) < 0 {
			return &of13.Error{Type: of13.ErrTypeRoleRequestFailed, Code: of13.RoleRequestFailedStale}
		}
		s.role, s.generation = m.Role, m.GenerationID
	case of13.RoleEqual:
		s.role = m.Role
	case of13.RoleNoChange:
	default:
		return &of13.Error{Type: of13.ErrTypeRoleRequestFailed, Code: of13.RoleRequestFailedBadRole}
	}
	return &of13.RoleReply{RoleState: of13.RoleState{Role: s.role, GenerationID: s.generation}}
}

// changes reports whether a message changes the switch's state or sends a
// packet, which a slave must not (6.3.4).
func changes(m of13.Message) bool {
	switch m.MsgType() {
	case of13.TypePacketOut, of13.TypeFlowMod, of13.TypeGroupMod, of13.TypePortMod, of13.TypeTableMod, of13.TypeMeterMod:
		return true
	}
	return false
}
