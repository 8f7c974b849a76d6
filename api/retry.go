package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryHeaders are the headers of a request that starts something.
type RetryHeaders struct {
	Key    string `header:"Idempotency-Key" pattern:"^[A-Za-z0-9_.:-]{1,128}$" doc:"Choose one per request and send it again with each retry: the request is then executed once. Remembered for 24 hours"`
	Prefer string `header:"Prefer" maxLength:"100" doc:"wait=N waits up to N seconds (at most 60) for the outcome (RFC 7240)"`
}

func once[B, O any](s *server, in RetryHeaders, operation string, req B, fn func() (O, error)) (result O, failed error) {
	var zero O
	run := func() (O, error) {
		out, err := fn()
		if err != nil {
			return zero, fromService(err)
		}
		return out, nil
	}
	if in.Key == "" {
		return run()
	}
	if s.Keys == nil {
		return zero, newProblem(http.StatusUnprocessableEntity, "This daemon does not keep idempotency keys: repeat the request without Idempotency-Key.")
	}
	b, err := json.Marshal(req)
	if err != nil {
		return zero, fromService(err)
	}
	sum := sha256.Sum256(append([]byte(operation+"\x00"), b...))
	hash := hex.EncodeToString(sum[:])
	old, response, fresh, err := s.Keys.ClaimKey(in.Key, hash, s.Now())
	switch {
	case err != nil:
		return zero, fromService(err)
	case fresh:
	case old != hash:
		return zero, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("Idempotency-Key %q was used for another request in the last 24 hours: choose a new key for this one.", in.Key))
	case response == nil:
		return zero, newProblem(http.StatusConflict, fmt.Sprintf("The first request with Idempotency-Key %q has no answer yet: repeat it in a moment. If the daemon was restarted meanwhile, the outcome is unknown: list what exists and choose a new key.", in.Key))
	default:
		var out O
		if err := json.Unmarshal(response, &out); err != nil {
			return zero, fromService(err)
		}
		return out, nil
	}
	answered := false
	defer func() { // also when fn panics
		if answered {
			return
		}
		if rel := s.Keys.ReleaseKey(in.Key); rel != nil {
			result, failed = zero, fromService(fmt.Errorf("%w (and the key could not be released: %v)", failed, rel))
		}
	}()
	out, err := run()
	if err != nil {
		return zero, err
	}
	answered = true
	if b, err = json.Marshal(out); err == nil {
		err = s.Keys.FinishKey(in.Key, b)
	}
	if err != nil {
		return zero, fromService(err)
	}
	return out, nil
}

// waitStep is how often the outcome is looked for during Prefer: wait.
const waitStep = 50 * time.Millisecond

func wait[O any](ctx context.Context, prefer string, now O, done func(O) bool, look func() (O, error)) (O, error) {
	end := time.NewTimer(preferWait(prefer))
	defer end.Stop()
	tick := time.NewTicker(waitStep)
	defer tick.Stop()
	for !done(now) && preferWait(prefer) > 0 {
		select {
		case <-ctx.Done():
			return now, nil
		case <-end.C:
			return now, nil
		case <-tick.C:
		}
		next, err := look()
		if err != nil {
			return now, fromService(err)
		}
		now = next
	}
	return now, nil
}

// preferWait reads wait=N out of a Prefer header (RFC 7240 §4.3); a
// preference that is not understood is ignored (§2).
func preferWait(prefer string) time.Duration {
	for _, p := range strings.Split(prefer, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(strings.TrimSpace(k), "wait") {
			continue
		}
		if n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(v), `"`), 10, 31); err == nil {
			return time.Duration(min(n, 60)) * time.Second
		}
	}
	return 0
}
