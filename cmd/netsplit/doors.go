package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/pflag"

	"netsplit/api"
	"netsplit/api/client"
	"netsplit/api/trust"
)

// doorFlags say where the API of a daemon is reached, and with what.
type doorFlags struct {
	listen, socket, cert, key, tokenFile string
	insecure                             bool
}

func (f *doorFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.listen, "listen", fmt.Sprintf("127.0.0.1:%d", client.DefaultPort), "address of the REST API; TLS unless it is loopback")
	s.StringVar(&f.socket, "socket", "", "Unix socket for commands of this user and root, in a folder of mode 700 (default "+trust.Path(client.DefaultPort)+", with the port of --listen)")
	s.StringVar(&f.cert, "api-cert", "", "certificate of the API (PEM); default on addresses other than loopback: one that is made and kept beside the store")
	s.StringVar(&f.key, "api-key", "", "key of --api-cert (PEM)")
	s.BoolVar(&f.insecure, "insecure", false, "speak plain HTTP on an address other than loopback")
	s.StringVar(&f.tokenFile, "token-file", "", "file, mode 600, with a token that allows everything (or set "+trust.TokenEnv+")")
}

// doors are where a daemon is reached.
type doors struct {
	tcp    *api.Listener
	socket net.Listener
}

// check says what is wrong with the files and addresses that are named.
func (f doorFlags) check() error {
	conf := api.ListenConfig{Addr: f.listen, Cert: f.cert, Key: f.key, Dir: accessDir, Insecure: f.insecure}
	if err := conf.Check(); err != nil {
		return err
	}
	if f.tokenFile == "" { // the one of the environment is not the file's
		return nil
	}
	_, err := trust.LoadToken(f.tokenFile)
	return err
}

// accessDir is the folder beside the store with certificate and tokens.
const accessDir = "access"

// open opens both; the TCP port first, which gives the socket its name.
func (f doorFlags) open(ctx context.Context, runsDir, store string, log *slog.Logger) (*doors, *api.Access, error) {
	d := &doors{}
	token, err := trust.LoadToken(f.tokenFile)
	if err != nil {
		return d, nil, err
	}
	dir := filepath.Join(runsDir, accessDir)
	if store != "" {
		dir = filepath.Join(filepath.Dir(store), accessDir)
	}
	if err := trust.Private(dir); err != nil {
		return d, nil, fmt.Errorf("folder of certificate and tokens: %w", err)
	}
	if d.tcp, err = api.Listen(ctx, api.ListenConfig{Addr: f.listen, Cert: f.cert, Key: f.key, Dir: dir, Insecure: f.insecure, Log: log}); err != nil {
		return d, nil, err
	}
	path := f.socket
	if path == "" {
		path = trust.Path(d.tcp.Port())
	}
	if path, err = filepath.Abs(path); err != nil {
		return d, nil, err
	}
	if d.socket, err = trust.Listen(path); err != nil {
		return d, nil, err
	}
	access, err := api.NewAccess(token, dir, d.tcp.URL)
	return d, access, err
}

// commands is what a command finds the daemon by; "" where it is in this process.
func (d *doors) commands() string {
	if d.socket == nil {
		return ""
	}
	return "unix:" + d.socket.Addr().String()
}

// String tells whoever starts a daemon where it is.
func (d *doors) String() string {
	s := fmt.Sprintf("%s and %s", d.tcp.URL, d.commands())
	if d.tcp.Fingerprint == "" {
		return s
	}
	made := ""
	if d.tcp.Made {
		made = ", made by netsplit"
	}
	return s + fmt.Sprintf(" (certificate sha256:%s%s)", d.tcp.Fingerprint, made)
}

func (d *doors) close() error {
	var errs []error
	if d.tcp != nil {
		errs = append(errs, d.tcp.Close())
	}
	if d.socket != nil {
		errs = append(errs, d.socket.Close())
	}
	return errors.Join(errs...)
}
