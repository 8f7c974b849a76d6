package classify

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"netsplit/model"
)

const hrpcArgs = 16 // arguments of a call in Hadoop's own encoding that are read

// writable reads Hadoop's own encoding of objects (org.apache.hadoop.io). Once
// bytes are missing, bad is set and all else reads as zero.
type writable struct {
	b   []byte
	bad bool
}

func (w *writable) take(n int) []byte {
	if n < 0 || n > len(w.b) {
		w.bad = true
		w.b = nil
		return nil
	}
	v := w.b[:n]
	w.b = w.b[n:]
	return v
}

func (w *writable) uint8() byte {
	if b := w.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (w *writable) int16() int16 {
	if b := w.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *writable) int32() int32 {
	if b := w.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (w *writable) int64() int64 {
	if b := w.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// utf8 reads UTF8.writeString: 2 bytes of length.
func (w *writable) utf8() string { return string(w.take(int(uint16(w.int16())))) }

// text reads Text, and WritableUtils.writeEnum: a variable length.
func (w *writable) text() string {
	n := w.vlong()
	if n < 0 || n > math.MaxInt32 {
		w.bad = true
		return ""
	}
	return string(w.take(int(n)))
}

// vlong reads WritableUtils.writeVLong.
func (w *writable) vlong() int64 {
	first := int8(w.uint8())
	if first >= -112 {
		return int64(first)
	}
	n, neg := int(-112-int(first)), false
	if first < -120 {
		n, neg = int(-120-int(first)), true
	}
	v := int64(0)
	for _, c := range w.take(n) {
		v = v<<8 | int64(c)
	}
	if neg {
		return ^v
	}
	return v
}

// hrpcInvocation reads WritableRpcEngine.Invocation.
func hrpcInvocation(b []byte) (name, protocol string, fields []model.Field) {
	w := &writable{b: b}
	w.int64() // version of the engine
	protocol = w.utf8()
	name = w.utf8()
	w.int64() // version of the protocol
	w.int32() // hash of its methods
	n := int(w.int32())
	if w.bad {
		return name, protocol, nil
	}
	for i := range min(max(n, 0), hrpcArgs) {
		fs, ok := w.object("arg" + strconv.Itoa(i))
		fields = append(fields, fs...)
		if !ok { // what follows an object of unknown length cannot be found
			break
		}
	}
	return name, protocol, fields
}

// hrpcValue reads what a call of the WritableRpcEngine returned.
func hrpcValue(b []byte) []model.Field {
	w := &writable{b: b}
	fields, _ := w.object("value")
	return fields
}

// object reads ObjectWritable. ok is false where its end is not known.
func (w *writable) object(name string) (fields []model.Field, ok bool) {
	class := w.utf8()
	v := ""
	switch class {
	case "boolean":
		v = strconv.FormatBool(w.uint8() != 0)
	case "byte":
		v = strconv.Itoa(int(int8(w.uint8())))
	case "short":
		v = strconv.Itoa(int(w.int16()))
	case "char":
		v = strconv.Itoa(int(uint16(w.int16())))
	case "int":
		v = strconv.Itoa(int(w.int32()))
	case "long":
		v = strconv.FormatInt(w.int64(), 10)
	case "float":
		v = strconv.FormatFloat(float64(math.Float32frombits(uint32(w.int32()))), 'g', -1, 32)
	case "double":
		v = strconv.FormatFloat(math.Float64frombits(uint64(w.int64())), 'g', -1, 64)
	case "void":
		return nil, !w.bad
	case "java.lang.String":
		v = pbString([]byte(w.utf8()))
	default:
		return w.instance(name)
	}
	if w.bad {
		return nil, false
	}
	return []model.Field{{Name: name, Value: v}}, true
}

func (w *writable) instance(name string) (fields []model.Field, ok bool) {
	class := w.utf8()
	if w.bad {
		return nil, false
	}
	short := class[strings.LastIndexByte(class, '.')+1:]
	switch short {
	case "TaskAttemptID":
		id := w.attempt()
		if w.bad {
			return nil, false
		}
		return []model.Field{{Name: "task", Value: id}}, true
	case "JobID":
		job := "job" + w.job()
		if w.bad {
			return nil, false
		}
		return []model.Field{{Name: "job", Value: job}}, true
	case "MapTaskStatus", "ReduceTaskStatus":
		return w.taskStatus(), false
	case "JvmContext":
		jvm := w.jvm()
		if w.bad {
			return nil, false
		}
		return []model.Field{{Name: "jvm", Value: jvm}}, true
	case "AMFeedback": // 3.x answers statusUpdate with it
		found := w.uint8() != 0
		w.uint8() // preemption
		if w.bad {
			return nil, false
		}
		return []model.Field{{Name: "found", Value: strconv.FormatBool(found)}}, true
	case "JvmTask":
		return w.jvmTask(), false
	case "ObjectWritable$NullInstance":
		return nil, false
	}
	if hrpcIdent(short) {
		fields = []model.Field{{Name: name + ".class", Value: short}}
	}
	return fields, false
}

// attempt reads org.apache.hadoop.mapreduce.TaskAttemptID.
func (w *writable) attempt() string {
	attempt, task := w.int32(), w.int32()
	job := w.job()
	kind := "r"
	if w.text() == "MAP" {
		kind = "m"
	}
	return fmt.Sprintf("attempt%s_%s_%06d_%d", job, kind, task, attempt)
}

// job reads org.apache.hadoop.mapreduce.JobID.
func (w *writable) job() string {
	id := w.int32()
	return fmt.Sprintf("_%s_%04d", pbString([]byte(w.text())), id)
}

// jvm reads org.apache.hadoop.mapred.JvmContext. The number of the JVM is that
// of its container.
func (w *writable) jvm() string {
	id := w.int64()
	job := w.job()
	kind := "r"
	if w.uint8() != 0 {
		kind = "m"
	}
	w.text() // process
	return fmt.Sprintf("jvm%s_%s_%06d", job, kind, id)
}

// jvmTask reads the start of org.apache.hadoop.mapred.JvmTask: what an
// ApplicationMaster tells a new JVM to do.
func (w *writable) jvmTask() []model.Field {
	die, has := w.uint8() != 0, w.uint8() != 0
	out := []model.Field{{Name: "die", Value: strconv.FormatBool(die)}}
	if has {
		w.uint8() // a map?
		w.text()  // file of the job
		if id := w.attempt(); !w.bad {
			out = append(out, model.Field{Name: "task", Value: id})
		}
	}
	return out
}

// taskStatus reads the start of org.apache.hadoop.mapred.TaskStatus.
func (w *writable) taskStatus() []model.Field {
	id := w.attempt()
	progress := math.Float32frombits(uint32(w.int32()))
	w.int32() // slots
	state := w.text()
	w.text() // diagnostics
	said := w.text()
	phase := w.text()
	if w.bad {
		return nil
	}
	out := []model.Field{
		{Name: "status.task", Value: id},
		{Name: "status.progress", Value: strconv.FormatFloat(float64(progress), 'g', 4, 32)},
		{Name: "status.state", Value: pbString([]byte(state))},
		{Name: "status.phase", Value: pbString([]byte(phase))},
	}
	if said != "" {
		out = append(out, model.Field{Name: "status.text", Value: pbString([]byte(said))})
	}
	return out
}
