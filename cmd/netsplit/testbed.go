package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/config"
	"netsplit/testbed/learn"
	"netsplit/testbed/learn/sketch"
)

// readTestbed reads a testbed file. What is wrong with it is for whoever wrote the command.
func readTestbed(path string) (*model.Testbed, error) {
	tb, err := config.Read(path)
	if err != nil {
		return nil, usage("%w", err)
	}
	return tb, nil
}

func testbedCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "testbed", Short: "make testbed files, and list the hosts and switches of the daemon"}
	c.AddCommand(learnCommand(), testbedHostsCommand(conn), testbedSwitchesCommand(conn))
	return c
}

func learnCommand() *cobra.Command {
	var openflow, out string
	var listen time.Duration
	var o sketch.Options
	var noForward bool
	var switches switchFlags
	cmd := &cobra.Command{
		Use:   "learn [-o FILE]",
		Short: "listen to switches and write a testbed file",
		Long: `Listens as an OpenFlow 1.3 controller and writes a testbed file: ports from the
switches' lists, hosts from their ARP and neighbour discovery packets (or from
other IP packets if these do not come), and links between switches from LLDP
frames that it sends. netsplit serve and netsplit doctor take the file as it is.
Comments that begin with DECIDE need somebody who knows the network. Interrupted,
it writes what it has.

First point the switches at --openflow (ovs-vsctl set-controller BRIDGE
tcp:ADDRESS:PORT). Have every host send something meanwhile, such as a ping.

Rules of others and their traffic stay as they are; only their counters miss the
copied packets. A switch without rules is told to forward as a plain switch
(OFPP_NORMAL) unless links form a loop, because Open vSwitch in standalone mode
stops forwarding when it gets a controller. netsplit removes what it installed at
the end; it expires within seconds if netsplit is killed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := requirePositive(c, "for"); err != nil {
				return err
			}
			if _, err := sketch.New("x").File(o); err != nil {
				return usage("--%w", err)
			}
			if o.Name == "" {
				return usage("--name is empty: give the testbed a name, or leave it out")
			}
			if err := creatable(out); err != nil {
				return err
			}
			conf, allowed, err := switches.load(&model.Testbed{})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), listen)
			defer cancel()
			say := func(text string) { fmt.Fprintln(c.ErrOrStderr(), text) }
			l := learn.New(ctx, learn.Config{Mark: rand.Text(), For: listen, NoForward: noForward, Say: say})
			var refused refusals
			// As equal: a master that is there stays.
			ctrl, err := controller.Listen(controller.Config{Addr: openflow, TLS: conf, Allowed: allowed, Role: of13.RoleEqual, Handler: l, Refused: refused.add})
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("%w; stop netsplit serve there meanwhile", err)
			}
			if err != nil {
				return fmt.Errorf("listen for switches (--openflow): %w", err)
			}
			say(fmt.Sprintf("listening for %v on %s:%s; have every host send something, such as a ping", listen, switches.scheme(), ctrl.Addr()))
			r := l.Wait()
			address := fmt.Sprintf("%s:%s", switches.scheme(), ctrl.Addr())
			err = ctrl.Close()
			return errors.Join(writeLearned(c, r, o, out, address, refused.latest()), err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&openflow, "openflow", "127.0.0.1:6653", "address that switches connect to")
	f.DurationVar(&listen, "for", 30*time.Second, "how long to listen")
	f.StringVarP(&out, "out", "o", "", "write the testbed file here instead of printing it")
	f.StringVar(&o.Name, "name", "learned", "name of the testbed")
	f.StringVar(&o.Exec, "exec", "", "command prefix that runs a command on a host, split as a shell does, with {{.Name}}, {{.IP}}, {{.MAC}}, {{.PortName}}, {{.Port}} and {{.Datapath}} (default: \""+sketch.DefaultExec+"\")")
	f.BoolVar(&o.PortNames, "port-names", false, "write ports by name where the name is unique; such a port is found again under another number")
	f.BoolVar(&noForward, "no-forward", false, "do not make a switch without rules forward; it then forwards nothing")
	switches.registerTrust(f)
	return cmd
}

// creatable refuses a file that is there, and one that cannot be made: before anybody
// has listened, not after.
func creatable(path string) error {
	if path == "" {
		return nil
	}
	switch err := create(path, nil); {
	case errors.Is(err, fs.ErrExist):
		return usage("%s exists: move it away, or name another file", path)
	case err != nil:
		return usage("-o: %w: make its folder first, or name another file", err)
	}
	return os.Remove(path)
}

// create makes a file that was not there: nobody's is replaced. What it could not
// write whole it takes away.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, outputMode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// writeLearned writes the file, or says why there is none. What was heard is not lost,
// nor is the reason where it was interrupted.
func writeLearned(c *cobra.Command, r learn.Result, o sketch.Options, out, address string, refused []string) error {
	up, hosts, links := r.Counts()
	if len(r.Switches) == 0 {
		why := ""
		if len(refused) > 0 {
			why = "; refused were: " + strings.Join(refused, "; ")
		}
		return fmt.Errorf("no switch connected to %s: point one there (ovs-vsctl set-controller BRIDGE %s) and allow OpenFlow 1.3 on it%s", address, address, why)
	}
	f, err := r.File(o)
	if err != nil {
		return err
	}
	failed := func(format string, args ...any) error { return &exitError{exitFailed, fmt.Errorf(format, args...)} }
	if len(f.Testbed.Hosts) == 0 {
		if hosts == 0 {
			return fmt.Errorf("no host sent anything on %d ports of %d switches, so there is nothing to write: have every host send something meanwhile (ping -c1 another's address), or listen longer (--for)", up, len(r.Switches))
		}
		return failed("%d senders, but none that looks like a host:\n%s", hosts, f.Text)
	}
	if _, err := config.Parse(f.Text); err != nil {
		return failed("what was learned is not a valid testbed file: %w; it is\n%s", err, f.Text)
	}
	where := "above"
	if out != "" {
		where = "in " + out
		if err = create(out, f.Text); err != nil {
			err = failed("testbed: %w; what was learned is printed instead", err)
			where = "above"
		}
	}
	if where == "above" {
		if _, perr := c.OutOrStdout().Write(f.Text); perr != nil {
			return failed("%w; what was learned is\n%s", errors.Join(err, perr), f.Text)
		}
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d switches, %d hosts, %d links; %d comments to decide are %s\n", len(r.Switches), len(f.Testbed.Hosts), links, f.Decide, where)
	return err
}

// refusals gathers the connections that did not become a session, and why.
type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) add(_ string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err.Error())
}

// latest are the last few different ones.
func (r *refusals) latest() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return latest(r.all)
}
