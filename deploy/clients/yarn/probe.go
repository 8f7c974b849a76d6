package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// containersCommand prints what the ResourceManager of this host says of
// containers, one a line: id, state, host. Those of applications that are over
// are not among them.
func containersCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{Use: "containers", Short: "list the containers of the ResourceManager on this host", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return newWeb([]string{"127.0.0.1"}).listContainers(cmd.Context(), out)
		}}
}

func (w *web) listContainers(ctx context.Context, out io.Writer) error {
	if s, err := w.state(ctx, w.rms[0]); err != nil {
		return err
	} else if s != "ACTIVE" { // a standby knows of none; to answer nothing would be an empty list
		return fmt.Errorf("the ResourceManager on this host is %s", s)
	}
	rm := w.rms[0] + ":" + rmPort
	apps, err := w.apps(ctx, w.rms[0])
	if err != nil {
		return err
	}
	var all []string
	for _, a := range apps {
		if a.over() {
			continue
		}
		var v struct {
			AppAttempts struct {
				AppAttempt oneOrMore[struct {
					ID string `json:"appAttemptId"`
				}] `json:"appAttempt"`
			} `json:"appAttempts"`
		}
		if err := w.get(ctx, rm, "/ws/v1/cluster/apps/"+a.ID+"/appattempts", &v); err != nil {
			return err
		}
		if len(v.AppAttempts.AppAttempt) == 0 {
			continue
		}
		last := v.AppAttempts.AppAttempt[len(v.AppAttempts.AppAttempt)-1].ID
		if last == "" {
			return errors.New("the ResourceManager of this release lists no containers (2.8 and later do)")
		}
		var cs struct {
			Container oneOrMore[struct {
				ID    string `json:"containerId"`
				State string `json:"containerState"`
				Node  string `json:"nodeId"`
			}] `json:"container"`
		}
		if err := w.get(ctx, rm, "/ws/v1/cluster/apps/"+a.ID+"/appattempts/"+last+"/containers", &cs); err != nil {
			return err
		}
		for _, k := range cs.Container {
			host, _, _ := strings.Cut(k.Node, ":")
			all = append(all, fmt.Sprintf("%s %s %s", k.ID, k.State, host))
		}
	}
	slices.Sort(all)
	_, err = fmt.Fprintf(out, "containers %d\n%s\n", len(all), strings.Join(all, "\n"))
	return err
}

// clusterCommand prints the ResourceManager that is active and the nodes it has
// as RUNNING: "active n1", "running n3 n4". Without exactly one that is
// active, it says what each is.
func clusterCommand(out io.Writer) *cobra.Command {
	var rms []string
	c := &cobra.Command{Use: "cluster", Short: "say which ResourceManager is active and which nodes it has", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := newWeb(rms)
			var active []string
			for _, rm := range rms {
				s, err := w.state(cmd.Context(), rm)
				if err != nil {
					return err
				}
				if s == "ACTIVE" {
					active = append(active, rm)
				}
			}
			if len(active) != 1 {
				_, err := fmt.Fprintf(out, "%d of %s are active\n", len(active), strings.Join(rms, ", "))
				return err
			}
			nodes, err := w.nodes(cmd.Context(), active[0])
			if err != nil {
				return err
			}
			var running []string
			for _, n := range nodes {
				if n.State == "RUNNING" {
					running = append(running, n.Host)
				}
			}
			slices.Sort(running)
			_, err = fmt.Fprintf(out, "active %s\nrunning %s\n", active[0], strings.Join(running, " "))
			return err
		}}
	c.Flags().StringSliceVar(&rms, "rm", []string{"n1"}, "hosts with a ResourceManager")
	return c
}

// askCommand prints what the ResourceManager on this host answers, if it is
// the active one: a standby would send the question to the other.
func askCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{Use: "ask PATH", Short: "ask the ResourceManager on this host, if it is active", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := newWeb([]string{"127.0.0.1"})
			if s, err := w.state(cmd.Context(), w.rms[0]); err != nil {
				return err
			} else if s != "ACTIVE" { // to answer nothing would be an empty list
				return fmt.Errorf("the ResourceManager on this host is %s", s)
			}
			var raw json.RawMessage
			if err := w.get(cmd.Context(), w.rms[0]+":"+rmPort, args[0], &raw); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out, "%s\n", raw)
			return err
		}}
}

// oneOrMore is a list that Jersey 1 writes as its element if it has only one.
type oneOrMore[T any] []T

func (l *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(l))
	}
	var one *T
	if err := json.Unmarshal(b, &one); err != nil || one == nil {
		return err
	}
	*l = []T{*one}
	return nil
}

// storageCommand prints "ready" when what YARN stands on is there: a NameNode
// with a live DataNode that has left safe mode, a ZooKeeper that serves.
func storageCommand(out io.Writer) *cobra.Command {
	var fs string
	c := &cobra.Command{Use: "storage", Short: "see whether HDFS on this host is ready", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fs != "hdfs" {
				fmt.Fprintln(out, "ready: files are local")
				return nil
			}
			var v struct {
				Beans []struct {
					Live    int    `json:"NumLiveDataNodes"`
					FSState string `json:"FSState"`
				} `json:"beans"`
			}
			if err := newWeb(nil).get(cmd.Context(), "127.0.0.1:9870", "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", &v); err != nil {
				return err
			}
			if len(v.Beans) == 1 && v.Beans[0].Live > 0 && v.Beans[0].FSState == "Operational" {
				fmt.Fprintln(out, "ready: HDFS")
				return nil
			}
			fmt.Fprintf(out, "not yet: %+v\n", v.Beans)
			return nil
		}}
	c.Flags().StringVar(&fs, "fs", "file", "file or hdfs")
	return c
}

// archiveCommand makes the class data archive that every JVM of the target
// maps: it runs one application, so that masters and tasks have written their
// lists of classes too, joins the lists, and lets the JVM dump. Class paths
// with a directory cannot be dumped, so this JVM has the jars only; at run
// time more may follow them.
func archiveCommand() *cobra.Command {
	var java, lib, cache, dir string
	c := &cobra.Command{Use: "archive", Short: "make a class data archive", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			cl := &client{settings: settings{java: java, dir: dir, app: "sleep", maps: 1}}
			j := cl.launch(ctx, 200*time.Millisecond)
			<-j.tool.done
			if j.tool.err != nil {
				return fmt.Errorf("run an application: %w: %s", j.tool.err, j.tool.why())
			}
			return archive(ctx, java, lib, cache)
		}}
	f := c.Flags()
	f.StringVar(&java, "java", "java", "java program")
	f.StringVar(&lib, "lib", "", "directory of the jars")
	f.StringVar(&cache, "cache", ".", "directory of the lists (*.classes) and the archive")
	f.StringVar(&dir, "dir", ".", "directory with conf/tool.opts")
	return c
}

// archiveName is the archive's file name, as in the target files.
const archiveName = "hadoop.jsa"

func archive(ctx context.Context, java, lib, cache string) error {
	files, err := filepath.Glob(filepath.Join(cache, "*.classes"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no lists of classes in %s: the JVMs were to write them (-XX:DumpLoadedClassList)", cache)
	}
	var names []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			// Plain class names: comments, lambda forms and classes of other loaders
			// are not the same in every process, and JVMs that write one file at the
			// same time tear each other's lines, at which the JVM that dumps gives up.
			if line != "" && !strings.ContainsAny(line, "#@ ") {
				names = append(names, line)
			}
		}
	}
	slices.Sort(names)
	list := filepath.Join(cache, "all.list")
	if err := os.WriteFile(list, []byte(strings.Join(slices.Compact(names), "\n")+"\n"), 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, java, "-Xshare:dump", "-Xlog:disable", "-XX:+UseSerialGC", "-XX:SharedClassListFile="+list,
		"-XX:SharedArchiveFile="+filepath.Join(cache, archiveName), "-cp", filepath.Join(lib, "*")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("dump the archive: %w: %.300s", err, out)
	}
	return nil
}
