package labtest

import (
	"runtime"

	"github.com/vishvananda/netns"
)

// InNetns runs f on a thread that is in a named network namespace: sockets that f
// makes stay there. The error is f's, or says why the namespace could not be
// entered.
func InNetns(namespace string, f func() error) error {
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with f
		ns, err := netns.GetFromName(namespace)
		if err == nil {
			defer ns.Close()
			if err = netns.Set(ns); err == nil {
				err = f()
			}
		}
		errs <- err
	}()
	return <-errs
}
