package classify

import (
	"bytes"
	"crypto/md5"
	"slices"
	"strings"

	"netsplit/model"
)

// cassTables are the tables whose id is made of their name, from 3.0 on
// (CFMetaData.generateLegacyCfId, TableId.forSystemTable): a name UUID of
// keyspace and table, as java.util.UUID.nameUUIDFromBytes makes it.
var cassTables = func() map[[16]byte]string {
	ids := map[[16]byte]string{}
	for _, name := range strings.Fields(`
system_schema.keyspaces system_schema.tables system_schema.columns system_schema.dropped_columns
system_schema.triggers system_schema.views system_schema.types system_schema.functions
system_schema.aggregates system_schema.indexes system_schema.column_masks
system.paxos system.batches system.local system.peers system.peers_v2
system_auth.roles system_auth.role_members system_auth.role_permissions system_auth.resource_role_permissons_index
system_auth.network_permissions system_auth.cidr_permissions system_auth.cidr_groups system_auth.identity_to_role
system_distributed.repair_history system_distributed.parent_repair_history system_distributed.view_build_status
system_distributed.partition_denylist system_traces.sessions system_traces.events`) {
		id := md5.Sum([]byte(strings.Replace(name, ".", "", 1)))
		id[6], id[8] = id[6]&0x0f|0x30, id[8]&0x3f|0x80
		ids[id] = name
	}
	return ids
}()

// cassTable reads a table's id: its name where the id tells it, else the id.
func cassTable(r *cassReader) []model.Field {
	b := r.bytes(16)
	if b == nil {
		return nil
	}
	if name, ok := cassTables[[16]byte(b)]; ok {
		return cassFields("table", name)
	}
	r.off -= 16
	return cassFields("table", r.uuid())
}

// cassSchema reads schema mutations (from 3.0 on): keyspaces, the names of the
// keyspaces they are about, sorted; tables, a line "KEYSPACE.TABLE" for each
// change of a table, the first one of a mutation that has several. Mutations
// have no lengths: their beginnings are found by the ids of the schema's
// tables.
func cassSchema(b []byte) []model.Field {
	var keyspaces, tables []string
	for i := 0; i+16 < len(b); {
		name, ok := cassTables[[16]byte(b[i:i+16])]
		if !ok || !strings.HasPrefix(name, "system_schema.") {
			i++
			continue
		}
		i += 16
		r := &cassReader{b: b, off: i}
		ks := string(r.bytes(r.vintLen()))
		if r.short || !cassName(ks) {
			continue
		}
		keyspaces = append(keyspaces, ks)
		if name == "system_schema.tables" || name == "system_schema.views" {
			if t := cassFirstRow(r); cassName(t) {
				tables = append(tables, ks+"."+t)
			}
		}
	}
	slices.Sort(keyspaces)
	keyspaces = slices.Compact(keyspaces)
	slices.Sort(tables)
	tables = slices.Compact(tables)
	var f []model.Field
	if len(keyspaces) > 0 {
		f = append(f, model.Field{Name: "keyspaces", Value: cut(strings.Join(keyspaces, " "), 1<<10)})
	}
	return append(f, cassLines("tables", tables)...)
}

// cassName tells a keyspace's or table's name (at most 222 letters, digits and
// underscores, SchemaConstants.PATTERN_WORD_CHARS).
func cassName(s string) bool {
	if s == "" || len(s) > 222 {
		return false
	}
	for i := range len(s) {
		if !cqlWordByte(s[i]) {
			return false
		}
	}
	return true
}

// cassFirstRow reads the first clustering value of the first row of a partition,
// behind its key (UnfilteredRowIteratorSerializer, SerializationHeader,
// UnfilteredSerializer, ClusteringPrefix): "" if there is none.
func cassFirstRow(r *cassReader) string {
	flags := r.u8()
	if flags&(0x01|0x08) != 0 { // empty, or a static row
		return ""
	}
	r.vint()
	r.vint()
	r.vint()
	for n := r.vint(); n > 0 && !r.short; n-- { // regular columns
		r.bytes(r.vintLen())
	}
	if flags&0x04 != 0 { // deletion of the partition
		r.vint()
		r.vint()
	}
	if flags&0x10 != 0 { // estimate of rows
		r.vint()
	}
	row := r.u8()
	if row&0x01 != 0 { // end of the partition
		return ""
	}
	if row&0x80 != 0 {
		r.u8()
	}
	if row&0x02 != 0 { // bound of a range tombstone
		r.u8()
		if n := r.u16(); n == 0 {
			return ""
		}
	}
	if header := r.vint(); header&3 != 0 { // null or empty
		return ""
	}
	s := string(r.bytes(r.vintLen()))
	if r.short {
		return ""
	}
	return s
}

// cassData reads which table a mutation, read or Paxos message is about, and a
// ballot. Before 3.0 the keyspace is told by name.
func cassData(verb string, b []byte, version int) []model.Field {
	r := &cassReader{b: b}
	if version > 0 && version < 10 {
		return cassOldData(verb, r, version)
	}
	switch verb {
	case "MUTATION", "MUTATION_REQ", "READ_REPAIR", "READ_REPAIR_REQ", "COUNTER_MUTATION", "COUNTER_MUTATION_REQ":
		if r.vint() > 0 {
			return cassTable(r)
		}
	case "READ", "READ_REQ", "RANGE_SLICE", "RANGE_REQ":
		r.u8()
		if r.u8()&1 != 0 {
			r.vint()
		}
		return cassTable(r)
	case "PAXOS_PREPARE", "PAXOS_PREPARE_REQ", "PAXOS_PROPOSE", "PAXOS_PROPOSE_REQ", "PAXOS_COMMIT", "PAXOS_COMMIT_REQ":
		return append(cassFields("ballot", r.uuid()), cassTable(r)...)
	}
	return nil
}

// cassOldData reads the keyspace of RowMutation, and of 0.7 to 1.1 the column
// family of ReadCommand and RangeSliceCommand.
func cassOldData(verb string, r *cassReader, version int) []model.Field {
	keyspace, table := "", ""
	switch {
	case verb == "MUTATION" || verb == "READ_REPAIR":
		keyspace = r.utf()
	case version >= 6:
		return nil
	case verb == "READ":
		r.bytes(2) // kind, digest only
		keyspace = r.utf()
		r.bytes(int(r.u16())) // key
		table = r.utf()
	case verb == "RANGE_SLICE":
		keyspace, table = r.utf(), r.utf()
	}
	if r.short || !cassName(keyspace) {
		return nil
	}
	if !cassName(table) {
		return cassFields("keyspace", keyspace)
	}
	return cassFields("keyspace", keyspace, "table", keyspace+"."+table)
}

// cassMigration stands before the kind of a migration of 0.7 to 1.0
// (db.migration.Migration.serialize, in Avro's encoding).
var cassMigration = []byte("org.apache.cassandra.db.migration.")

// cassMigrations reads the schema changes of 0.7 to 1.0: migrations, a line
// "AddColumnFamily KEYSPACE.TABLE" or "AddKeyspace KEYSPACE" for each.
func cassMigrations(b []byte) []model.Field {
	var lines []string
	for {
		_, rest, ok := bytes.Cut(b, cassMigration)
		if !ok {
			return cassLines("migrations", lines)
		}
		n := 0
		for n < len(rest) && n < maxWord && isLetter(rest[n]) {
			n++
		}
		kind := string(rest[:n])
		b = rest[n:]
		if kind == "" || kind[0] >= 'a' { // a namespace
			continue
		}
		r := &cassReader{b: b}
		r.u8() // which kind it is, once more
		line := kind
		if ks := r.avro(); cassName(ks) {
			line += " " + ks
			if strings.HasSuffix(kind, "ColumnFamily") {
				if cf := r.avro(); cassName(cf) {
					line += "." + cf
				}
			}
		}
		lines = append(lines, line)
	}
}

// avro reads a string of Avro's binary encoding: a zigzag length of at most two
// bytes, low bits first.
func (r *cassReader) avro() string {
	n := int(r.u8())
	if n&0x80 != 0 {
		n = n&0x7f | int(r.u8())<<7
	}
	return string(r.bytes(n >> 1))
}
