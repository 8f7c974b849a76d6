package pcap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/need"
	"netsplit/model"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC)

// frame is an Ethernet frame of an experimental type, size bytes long.
func frame(num uint64, at time.Duration, host model.NodeID, size int) model.Frame {
	b := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, make([]byte, size-14)...)
	for i := 14; i < size; i++ {
		b[i] = byte(int(num) + i)
	}
	return model.Frame{Num: num, At: at, Host: host, Data: b}
}

func readAll(t *testing.T, b []byte) (frames []model.Frame, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	for {
		f, err := r.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// shown is what tshark shows of a file: one line per packet.
func shown(t *testing.T, path string) (lines []string, complaint string) {
	t.Helper()
	need.Program(t, "tshark", "tshark")
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", "-r", path, "-T", "fields", "-E", "separator=|",
		"-e", "frame.time_epoch", "-e", "frame.interface_name", "-e", "frame.len", "-e", "frame.comment")
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // its status says that the file is cut short, too
	for _, l := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if l != "" {
			lines = append(lines, l)
		}
	}
	for _, l := range strings.Split(stderr.String(), "\n") {
		if l != "" && !strings.Contains(l, "could be dangerous") {
			complaint += l
		}
	}
	return lines, complaint
}

// write makes a file of n frames whose comments are c0, c1, …
func write(t *testing.T, w *Writer, n int, at time.Duration) (want []string) {
	t.Helper()
	for i := range n {
		host := model.NodeID([]string{"n1", "n2", ""}[i%3])
		name := string(host)
		if name == "" {
			name = "mirror"
		}
		comment := fmt.Sprintf("pass: not across, packet %d — „ü“", i)
		if i%4 == 3 {
			comment = ""
		}
		f := frame(uint64(i+1), at+time.Duration(i)*1001*time.Nanosecond, host, 60+i%7)
		if err := w.Write(f, comment); err != nil {
			t.Fatal(err)
		}
		ts := start.Add(f.At)
		want = append(want, fmt.Sprintf("%d.%09d|%s|%d|%s", ts.Unix(), ts.Nanosecond(), name, len(f.Data), comment))
	}
	return want
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("packet %d\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

func TestTsharkShowsTimesInterfacesAndComments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	w, err := Create(path, start)
	if err != nil {
		t.Fatal(err)
	}
	want := write(t, w, 3000, 0) // more than one flush
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, complaint := shown(t, path)
	if complaint != "" {
		t.Errorf("tshark complains: %s", complaint)
	}
	equal(t, got, want)
}

func TestWhatIsWrittenReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	w, err := Create(path, start)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 100, 5*time.Second)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path) // before Close: all of it is there
	if err != nil {
		t.Fatal(err)
	}
	frames, err := readAll(t, b)
	if err != io.EOF || len(frames) != 100 {
		t.Fatalf("%d frames, %v; want 100 and the end", len(frames), err)
	}
	for i, f := range frames {
		want := frame(uint64(i+1), time.Duration(i)*1001*time.Nanosecond, "", 60+i%7)
		if f.Num != want.Num || f.At != want.At || !bytes.Equal(f.Data, want.Data) {
			t.Fatalf("frame %d: %d at %v, %x; want %d at %v, %x", i, f.Num, f.At, f.Data, want.Num, want.At, want.Data)
		}
	}
	r, _ := NewReader(bytes.NewReader(b))
	if _, err := r.Next(); err != nil || !r.Start().Equal(start.Add(5*time.Second)) {
		t.Errorf("start %v, %v; want %v", r.Start(), err, start.Add(5*time.Second))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestAKilledWritersFile cuts a file at every byte: everything before the last
// block can be read, by us and (at some cuts) by tshark.
func TestAKilledWritersFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.pcapng")
	w, err := Create(path, start)
	if err != nil {
		t.Fatal(err)
	}
	header := int(w.size)
	ends := []int{}
	var want []string
	for i := range 9 {
		before := len(want)
		want = append(want, write(t, w, 1, time.Duration(i)*time.Second)...)
		if err := w.Flush(); err != nil || len(want) != before+1 {
			t.Fatal(err)
		}
		ends = append(ends, int(w.size))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := header; n < len(whole); n++ {
		k := 0
		for k < len(ends) && ends[k] <= n {
			k++
		}
		if n < ends[0] {
			continue // the first interface block may be cut: no packet, no link type
		}
		frames, err := readAll(t, whole[:n])
		if len(frames) != k || err != io.EOF && n%4 == 0 && n == ends[k-1] || err != ErrTruncated && n%4 != 0 {
			t.Fatalf("cut at %d: %d frames, want %d, error %v", n, len(frames), k, err)
		}
		if n%151 != 0 && n != len(whole)-1 {
			continue
		}
		cut := filepath.Join(dir, fmt.Sprintf("cut%d.pcapng", n))
		if err := os.WriteFile(cut, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		got, _ := shown(t, cut)
		equal(t, got, want[:k])
	}
}

// TestAFullDiskLosesNothing writes to a device that is always full, then to a
// file again.
func TestAFullDiskLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	w, err := Create(path, start)
	if err != nil {
		t.Fatal(err)
	}
	want := write(t, w, 10, 0)
	good := w.f
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w.f = full
	if err := w.Flush(); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("error %v, want one that says what to do", err)
	}
	w.f = good
	want = append(want, write(t, w, 5, time.Second)...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := shown(t, path)
	equal(t, got, want)
}

func TestReaderRefuses(t *testing.T) {
	pcap := func(link byte) []byte {
		return []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, link, 0, 0, 0}
	}
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "no capture"},
		{[]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xc8\x04\x00\xac\x2a\x93\xd8\x02\x00\x00\x00"), "no capture"}, // "hi", packed with gzip
		{[]byte("hello world, no capture"), "neither pcap nor pcapng"},
		{append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 3, 0}, make([]byte, 16)...), "version 2.3"},
		{append([]byte{0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4}, make([]byte, 16)...), "version 2.4, first bytes a1 b2 cd 34): editcap"},
		{pcap(105), "link type 105 is not read"},
	} {
		if _, err := NewReader(bytes.NewReader(c.b)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%x: error %v, want %q", c.b, err, c.want)
		}
	}
	huge := []byte{0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0,
		1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,
		6, 0, 0, 0, 0xf0, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 255, 255, 255, 0xc0, 255, 255, 255}
	if _, err := readAll(t, huge); err == nil || !strings.Contains(err.Error(), "a block of 4294967280 bytes") {
		t.Errorf("a block of 4 GiB: error %v", err)
	}
	long := append(append([]byte{}, huge[:48]...), 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x9e, 0, 0, 0, 60, 0, 0, 0,
		1, 2, 3, 4, 36, 0, 0, 0) // pcapgo alone never comes back from one like it
	if _, err := readAll(t, long); err == nil || !strings.Contains(err.Error(), "longer than the block") {
		t.Errorf("captured length beyond the block: error %v", err)
	}
	rec := append(pcap(1), 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0, 1, 2, 3)
	if _, err := readAll(t, rec); !errors.Is(err, ErrTruncated) {
		t.Errorf("error %v, want ErrTruncated", err)
	}
}

// FuzzReader: hostile bytes give an error, never a panic, and Next ends.
func FuzzReader(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.pcapng")
	w, err := Create(path, start)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if err := w.Write(frame(uint64(i), 0, "n1", 60), "note"); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		total := 0
		for num := uint64(1); ; num++ {
			fr, err := r.Next()
			if err != nil {
				return
			}
			total += len(fr.Data)
			packed := len(b) > 1 && b[0] == 0x1f && b[1] == 0x8b
			if fr.Num != num || total > len(b) && !packed {
				t.Fatalf("frame %d is numbered %d; %d bytes of frames in %d", num, fr.Num, total, len(b))
			}
		}
	})
}
