package classify_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netsplit/inference/classify"
	"netsplit/model"
)

var (
	remark    = regexp.MustCompile(`\([^)]*\)`)
	fieldName = regexp.MustCompile("`([^`]+)`")
)

// documented reads the two tables of docs/fields.md: patterns of fields by reader. A row
// without a reader is of the reader above it. The first table also says what a field
// means and whose state it tells.
func documented(t *testing.T) map[string][]*regexp.Regexp {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "fields.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*regexp.Regexp{}
	var readers []string
	for _, line := range strings.Split(string(b), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 && len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "| reader |") {
			continue
		}
		if s := strings.TrimSpace(cells[1]); s != "" {
			readers = strings.Split(strings.ReplaceAll(strings.TrimSpace(remark.ReplaceAllString(s, "")), "`", ""), ", ")
		}
		if len(cells) == 6 && (strings.TrimSpace(cells[3]) == "" || strings.TrimSpace(cells[4]) == "") {
			t.Errorf("no meaning, or not whose: %s", line)
		}
		fields := fieldName.FindAllStringSubmatch(remark.ReplaceAllString(cells[2], ""), -1)
		if len(fields) == 0 {
			t.Errorf("no field: %s", line)
		}
		for _, reader := range readers {
			if reader != "all" && !slices.Contains(classify.Names(), reader) {
				t.Errorf("no reader %q: %s", reader, line)
			}
			for _, f := range fields {
				pattern := strings.ReplaceAll(regexp.QuoteMeta(f[1]), `\*`, ".*")
				out[reader] = append(out[reader], regexp.MustCompile("^"+pattern+"$"))
			}
		}
	}
	return out
}

// readerOf tells the reader of a message of the captures by its type.
func readerOf(m model.Message) string {
	words := strings.Fields(m.Type)
	switch words[0] {
	case "cassandra", "cql", "thrift", "http", "amqp", "erlang":
		return words[0]
	case "rpc":
		return classify.NameHadoopRPC
	case "hdfs":
		return classify.NameHDFSData
	case "zk":
		switch words[1] {
		case "fle", "zab":
			return "zookeeper-" + words[1]
		}
		return classify.NameZooKeeper
	}
	return "" // connections, and what the fallback reads
}

// TestFieldsAreDocumented: an author of a target finds every field that a reader
// of a system emits in the committed captures, with whose metadata it is.
func TestFieldsAreDocumented(t *testing.T) {
	table := documented(t)
	captures := map[string][]model.Message{}
	names := func(folder string) []string {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.pcap"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no captures in testdata/%s: %v", folder, err)
		}
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		return files
	}
	for _, n := range names("cassandra") {
		captures["cassandra/"+n] = cassMessages(t, n)
	}
	for _, n := range names("hadoop") {
		captures["hadoop/"+n] = hadoopRead(t, strings.TrimSuffix(n, ".pcap"))
	}
	captures["hdfs020"], captures["hdfs020/calls"] = hdfs020Read(t), hadoop020Read(t)
	for _, n := range names("zookeeper") {
		captures["zookeeper/"+n] = messagesOf(t, framesOf(t, "zookeeper", n), map[uint16]string{
			2181: classify.NameZooKeeper, 2888: classify.NameZooKeeperZAB, 3888: classify.NameZooKeeperFLE})
	}
	for _, n := range names("rabbitmq") {
		captures["rabbitmq/"+n] = rabbitRead(t, n)
	}
	seen := map[string]bool{}
	readers := map[string]bool{}
	for name, all := range captures {
		for _, m := range all {
			reader := readerOf(m)
			if name == "hdfs020" { // types as hdfs-data has them
				reader = classify.NameHDFSWritable
			}
			if name == "hdfs020/calls" {
				reader = classify.NameHadoopWritable
			}
			if reader == "" {
				continue
			}
			readers[reader] = true
			for _, f := range m.Fields {
				key := reader + " " + f.Name
				if seen[key] {
					continue
				}
				seen[key] = true
				if !slices.ContainsFunc(slices.Concat(table[reader], table["all"]), func(re *regexp.Regexp) bool { return re.MatchString(f.Name) }) {
					t.Errorf("field %s of reader %s (%s in %s) is not in docs/fields.md: say what it means and whose metadata it is", f.Name, reader, m.Type, name)
				}
			}
		}
	}
	for _, want := range []string{"cassandra", "cql", "thrift", classify.NameHadoopRPC, classify.NameHDFSData, classify.NameZooKeeper, classify.NameZooKeeperFLE, classify.NameZooKeeperZAB,
		classify.NameHDFSWritable, classify.NameHadoopWritable, classify.NameAMQP, classify.NameErlang} {
		if !readers[want] {
			t.Errorf("no capture has messages of %s", want)
		}
	}
	if len(seen) < 400 {
		t.Errorf("%d fields in all the captures", len(seen))
	}
}
