// Package nodes runs a target on the hosts of a testbed.
//
// Kit (kit.go) is what every run of a campaign starts from: the target, its software and its
// templates. Processes (processes.go) are those of one run. They start in order (start.go,
// servers.go), from a copy of a template if there is one (template.go), and by the
// testbed's hooks if it has them (hooks.go). The run waits until all conditions hold
// (conditions.go), and then starts workloads and operations (workloads.go, operations.go).
// Workloads and scripts can stop, kill and pause processes (actions.go, control.go). Disk
// gates hold their file operations if the run needs it (files.go). logs.go reads their logs.
//
// It does not know what is cut, nor what a run is for. It reports what happens to a Journal,
// which writes the record.
package nodes
