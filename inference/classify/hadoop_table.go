package classify

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// hadoopText was written by testdata/hadoop/HadoopProtos.java from the
// descriptors inside the jars of Hadoop 2.7.1, 2.10.0, 3.2.0, 3.3.0 and 3.4.1.
// Between them no field number changes its meaning or its wire type: one table
// serves all.
//
//go:embed hadoop_table.txt
var hadoopText string

var hadoopTable = withShortForms(parsePBTable(hadoopText))

func withShortForms(t *pbTable) *pbTable {
	form := func(name string, short pbShort, said ...protowire.Number) {
		p := t.types[name]
		if p == nil {
			panic("protobuf table: no message " + name)
		}
		p.short, p.said = short, said
		p.whole = !slices.ContainsFunc(p.fields, func(f pbField) bool { return !slices.Contains(said, f.num) })
	}
	of := func(num protowire.Number) pbShort { // the form of a part
		return func(m pbMessage) string {
			o, ok := m.last(num)
			if !ok {
				return ""
			}
			return short(o)
		}
	}
	form("hdfs.BlockProto", func(m pbMessage) string { return hdfsBlock(m, 1, 2) }, 1, 2)
	form("hdfs.ExtendedBlockProto", func(m pbMessage) string { return hdfsBlock(m, 2, 3) }, 2, 3)
	form("hdfs.DatanodeIDProto", func(m pbMessage) string { // DatanodeID.getXferAddr
		if m.text(1) == "" {
			return ""
		}
		return m.text(1) + ":" + m.text(4)
	}, 1, 4)
	form("hdfs.DatanodeInfoProto", of(1)) // its parts are those of its first field
	form("yarn.NodeIdProto", func(m pbMessage) string { return m.text(1) + ":" + m.text(2) }, 1, 2)
	form("yarn.ApplicationIdProto", func(m pbMessage) string { return "application" + yarnApp(m) }, 1, 2)
	form("yarn.ApplicationAttemptIdProto", func(m pbMessage) string {
		app, _ := m.sub(1)
		return fmt.Sprintf("appattempt%s_%06d", yarnApp(app), m.num(2))
	}, 1, 2)
	form("yarn.ContainerIdProto", yarnContainer, 1, 2, 3)
	form("mapreduce.JobIdProto", func(m pbMessage) string { return "job" + mrJob(m) }, 1, 2)
	form("mapreduce.TaskIdProto", func(m pbMessage) string { return "task" + mrTask(m) }, 1, 2, 3)
	form("mapreduce.TaskAttemptIdProto", func(m pbMessage) string {
		task, _ := m.sub(1)
		return fmt.Sprintf("attempt%s_%d", mrTask(task), m.num(2))
	}, 1, 2)
	form("yarn.StartContainerRequestProto", func(m pbMessage) string { // what is in its token says which
		token, _ := m.sub(2)
		id, _ := token.last(1)
		c, _ := t.types["yarn.ContainerTokenIdentifierProto"].decode(id.b, id.cut).sub(1)
		if c.t == nil {
			return ""
		}
		return yarnContainer(c)
	})
	hide(t)
	for num, show := range map[protowire.Number]func([]pbOcc, bool) string{2: hdfsLongs, 4: hdfsBuffers} {
		t.types["hdfs.datanode.StorageBlockReportProto"].field(num).show = show
	}
	return t
}

// hadoopHidden are the types of fields that say nothing about the state of a
// node: settings of containers, counters, secrets, and what stands twice
// (resource_value_map).
var hadoopHidden = []string{
	"common.TokenProto", "yarn.MasterKeyProto", "hdfs.ExportedBlockKeysProto",
	"yarn.ResourceInformationProto", "yarn.ResourceTypeInfoProto", "yarn.ResourceUtilizationProto", "yarn.ApplicationACLMapProto",
	"yarn.StringLocalResourceMapProto", "yarn.StringStringMapProto", "yarn.StringBytesMapProto", "yarn.StringLongMapProto",
	"mapreduce.StringCounterGroupMapProto",
}

func hide(t *pbTable) {
	for _, p := range t.types {
		for i := range p.fields {
			f := &p.fields[i]
			f.hidden = f.typ != nil && slices.Contains(hadoopHidden, f.typ.name) || f.name == "challenge"
		}
	}
}

// hdfsReplica is HdfsServerConstants.ReplicaState, the state of a replica.
var hdfsReplica = []string{"FINALIZED", "RBW", "RWR", "RUR", "TEMPORARY"}

// hdfsReplicas shows the blocks of a report: finalized ones as blk_ID_STAMP,
// others with their state behind a slash.
type hdfsReplicas struct {
	b strings.Builder
	n int
}

func (r *hdfsReplicas) add(id int64, stamp, state uint64) bool {
	if r.b.Len() > pbLine/2 {
		return false
	}
	if r.n++; r.n > 1 {
		r.b.WriteByte(',')
	}
	fmt.Fprintf(&r.b, "blk_%d_%d", id, stamp)
	if state > 0 && state < uint64(len(hdfsReplica)) {
		r.b.WriteString("/" + hdfsReplica[state])
	}
	return true
}

func (r *hdfsReplicas) done(more bool) string {
	if more {
		r.b.WriteString("…")
	}
	return r.b.String()
}

// hdfsLongs reads BlockListAsLongs.LongsDecoder (2.7 and before, and what goes to
// such NameNodes): the number of finalized blocks and of others, three numbers
// for each of the former, three of -1, four for each of the latter.
func hdfsLongs(os []pbOcc, more bool) string {
	var r hdfsReplicas
	if len(os) < 2 {
		return r.done(more)
	}
	finalized := os[0].num
	os = os[2:]
	for i := uint64(0); len(os) >= 3; i++ {
		n, state := 3, uint64(0)
		if i == finalized {
			os = os[3:]
			continue
		}
		if i > finalized {
			if len(os) < 4 {
				break
			}
			n, state = 4, os[3].num
		}
		if !r.add(int64(os[0].num), os[2].num, state) {
			return r.done(true)
		}
		os = os[n:]
	}
	return r.done(more)
}

// hdfsBuffers reads BlockListAsLongs.BufferDecoder (later releases): id, length,
// stamp and state of each block.
func hdfsBuffers(os []pbOcc, more bool) string {
	var r hdfsReplicas
	for _, o := range os {
		b := o.b
		for len(b) > 0 {
			var v [4]uint64
			for i := range v {
				var k int
				if v[i], k = protowire.ConsumeVarint(b); k < 0 {
					return r.done(true)
				}
				b = b[k:]
			}
			if !r.add(protowire.DecodeZigZag(v[0]), v[2], v[3]) {
				return r.done(true)
			}
		}
	}
	return r.done(more)
}

// hdfsBlock is org.apache.hadoop.hdfs.protocol.Block.toString.
func hdfsBlock(m pbMessage, id, stamp protowire.Number) string {
	if _, ok := m.last(id); !ok {
		return ""
	}
	return fmt.Sprintf("blk_%d_%d", int64(m.num(id)), m.num(stamp))
}

// yarnApp is what ApplicationId and all that is derived from it have in common.
func yarnApp(m pbMessage) string {
	return fmt.Sprintf("_%d_%04d", int64(m.num(2)), int32(m.num(1)))
}

// yarnContainer is ContainerId.toString: the epoch of the ResourceManager is
// in the id above bit 40.
func yarnContainer(m pbMessage) string {
	attempt, ok := m.sub(2)
	if !ok {
		return ""
	}
	app, _ := attempt.sub(1)
	id, epoch := m.num(3)&(1<<40-1), ""
	if e := m.num(3) >> 40; e > 0 {
		epoch = fmt.Sprintf("_e%02d", e)
	}
	return fmt.Sprintf("container%s%s_%02d_%06d", epoch, yarnApp(app), attempt.num(2), id)
}

func mrJob(m pbMessage) string {
	app, _ := m.sub(1)
	return fmt.Sprintf("_%d_%04d", int64(app.num(2)), int32(m.num(2)))
}

func mrTask(m pbMessage) string {
	job, _ := m.sub(1)
	kind := "m"
	if strings.HasPrefix(m.text(2), "REDUCE") {
		kind = "r"
	}
	return fmt.Sprintf("%s_%s_%06d", mrJob(job), kind, int32(m.num(3)))
}
