package proc

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts all processes from one thread that never ends. The kernel
// sends the parent-death signal when the *thread* that forked ends
// (prctl(2), PR_SET_PDEATHSIG), and the Go runtime ends threads as it likes.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartCommand starts cmd in a session and process group of its own, bound to
// the life of this process: the kernel kills it when this process dies.
func StartCommand(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	spawner() <- func() { done <- cmd.Start() }
	return <-done
}
