package main

import (
	"context"
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"netsplit/model"
)

// notify tells the service manager, if there is one (sd_notify(3)), that the daemon answers,
// and from then on, as often as it asks for, that it still does; when ctx ends, that it heals
// and ends.
func notify(ctx context.Context, log *slog.Logger, health func(context.Context) model.Health) {
	say := func(state string) {
		if _, err := sd.SdNotify(false, state); err != nil {
			log.Warn("the service manager could not be told", "state", state, "err", err)
		}
	}
	say(sd.SdNotifyReady)
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
			say(sd.SdNotifyStopping)
			return
		case <-tick:
			health(ctx) // a daemon that hangs does not return; what is not healthy is no reason to end it
			say(sd.SdNotifyWatchdog)
		}
	}
}
