package model

import "slices"

// capabilities are Linux's, by number (capabilities(7)).
var capabilities = []string{"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "linux_immutable",
	"net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct",
	"sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
	"mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore"}

// Capabilities lists the names of Linux's capabilities, in lower case and without
// CAP_.
func Capabilities() []string { return slices.Clone(capabilities) }

// CapabilityNumber is the number of a capability; -1 if there is none of the name.
func CapabilityNumber(name string) int { return slices.Index(capabilities, name) }
