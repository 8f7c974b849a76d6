package labtest

import (
	"runtime"

	"github.com/vishvananda/netns"
)

// In runs f on a thread of its own in a network namespace, by name: sockets
// that it opens belong there, and stay there when f is done.
func In(ns string, f func() error) error {
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with f
		target, err := netns.GetFromName(ns)
		if err == nil {
			defer target.Close()
			if err = netns.Set(target); err == nil {
				err = f()
			}
		}
		errs <- err
	}()
	return <-errs
}
