package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"netsplit/model"
)

// Holders asks every host of a role of the testbed file at once who has it.
func (b *Testbed) Holders(ctx context.Context, name string) (model.Holders, error) {
	role, ok := b.Testbed.Roles[name]
	if !ok {
		known := "it has none"
		if names := slices.Sorted(maps.Keys(b.Testbed.Roles)); len(names) > 0 {
			known = "it has " + strings.Join(names, ", ")
		}
		return model.Holders{}, fmt.Errorf("the testbed file has no role %q: %s; add it under roles, with hosts, probe and match", name, known)
	}
	return WhoHas(ctx, name, role, b.Ask)
}

// WhoHas asks every host of a role at once who has it. Where nobody is found, the
// errors of those who did not answer are told.
func WhoHas(ctx context.Context, name string, role model.Role, ask func(context.Context, model.NodeID, model.Probe) (string, error)) (model.Holders, error) {
	match, err := regexp.Compile(role.Match)
	if err != nil {
		return model.Holders{}, fmt.Errorf("role %s: match: %w", name, err)
	}
	has := make([]bool, len(role.Hosts))
	errs := make([]error, len(role.Hosts))
	var wg sync.WaitGroup
	for i, h := range role.Hosts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			answer, err := ask(ctx, h, role.Probe)
			has[i], errs[i] = err == nil && match.MatchString(answer), err
		}()
	}
	wg.Wait()
	out := model.Holders{Of: role.Hosts}
	for i, h := range role.Hosts {
		switch {
		case errs[i] != nil:
			out.Silent = append(out.Silent, h)
		case has[i]:
			out.Have = append(out.Have, h)
		}
	}
	switch err := errors.Join(errs...); {
	case len(out.Have) > 0:
		return out, nil
	case err != nil:
		return out, fmt.Errorf("%w: nobody says that it has role %q, and not all could be asked: %w", model.ErrUnavailable, name, err)
	}
	return out, fmt.Errorf("%w: nobody has role %q now: none of %v says so", model.ErrUnavailable, name, out.Of)
}
