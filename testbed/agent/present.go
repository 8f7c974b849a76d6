package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"time"

	"netsplit/model"
	"netsplit/testbed/proc"
)

// copyLimit is how long our program may take to a host.
const copyLimit = 2 * time.Minute

// present says where the program is on the host. To one that is reached by ssh,
// and whose file names no other, it is copied: into the home directory, under a
// name that changes with its content, so that it goes there once.
func present(ctx context.Context, host model.TestbedHost, binary string) (string, error) {
	switch {
	case host.Agent != "":
		return host.Agent, nil
	case !host.Remote():
		return binary, nil
	}
	f, err := os.Open(binary)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	sum := fmt.Sprintf("%x", h.Sum(nil))
	path := ".cache/netsplit/" + sum[:16]
	// A copy of somebody else's that only has the name would be run as ours.
	has := fmt.Sprintf(`echo "%s  %s" | sha256sum -c --status 2>/dev/null`, sum, path)
	if _, err := proc.Output(ctx, host.Argv("sh", "-c", has), startLimit); err == nil {
		return "./" + path, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	put := fmt.Sprintf(`umask 077 && mkdir -p .cache/netsplit && cat >%[1]s.$$ && chmod 700 %[1]s.$$ && mv %[1]s.$$ %[1]s && `, path) + has
	if _, err := proc.OutputFrom(ctx, f, host.Argv("sh", "-c", put), copyLimit); err != nil {
		return "", fmt.Errorf("copy it to %s there (or put it there and name it under agent in the testbed file): %w", path, err)
	}
	return "./" + path, nil
}
