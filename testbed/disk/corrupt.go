package disk

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

// Corruption is damage to one file, done while nobody has it open: between the crash of
// a program and its restart.
type Corruption struct {
	Path string
	// Offset is the first byte that may be changed; a negative one counts from the
	// end of the file, -1 for the last byte.
	Offset int64
	// Length is within how many bytes from Offset.
	Length int
	// Bytes is how many of them are changed.
	Bytes int
	// Seed chooses which, and to what.
	Seed uint64
}

// Change is one byte that was changed.
type Change struct {
	Offset  int64
	Was, Is byte
}

// Corrupt damages the file and says what was changed, sorted by offset, with no byte
// twice. Equal files with equal arguments are damaged equally. What was changed is on
// disk when it returns.
func Corrupt(c Corruption) ([]Change, error) {
	changes, err := c.apply()
	if err != nil {
		return changes, fmt.Errorf("corrupt %s: %w", c.Path, err)
	}
	return changes, nil
}

// Truncate leaves so many bytes of a file, which is no link. The file has its new length on disk
// when it returns.
func Truncate(path string, length int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	return errors.Join(f.Truncate(length), f.Sync(), f.Close())
}

func (c Corruption) apply() (changes []Change, err error) {
	if c.Bytes < 1 || c.Bytes > c.Length {
		return nil, fmt.Errorf("%d of %d bytes cannot be changed", c.Bytes, c.Length)
	}
	fi, err := os.Lstat(c.Path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("no regular file")
	}
	begin := c.Offset
	if begin < 0 {
		begin += fi.Size()
	}
	if begin < 0 || begin+int64(c.Length) > fi.Size() {
		return nil, fmt.Errorf("it has %d bytes: no %d from %d on", fi.Size(), c.Length, c.Offset)
	}
	f, err := os.OpenFile(c.Path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data := make([]byte, c.Length)
	if _, err := f.ReadAt(data, begin); err != nil && err != io.EOF {
		return nil, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 0))
	left := c.Bytes
	for i := range data {
		// Each choice of that many bytes is as likely as any other.
		if random.IntN(len(data)-i) >= left {
			continue
		}
		left--
		is := data[i] ^ byte(1+random.IntN(255))
		changes = append(changes, Change{Offset: begin + int64(i), Was: data[i], Is: is})
		if _, err := f.WriteAt([]byte{is}, begin+int64(i)); err != nil {
			return changes[:len(changes)-1], err
		}
	}
	return changes, f.Sync()
}
