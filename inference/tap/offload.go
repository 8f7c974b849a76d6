package tap

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// Merging lists the features of an interface that are on and have its driver or the
// kernel make one frame of several that arrived (receive offloads): no switch takes what
// comes of it. The interface is in a network namespace of that name; "": our own.
func Merging(iface, namespace string) (on []string, err error) {
	_, err = within(namespace, func() (int, error) {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return -1, err
		}
		defer e.Close()
		has, err := e.Features(iface)
		if err != nil {
			return -1, err
		}
		for _, f := range []string{"rx-gro", "rx-gro-hw", "rx-gro-list", "rx-lro"} { // the kernel's names: net/ethtool/common.c
			if has[f] {
				on = append(on, f)
			}
		}
		return 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("offloads of %s: %w", where(iface, namespace), err)
	}
	return on, nil
}
