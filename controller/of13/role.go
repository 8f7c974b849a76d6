package of13

// Role is a controller's role towards a switch (7.3.9, ofp_controller_role).
type Role uint32

// Roles.
const (
	RoleNoChange Role = 0
	RoleEqual    Role = 1
	RoleMaster   Role = 2
	RoleSlave    Role = 3
)

// String names the role.
func (r Role) String() string {
	return nameOf([]string{"NOCHANGE", "EQUAL", "MASTER", "SLAVE"}, r, "ROLE")
}

// RoleState is the body of the two role messages (7.3.9).
type RoleState struct {
	Role         Role
	GenerationID uint64 // grows with each new master; compared as signed distance (6.3.4)
}

// RoleRequest asks for a role (7.3.9).
type RoleRequest struct{ RoleState }

// RoleReply says which role is in force (7.3.9).
type RoleReply struct{ RoleState }

func (s *RoleState) marshal(b []byte) ([]byte, error) {
	return be.AppendUint64(appendPad(be.AppendUint32(b, uint32(s.Role)), 4), s.GenerationID), nil
}

func (s *RoleState) unmarshal(r *reader) {
	s.Role = Role(r.u32())
	r.pad(4)
	s.GenerationID = r.u64()
}

// MsgType is TypeRoleRequest.
func (m *RoleRequest) MsgType() MsgType { return TypeRoleRequest }

// MsgType is TypeRoleReply.
func (m *RoleReply) MsgType() MsgType { return TypeRoleReply }
