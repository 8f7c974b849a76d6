// Package labtest runs a package's tests inside network, mount and process
// namespaces of their own, so that tests may start Open vSwitch, make bridges
// and kill daemons without touching the machine, and so that nothing survives
// them even when they are killed. In is for tests that make network
// namespaces of their own.
package labtest
