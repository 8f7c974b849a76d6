package main

import (
	"context"
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"netsplit/model"
)

// notify tells the service manager that the daemon answers, and until ctx ends, as often as it
// asks for, that it still does.
func notify(ctx context.Context, log *slog.Logger, health func(context.Context) model.Health) {
	tell(log, sd.SdNotifyReady)
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog cannot be served", "err", err)
	}
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every / 3)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			health(ctx) // a daemon that hangs does not return; what is not healthy is no reason to end it
			tell(log, sd.SdNotifyWatchdog)
		}
	}
}

// stopping tells the service manager that the daemon heals and ends. It waits no longer than a
// second: a manager that does not read must not keep a cut in force.
func stopping(log *slog.Logger) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		tell(log, sd.SdNotifyStopping)
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
		log.Warn("the service manager does not read what it is told")
	}
}

// tell tells the service manager, if there is one, a state (sd_notify(3)).
func tell(log *slog.Logger, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		log.Warn("the service manager could not be told", "state", state, "err", err)
	}
}
