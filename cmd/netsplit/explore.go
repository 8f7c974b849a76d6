package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
	"netsplit/explorer/prune"
	"netsplit/internal/regular"
	"netsplit/model"
)

// exploreFlags say how a campaign searches, in the words of the papers.
type exploreFlags struct {
	explore, policy string
	only            []string
}

// Words of --explore.
const (
	exploreBrute       = "brute-force" // FATE §4.2.2
	explorePrioritised = "prioritised" // FATE §4.3
	explorePolicies    = "policies"    // PreFail §3.4
)

func (f *exploreFlags) register(c *cobra.Command, spec *wire.CampaignSpec) {
	fs := c.Flags()
	fs.StringVar(&spec.Strategy, "strategy", "cofi", "cofi, random, sequences or clean")
	fs.StringVar(&f.explore, "explore", "", "in place of --strategy: cofi, random, or sequences of faults: "+exploreBrute+", "+explorePrioritised+" or "+explorePolicies)
	fs.IntVar(&spec.Depth, "depth", 0, "sequences, random: the most faults in a run (default 1)")
	fs.StringSliceVar(&spec.Faults, "kinds", nil, "sequences, random: kinds of faults, of "+model.Joined(model.SearchedFaults())+" (default crash,isolate,lose; random: isolate). neat: crash, isolate, and all of the study; disk: all of disks, and crashes before operations on files; torn: the end of a file is gone; crash-all, power-cut-all: of all nodes at once; shift-crash, shift-power-cut: the majority moves, and the node that both have fails")
	fs.StringArrayVar(&f.only, "only", nil, onlyHelp)
	fs.StringSliceVar(&spec.Keys, "keys", nil, "sequences: what makes two points one, of "+model.Joined(model.PointKeys())+" (default: as the target says)")
	fs.StringVar(&f.policy, "policy", "", "sequences: a file of policies, YAML or Starlark (default: all sequences are run)")
}

const onlyHelp = "sequences: keep faults with one of these values of a key, such as type='json *',node=n1; repeat it for more values (keys: fault, id, place and those of points)"

// apply fills in what the flags ask for.
func (f *exploreFlags) apply(c *cobra.Command, spec *wire.CampaignSpec) (err error) {
	if f.explore != "" && c.Flags().Changed("strategy") {
		return usage("--explore stands in place of --strategy: give one of them")
	}
	switch f.explore {
	case "":
	case string(model.StrategyCoFI), string(model.StrategyRandom):
		spec.Strategy = f.explore
	case exploreBrute, explorePrioritised, explorePolicies:
		spec.Strategy = string(model.StrategySequences)
		spec.Prioritised = f.explore == explorePrioritised
		if f.explore == exploreBrute && f.policy != "" {
			return usage("--explore %s runs all sequences: leave out --policy, or use --explore %s", exploreBrute, explorePolicies)
		}
		if f.explore == explorePolicies && f.policy == "" {
			return usage("--explore %s needs --policy, a file of policies", explorePolicies)
		}
	default:
		return usage("--explore %q: use cofi, random, %s, %s or %s", f.explore, exploreBrute, explorePrioritised, explorePolicies)
	}
	if spec.Only, err = onlyOf(f.only); err != nil {
		return err
	}
	if f.policy != "" {
		spec.Policies, err = policyFile(f.policy)
	}
	return err
}

// policyFile reads a file of policies and those that it names: the daemon opens no paths.
func policyFile(path string) (*wire.PolicyFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := &wire.PolicyFile{Name: filepath.Base(path), Text: string(text)}
	_, err = prune.Read(out.Name, text, func(name string) ([]byte, error) {
		b, err := regular.Read(filepath.Dir(path), name)
		if out.Files == nil {
			out.Files = map[string]string{}
		}
		out.Files[name] = string(b)
		return b, err
	})
	if err != nil {
		return nil, usage("%w", err)
	}
	return out, nil
}

// onlyOf reads what --only narrows a search to: KEY=VALUE, several with commas between them.
func onlyOf(flags []string) (map[string][]string, error) {
	var out map[string][]string
	for _, f := range flags {
		for _, part := range strings.Split(f, ",") {
			k, v, ok := strings.Cut(part, "=")
			if !ok || k == "" || v == "" {
				return nil, usage("--only %s: want KEY=VALUE, such as type='json *'", f)
			}
			if out == nil {
				out = map[string][]string{}
			}
			if k = strings.TrimSpace(k); !slices.Contains(out[k], v) {
				out[k] = append(out[k], v)
			}
		}
	}
	if out != nil {
		if _, err := prune.Only(out); err != nil {
			return nil, usage("--%v", err)
		}
	}
	return out, nil
}
