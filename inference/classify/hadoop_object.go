package classify

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	ipcDepth  = 8        // objects within one another
	ipcFields = 64       // fields of a message
	ipcList   = respText // longest list that is a field
	ipcMore   = "\u2026" // stands at the end of a list that is cut
)

// ipcReader reads objects in Hadoop's own encoding (org.apache.hadoop.io.ObjectWritable, 0.20.2 and 1.2.1) with all
// that they hold, so that their end is known. unknown says that one was met of which it is not: its class is not known,
// or it claims more than is kept of a message.
type ipcReader struct {
	writable
	secure  bool // version 4: objects hold tokens and keys
	unknown bool
	rest    int // unknown: bytes that were not read
	fields  []model.Field
	depth   int
}

// refuse ends the reading where more bytes would not help.
func (r *ipcReader) refuse() {
	if !r.bad {
		r.bad, r.unknown, r.rest, r.b = true, true, len(r.b), nil
	}
}

// claimed is a number of things that are at least each bytes long.
func (r *ipcReader) claimed(n int64, each int) int {
	if n < 0 || n > hipcKeep/int64(each) {
		r.refuse()
		return 0
	}
	return int(n)
}

func (r *ipcReader) count(each int) int { return r.claimed(int64(r.int32()), each) }

// text reads Text.
func (r *ipcReader) text() string { return string(r.take(r.claimed(r.vlong(), 1))) }

func (r *ipcReader) add(name, value string) {
	if len(r.fields) < ipcFields {
		r.fields = append(r.fields, model.Field{Name: name, Value: pbString([]byte(value))})
	}
}

// long reads WritableUtils.writeString: 4 bytes of length.
func (r *ipcReader) long() string {
	n := r.int32()
	if n == -1 { // null
		return ""
	}
	return string(r.take(r.claimed(int64(n), 1)))
}

// object reads an object with its class, and its value into a field of that name.
func (r *ipcReader) object(name string) {
	if v := r.value(name); !r.bad && v != "" {
		r.add(name, v)
	}
}

// value reads an object and returns it as text; "" if others of its fields tell what it is.
func (r *ipcReader) value(name string) string {
	if r.depth++; r.depth > ipcDepth {
		r.refuse()
	}
	defer func() { r.depth-- }()
	class := r.utf8()
	if r.bad {
		return ""
	}
	switch class {
	case "boolean":
		return strconv.FormatBool(r.uint8() != 0)
	case "byte":
		return strconv.Itoa(int(int8(r.uint8())))
	case "short":
		return strconv.Itoa(int(r.int16()))
	case "char":
		return strconv.Itoa(int(uint16(r.int16())))
	case "int":
		return strconv.Itoa(int(r.int32()))
	case "long":
		return strconv.FormatInt(r.int64(), 10)
	case "float":
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(r.int32()))), 'g', -1, 32)
	case "double":
		return strconv.FormatFloat(math.Float64frombits(uint64(r.int64())), 'g', -1, 64)
	case "void":
		return ""
	case "java.lang.String":
		return r.utf8()
	}
	if strings.HasPrefix(class, "[") {
		return r.array(name)
	}
	short := class[strings.LastIndexByte(class, '.')+1:]
	switch short {
	case "FSConstants$SafeModeAction", "FSConstants$UpgradeAction", "FSConstants$DatanodeReportType":
		return r.utf8()
	}
	class = r.utf8()
	if r.bad {
		return ""
	}
	return r.instance(name, class[strings.LastIndexByte(class, '.')+1:])
}

func (r *ipcReader) array(name string) string {
	n := r.count(2)
	l := &ipcListed{}
	for range n {
		if v := r.value(name); !r.bad {
			l.add(v)
		}
		if r.bad {
			return ""
		}
	}
	return l.String()
}

// ipcListed collects texts, cut where they are long.
type ipcListed struct {
	strings.Builder
	cut bool
}

func (l *ipcListed) add(v string) {
	switch {
	case v == "" || l.cut:
	case l.Len()+len(v) > ipcList-8:
		l.cut = true
		l.WriteString(ipcMore)
	default:
		if l.Len() > 0 {
			l.WriteByte(',')
		}
		l.WriteString(v)
	}
}

// instance reads what an object of a class wrote (its write). Of some, fields NAME.X tell more.
func (r *ipcReader) instance(name, class string) string {
	switch class {
	case "ObjectWritable$NullInstance":
		r.utf8()
		return ""
	case "Block":
		return r.block()
	case "BlockMetaDataInfo":
		b := r.block()
		r.int64()
		return b
	case "BlockRecoveryInfo":
		b := r.block()
		r.uint8() // was recovered when the DataNode started?
		return b
	case "BlockLocalPathInfo":
		b := r.block()
		r.set(name+".path", r.text())
		r.text() // of its sums
		return b
	case "LocatedBlock":
		b, nodes := r.locatedBlock()
		r.set(name+".locs", nodes)
		return b
	case "LocatedBlocks":
		return r.locatedBlocks(name)
	case "DatanodeID", "DatanodeRegistration", "DatanodeInfo":
		return r.datanode(name, class)
	case "BlocksWithLocations":
		return r.blocksWithLocations(name)
	case "FileStatus":
		return r.fileStatus(name, r.text())
	case "HdfsFileStatus":
		return r.fileStatus(name, r.path())
	case "DirectoryListing":
		l := &ipcListed{}
		for range r.count(1) {
			if l.add(r.fileStatus(name, r.path())); r.bad {
				return ""
			}
		}
		r.int32() // left
		return l.String()
	case "FsPermission":
		return fmt.Sprintf("%04o", uint16(r.int16()))
	case "NamespaceInfo":
		r.utf8() // version
		// Release 1.1 put a revision here. The version of the layout is less than 0.
		if r.secure && len(r.b) > 0 && r.b[0] < 0x80 {
			r.utf8()
		}
		r.int32()
		id := r.int32()
		r.take(8 + 4)
		return strconv.Itoa(int(id))
	case "DatanodeCommand$Register":
		return "register" // and writes nothing
	case "DatanodeCommand$Finalize":
		return "finalize"
	case "BlockCommand":
		return r.blockCommand(name)
	case "KeyUpdateCommand":
		a := r.int32()
		r.keys()
		return "action " + strconv.Itoa(int(a))
	case "BalancerBandwidthCommand":
		a := r.int32()
		r.int32() // version
		r.set(name+".bandwidth", strconv.FormatInt(r.int64(), 10))
		return "action " + strconv.Itoa(int(a))
	case "ExportedBlockKeys":
		r.keys()
		return ""
	case "Token":
		return r.token()
	case "Text":
		return r.text()
	case "UpgradeCommand":
		a := r.int32()
		r.take(4 + 2)
		return "action " + strconv.Itoa(int(a))
	case "UpgradeStatusReport":
		v := r.int32()
		r.int16()
		return strconv.Itoa(int(v))
	case "ContentSummary":
		n := r.int64()
		r.take(5 * 8)
		return strconv.FormatInt(n, 10)
	case "CheckpointSignature":
		r.take(4 + 4 + 8)
		edits := r.int64()
		r.int64()
		return strconv.FormatInt(edits, 10)
	}
	r.refuse()
	if hrpcIdent(class) {
		r.add(name+".class", class)
	}
	return ""
}

// fileStatus reads a FileStatus behind its path.
func (r *ipcReader) fileStatus(name, path string) string {
	length := r.int64()
	r.take(1 + 2 + 8 + 8 + 8 + 2) // a folder?, replication, block size, two times, permission
	r.text()                      // owner
	r.text()                      // group
	r.set(name+".length", strconv.FormatInt(length, 10))
	return path
}

// path reads that of a HdfsFileStatus.
func (r *ipcReader) path() string { return string(r.take(r.count(1))) }

// token reads a Token, and returns of what kind it is: the rest is secret.
func (r *ipcReader) token() string {
	r.text() // identifier
	r.text() // password
	kind := r.text()
	r.text() // service
	return kind
}

// keys reads ExportedBlockKeys, and returns nothing.
func (r *ipcReader) keys() {
	r.take(1 + 8 + 8) // in use?, interval, lifetime
	r.key()
	for range r.count(3) {
		if r.key(); r.bad {
			return
		}
	}
}

func (r *ipcReader) key() {
	r.vlong() // id
	r.vlong() // expires
	if n := r.vlong(); n != -1 {
		r.take(r.claimed(n, 1))
	}
}

func (r *ipcReader) set(name, value string) {
	if !r.bad && value != "" {
		r.add(name, value)
	}
}

func (r *ipcReader) block() string {
	id := r.int64()
	r.int64() // length
	return fmt.Sprintf("blk_%d_%d", id, r.int64())
}

// datanode reads a DatanodeID, or a class that has more behind it.
func (r *ipcReader) datanode(name, class string) string {
	node, storage := r.utf8(), r.utf8()
	r.int16() // port of its pages
	switch class {
	case "DatanodeRegistration":
		r.take(2 + 4 + 4 + 8)
		if r.secure {
			r.keys()
		}
		r.set(name+".storageID", storage)
	case "DatanodeInfo":
		r.datanodeInfo()
	}
	return node
}

func (r *ipcReader) datanodeInfo() {
	r.take(2 + 4*8 + 4)
	r.text() // rack
	r.text() // host
	r.text() // what its administrator wants
}

func (r *ipcReader) datanodes() string {
	l := &ipcListed{}
	for range r.count(1) {
		if l.add(r.datanode("", "DatanodeInfo")); r.bad {
			return ""
		}
	}
	return l.String()
}

func (r *ipcReader) locatedBlock() (block, nodes string) {
	if r.secure {
		r.token()
	}
	r.take(1 + 8) // corrupt?, offset
	block = r.block()
	return block, r.datanodes()
}

func (r *ipcReader) locatedBlocks(name string) string {
	length := r.int64()
	r.uint8() // being written?
	l := &ipcListed{}
	for range r.count(1) {
		b, _ := r.locatedBlock()
		if l.add(b); r.bad {
			return ""
		}
	}
	r.set(name+".length", strconv.FormatInt(length, 10))
	return l.String()
}

// blocksWithLocations reads what the balancer is told of a DataNode.
func (r *ipcReader) blocksWithLocations(name string) string {
	l, locs := &ipcListed{}, &ipcListed{}
	for range r.claimed(r.vlong(), 1) {
		l.add(r.block())
		for range r.claimed(r.vlong(), 1) {
			if locs.add(r.text()); r.bad {
				return ""
			}
		}
		if r.bad {
			return ""
		}
	}
	r.set(name+".locs", locs.String())
	return l.String()
}

// blockCommand reads what a DataNode is told to do with blocks.
func (r *ipcReader) blockCommand(name string) string {
	action := r.int32()
	l, to := &ipcListed{}, &ipcListed{}
	for range r.count(1) {
		if l.add(r.block()); r.bad {
			return ""
		}
	}
	for range r.count(4) {
		if to.add(r.datanodes()); r.bad {
			return ""
		}
	}
	r.set(name+".blocks", l.String())
	r.set(name+".targets", to.String())
	return "action " + strconv.Itoa(int(action))
}
