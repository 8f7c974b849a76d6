package main

import (
	"os"

	"github.com/spf13/cobra"

	"netsplit/model"
	"netsplit/sut/nodes"
)

func nodeCommand() *cobra.Command {
	c := &cobra.Command{Use: "node", Short: "in a workload: start, stop, kill, pause or resume a server process of the run",
		Long: "In a workload: acts on a server process of the run. PROCESS and HOST are names of the target file.\n" +
			"It returns when that is done. It finds the run by the environment variable " + nodes.ControlEnv + ", which netsplit sets for workloads.\n" +
			"Exit status: 1 if the server is as asked for already, so nothing was done: a fault of the search may have stopped it."}
	for verb, short := range map[model.NodeVerb]string{
		model.NodeStart:  "start a server that does not run, without waiting until it is ready",
		model.NodeStop:   "stop a server: SIGTERM, after a while SIGKILL",
		model.NodeKill:   "crash a server: SIGKILL",
		model.NodePause:  "pause a server: SIGSTOP",
		model.NodeResume: "resume a paused server: SIGCONT",
	} {
		c.AddCommand(&cobra.Command{Use: string(verb) + " PROCESS HOST", Short: short, Args: exactArgs(2, "a process of the target and its host"),
			RunE: func(_ *cobra.Command, args []string) error {
				socket := os.Getenv(nodes.ControlEnv)
				if socket == "" {
					return usage("%s is not set: this command is for workloads of a run", nodes.ControlEnv)
				}
				return nodes.AskRun(socket, model.NodeAction{Verb: verb, Process: args[0], Host: model.NodeID(args[1])})
			}})
	}
	return c
}
