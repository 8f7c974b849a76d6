package main

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"netsplit/controller"
	"netsplit/model"
)

// switchFlags say which switches the daemon speaks with, and how.
type switchFlags struct {
	cert, key, ca string
	allowed       []string
	role          string
}

func (s *switchFlags) register(f *pflag.FlagSet) {
	s.registerTrust(f)
	f.StringVar(&s.role, "role", roleMaster, "role at every switch: master (other masters become slaves) or equal (beside another master)")
}

// registerTrust leaves out the role, for commands that are always equal.
func (s *switchFlags) registerTrust(f *pflag.FlagSet) {
	s.role = roleMaster
	f.StringVar(&s.cert, "tls-cert", "", "netsplit's certificate (PEM); switches then connect by TLS (ssl: in Open vSwitch)")
	f.StringVar(&s.key, "tls-key", "", "key of --tls-cert (PEM)")
	f.StringVar(&s.ca, "tls-ca", "", "CA certificates that sign the switches' certificates (PEM)")
	f.StringSliceVar(&s.allowed, "allowed-datapath", nil, "datapath ids that may connect, hex (default: all)")
}

// specified says whether any of the flags was used.
func (s *switchFlags) specified() bool {
	return s.cert+s.key+s.ca != "" || len(s.allowed) > 0 || s.role != roleMaster
}

const (
	roleMaster = "master"
	roleEqual  = "equal"
)

// scheme is what a switch's controller setting begins with.
func (s *switchFlags) scheme() string {
	if s.cert != "" {
		return "ssl"
	}
	return "tcp"
}

// load reads the files and checks the flags, for a testbed (nil: labs on this
// machine, to which none of them apply).
func (s *switchFlags) load(tb *model.Testbed) (conf *tls.Config, allowed []model.DatapathID, err error) {
	specified := 0
	for _, f := range []string{s.cert, s.key, s.ca} {
		if f != "" {
			specified++
		}
	}
	switch {
	case specified > 0 && specified < 3:
		return nil, nil, usage("--tls-cert, --tls-key and --tls-ca go together, because both sides show a certificate")
	case s.role != roleMaster && s.role != roleEqual:
		return nil, nil, usage("--role %q: use %s or %s", s.role, roleMaster, roleEqual)
	case tb == nil && (specified > 0 || len(s.allowed) > 0):
		return nil, nil, usage("TLS and --allowed-datapath need --testbed: labs connect over loopback, with datapath ids of their own")
	}
	for _, text := range s.allowed {
		id, err := model.ParseDatapathID(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, usage("--allowed-datapath: %w", err)
		}
		allowed = append(allowed, id)
	}
	if len(allowed) > 0 {
		for _, h := range tb.Hosts {
			if !slices.Contains(allowed, h.Datapath) {
				return nil, nil, usage("host %s is on datapath %s, which --allowed-datapath leaves out: add it", h.Name, h.Datapath)
			}
		}
	}
	if specified > 0 {
		if conf, err = controller.LoadTLS(s.cert, s.key, s.ca); err != nil {
			return nil, nil, fmt.Errorf("TLS for switches: %w", err)
		}
	}
	return conf, allowed, nil
}
